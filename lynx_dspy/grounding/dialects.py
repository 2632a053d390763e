"""K_syn: short syntax references of SQL dialects, in the entries that a step asks for (III-A2).

The pages are `dialects/<dialect>.md`: an entry is a `## title`, a line `tags: word word ...` and
the text that a model sees. A word of the question, the grounding or the error picks an entry.
Examples stand in backticks (doubled where names have their own), which are not shown; each is a
query or an expression on the tables `t` and `u` of the tests, which parse all of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from lynx_dspy.tokens import estimate

GENERIC = "ansi"
ALIKE = {
    "redshift": "postgres",
    "materialize": "postgres",
    "databricks": "spark",
    "hive": "spark",
    "doris": "mysql",
    "starrocks": "mysql",
}
"""Dialects (sqlglot's names) that share another one's page."""

_EXAMPLE = re.compile(r"``\s?(.+?)\s?``|`([^`]+)`")
_WORD = re.compile(r"[a-z_]+|::|%|/")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a page; `tags` are folded words without a plural ending."""

    title: str
    tags: frozenset[str]
    text: str
    examples: tuple[str, ...] = ()


def syntax_for(dialect: str, need: Collection[str] | str, budget: int) -> str:
    """The entries that `need` asks for, best first, in at most `budget` estimated tokens.

    `need` is any text (question, grounding, error) or a collection of tags; an unknown dialect gets
    the generic page. Empty when nothing is asked for or nothing fits.

    >>> syntax_for("ansi", ["rate"], 60).partition(":")[0]
    'Division'
    """
    asked = _words(need if isinstance(need, str) else " ".join(need))
    ranked = sorted(page(dialect), key=lambda entry: -len(entry.tags & asked))
    kept: list[str] = []
    spent = 0
    for entry in ranked:
        line = f"{entry.title}: {entry.text}"
        cost = estimate(line) + 1
        if entry.tags & asked and spent + cost <= budget:
            kept.append(line)
            spent += cost
    return "\n".join(kept)


@cache
def page(dialect: str) -> tuple[Entry, ...]:
    """All entries of a dialect's page, in the order of the file."""
    folder = files("lynx_dspy.grounding") / "dialects"
    name = ALIKE.get(dialect.casefold(), dialect.casefold())
    file = folder / f"{name}.md"
    if not name.isalnum() or not file.is_file():
        file = folder / f"{GENERIC}.md"
    parts = file.read_text(encoding="utf-8").split("\n## ")[1:]
    return tuple(_entry(part) for part in parts)


def _entry(part: str) -> Entry:
    title, tags, *lines = part.strip().splitlines()
    text = "\n".join(line.strip() for line in lines).strip()
    examples = tuple((a or b).strip() for a, b in _EXAMPLE.findall(text))
    shown = _EXAMPLE.sub(lambda match: (match[1] or match[2]).strip(), text)
    return Entry(title.strip(), _words(tags.removeprefix("tags:")), shown, examples)


def _words(text: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in _WORD.findall(text.casefold()))


def _stem(word: str) -> str:
    if word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        return word[:-1]
    return word

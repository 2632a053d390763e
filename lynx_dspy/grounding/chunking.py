"""Documents cut into passages: by headings, then paragraphs, then sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lynx_dspy.tokens import estimate
from lynx_dspy.values import Passage

CHUNK_TOKENS = 180
"""A passage is at most about this long, and as near to it as paragraphs allow."""

_LONGEST = 20 * CHUNK_TOKENS
"""Characters that no passage reaches."""

_HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*\s*")
_FENCE = re.compile(r"\s*(```|~~~)")
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n")


def passages(text: str, source: str) -> Iterator[Passage]:
    """The passages of a Markdown or plain text, each with its path of headings.

    >>> [(p.heading, p.text) for p in passages("# A\\nOne.\\n## B\\nTwo.", "x.md")]
    [('A', 'One.'), ('A > B', 'Two.')]
    """
    for heading, section in _sections(text):
        for chunk in _packed(_paragraphs(section)):
            yield Passage(chunk, source, heading)


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """(path of headings, body) pairs; what looks like a heading inside a code fence is none."""
    path: list[tuple[int, str]] = []
    body: list[str] = []
    fenced = False
    for line in text.splitlines():
        fenced ^= bool(_FENCE.match(line))
        heading = None if fenced else _HEADING.fullmatch(line)
        if heading is None:
            body.append(line)
            continue
        yield " > ".join(title for _, title in path), "\n".join(body)
        level = len(heading.group(1))
        path = [*((n, title) for n, title in path if n < level), (level, heading.group(2))]
        body = []
    yield " > ".join(title for _, title in path), "\n".join(body)


def _paragraphs(section: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", section):
        plain = paragraph.strip()
        if plain and _fits(plain):
            yield plain
        elif plain:
            yield from _packed(_sentences(plain), " ")


def _fits(text: str) -> bool:
    """Whether `text` is short enough; one that is megabytes long is not counted out."""
    return len(text) <= _LONGEST and estimate(text) <= CHUNK_TOKENS


def _sentences(paragraph: str) -> Iterator[str]:
    """Sentences or lines; one that is itself too long is cut at blanks, else anywhere."""
    for sentence in _SENTENCE.split(paragraph):
        if _fits(sentence):
            yield sentence
        else:
            pieces = (
                w[i : i + CHUNK_TOKENS]
                for w in sentence.split()
                for i in range(0, len(w), CHUNK_TOKENS)
            )
            yield from _packed(pieces, " ")


def _packed(parts: Iterator[str], between: str = "\n\n") -> Iterator[str]:
    """Parts joined as long as they stay within a passage."""
    held: list[str] = []
    spent = 0
    for part in parts:
        cost = estimate(part) + 1
        if held and spent + cost > CHUNK_TOKENS:
            yield between.join(held)
            held, spent = [], 0
        if part.strip():
            held.append(part)
            spent += cost
    if held:
        yield between.join(held)

"""The user's own glossary: `term: definition` in YAML, CSV or Markdown; looked up first."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.identifiers import words
from lynx_dspy.grounding.lookup import ByReference, stems
from lynx_dspy.values import Passage

Entry = tuple[str, str]
"""Term and definition."""

_LARGEST = 5_000_000
_LONGEST_TERM = 80
_LINE = re.compile(r"\s*(?:[-*+•]|\d+[.)])?\s*(?P<term>[^:|]{1,80}?)\s*[:：]\s+(?P<definition>.+)")
_ROW = re.compile(r"\s*\|(?P<term>[^|]+)\|(?P<definition>[^|]+)\|.*")
_FENCE = re.compile(r"\s*(```|~~~)")
_HEADER = frozenset({"term", "terms", "name", "word", "concept", "code"})


class Glossary(ByReference):
    """Terms with definitions of the user's own, trusted as documents are. Plurals of a term meet.

    >>> glossary = Glossary({"active customer": "ordered within 90 days"}, "terms.yaml")
    >>> glossary.terms_in("How many active customers are there?")
    ('active customer',)
    >>> glossary.look_up("Active customers")[0].text
    'ordered within 90 days'
    """

    external = False

    def __init__(self, definitions: Mapping[str, str], name: str = "glossary") -> None:
        self.name = name
        self._by_stems: dict[tuple[str, ...], list[Passage]] = {}
        for term, definition in definitions.items():
            key = _key(term)
            if key and definition.strip():
                entry = Passage(" ".join(definition.split()), name, term.strip())
                self._by_stems.setdefault(key, []).append(entry)
        self._longest = max(map(len, self._by_stems), default=0)

    @classmethod
    def open(cls, path: str | Path) -> Glossary:
        """The glossary in a file: `.yaml`, `.yml`, `.csv`, `.tsv`, `.md` or `.txt`.

        YAML is a mapping, or a list of mappings with `term` and `definition`. CSV has these as its
        first two columns, with or without a header. Markdown has lines `term: definition`, as a
        list or not, or a table. Raises `BadInput` in one line for anything else.
        """
        file = Path(path)
        reader = _READERS.get(file.suffix.lower())
        if reader is None:
            raise BadInput(
                f"Glossary {str(path)!r} is of unknown kind. Known: {', '.join(_READERS)}."
            )
        entries = _merged(reader(_text(file)))
        if not entries:
            raise BadInput(
                f"Glossary {str(path)!r} defines nothing. Write one `term: definition` a line."
            )
        return cls(entries, file.name)

    def look_up(self, term: str) -> Sequence[Passage]:
        """The definition of `term`; empty if there is none."""
        return tuple(self._by_stems.get(_key(term), ()))

    def terms_in(self, text: str) -> Sequence[str]:
        """The defined terms that `text` names, in its order; of two that overlap the longer."""
        given = stems(text)
        found: dict[str, None] = {}
        at = 0
        while at < len(given):
            length = self._length_at(given, at)
            for entry in self._by_stems.get(given[at : at + length], ()):
                found[entry.heading] = None
            at += length or 1
        return tuple(found)

    def _length_at(self, given: tuple[str, ...], at: int) -> int:
        lengths = range(min(self._longest, len(given) - at), 0, -1)
        return next((n for n in lengths if given[at : at + n] in self._by_stems), 0)

    def __len__(self) -> int:
        return sum(map(len, self._by_stems.values()))


def _key(term: str) -> tuple[str, ...]:
    """Stems; a term of nothing but stop words, such as the code NO, is its words."""
    return stems(term) or words(term)


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > _LARGEST:
            raise BadInput(f"Glossary {str(file)!r} is larger than {_LARGEST // 1_000_000} MB.")
        raw = file.read_bytes()
    except OSError as error:
        raise BadInput(f"Cannot read the glossary {str(file)!r}: {error.strerror}.") from error
    if b"\0" in raw:
        raise BadInput(f"Glossary {str(file)!r} is not a text.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace")


def _merged(entries: Iterable[Entry]) -> dict[str, str]:
    """A term that is defined twice keeps both definitions: the question decides."""
    merged: dict[str, str] = {}
    for term, definition in entries:
        term, definition = " ".join(term.split()), definition.strip()
        if not term or not definition or len(term) > _LONGEST_TERM:
            continue
        held = merged.get(term)
        merged[term] = definition if held in (None, definition) else f"{held} Or: {definition}"
    return merged


def _from_yaml(text: str) -> Iterator[Entry]:
    import yaml

    try:
        # All scalars as texts: `NO: Norway` is a term, not a falsehood, and no object is built.
        data = yaml.load(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        line = " ".join(str(error).split())[:200]
        raise BadInput(f"The glossary is no valid YAML: {line}") from error
    if isinstance(data, dict):
        yield from ((str(term), value) for term, value in data.items() if isinstance(value, str))
    elif isinstance(data, list):
        for item in data:
            if isinstance(item, dict) and {"term", "definition"} <= item.keys():
                yield str(item["term"]), str(item["definition"])


def _from_csv(text: str) -> Iterator[Entry]:
    first = text.lstrip().partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    try:
        rows = [row for row in csv.reader(StringIO(text), delimiter=delimiter) if len(row) > 1]
    except csv.Error as error:
        raise BadInput(f"The glossary is no valid CSV: {error}.") from error
    if rows and rows[0][0].strip().casefold() in _HEADER:
        rows = rows[1:]
    yield from ((row[0], row[1]) for row in rows)


def _from_markdown(text: str) -> Iterator[Entry]:
    fenced = False
    for line in text.splitlines():
        fenced ^= bool(_FENCE.match(line))
        found = None if fenced else _ROW.fullmatch(line) or _LINE.fullmatch(line)
        if found is None:
            continue
        term = found["term"].strip(" *_`#\t")
        definition = found["definition"].strip().removeprefix("**").strip()
        ruler = not definition.strip("-: ")
        if not ruler and term.casefold() not in _HEADER:
            yield term, definition


_READERS: dict[str, Callable[[str], Iterator[Entry]]] = {
    ".yaml": _from_yaml,
    ".yml": _from_yaml,
    ".csv": _from_csv,
    ".tsv": _from_csv,
    ".md": _from_markdown,
    ".markdown": _from_markdown,
    ".txt": _from_markdown,
}

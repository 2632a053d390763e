"""An index of stored text values: which words of a question are cell values (paper, III-A2)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from lynx_dspy.engines.base import Database
from lynx_dspy.errors import DatabaseError
from lynx_dspy.grounding.identifiers import fold, qualified, quote
from lynx_dspy.grounding.recent import Recent
from lynx_dspy.values import Schema, Table

VALUES_A_COLUMN = 2_000
"""Distinct values held of one column."""

ROWS_IN_ALL = 120_000
"""Rows read of all tables together, shared out evenly, at most `ROWS_A_TABLE` each."""

ROWS_A_TABLE = 20_000

_WORD = re.compile(r"\w+")
_LONGEST = 60
_COMMON = 40
"""A word that occurs in more values than this says nothing about one of them."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is stored, with the spelling it has there."""

    table: str
    column: str
    value: str


@dataclass(slots=True)
class ValueIndex:
    """Folded value -> places, and folded word -> places of the longer values that hold it."""

    exact: dict[str, list[Place]] = field(default_factory=lambda: defaultdict(list))
    by_word: dict[str, list[Place]] = field(default_factory=lambda: defaultdict(list))

    def add(self, place: Place) -> None:
        """Make a value findable as a whole and by each of its words."""
        folded = fold(place.value)
        if not folded:
            return
        self.exact[folded].append(place)
        parts = set(_WORD.findall(folded))
        if len(parts) > 1:
            for part in parts:
                if len(self.by_word[part]) <= _COMMON:
                    self.by_word[part].append(place)

    def find(self, text: str) -> list[Place]:
        """The places of the value `text`, without regard to case, accents and blanks.

        >>> index = ValueIndex()
        >>> index.add(Place("city", "name", "São Paulo"))
        >>> [place.value for place in index.find("sao paulo")]
        ['São Paulo']
        """
        return self.exact.get(fold(text), [])

    def holding(self, word: str) -> list[Place]:
        """The places of longer values that hold `word`; none if too many do."""
        places = self.by_word.get(fold(word), [])
        return places if len(places) <= _COMMON else []


_indexes: Recent[ValueIndex] = Recent(size=8)


def value_index(database: Database, schema: Schema) -> ValueIndex:
    """The index of `database`, built once for each of its fingerprints, views left out; bounded."""
    key = (database.url, database.fingerprint())
    return _indexes.get(key, lambda: _build(database, schema))


def _build(database: Database, schema: Schema) -> ValueIndex:
    index = ValueIndex()
    limit = max(50, min(ROWS_A_TABLE, ROWS_IN_ALL // max(1, len(schema.tables))))
    for table in (t for t in schema.tables if not t.is_view):
        for place in _places(database, table, limit):
            index.add(place)
    return index


def _places(database: Database, table: Table, limit: int) -> Iterator[Place]:
    names = [c.name for c in table.columns if _holds_text(c.type, c.samples)]
    if not names:
        return
    asked = ", ".join(quote(name, database.dialect) for name in names)
    source = qualified(table.namespace, table.name, database.dialect)
    try:
        rows = database.query(f"SELECT {asked} FROM {source} LIMIT {limit}")
    except DatabaseError:
        return
    for i, name in enumerate(names):
        values = dict.fromkeys(row[i] for row in rows if isinstance(row[i], str))
        short = [v for v in values if len(v) <= _LONGEST]
        for value in short[:VALUES_A_COLUMN]:
            yield Place(table.name, name, value)


def _holds_text(kind: str, samples: tuple[str, ...]) -> bool:
    """True for columns that store short texts, by their samples rather than the declared type."""
    upper = kind.upper()
    if any(mark in upper for mark in ("BLOB", "BINARY", "BYTE", "[]", "JSON")):
        return False
    quoted = [s for s in samples if s.startswith(("'", '"'))]
    if samples and (not quoted or all(s.endswith("…'") for s in quoted)):
        return False
    return bool(quoted) or any(mark in upper for mark in ("CHAR", "TEXT", "STRING", "CLOB", "ENUM"))

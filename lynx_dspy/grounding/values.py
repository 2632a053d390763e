"""An index of stored text values: which words of a question are cell values (paper, III-A2)."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lynx_dspy.engines.base import Database
from lynx_dspy.errors import DatabaseError
from lynx_dspy.grounding import value_files
from lynx_dspy.grounding.identifiers import fold, qualified, quote
from lynx_dspy.grounding.recent import Recent
from lynx_dspy.values import Schema, Table

VALUES_A_COLUMN = 2_000
"""Distinct values held of one column."""

VALUES_IN_ALL = 400_000
"""Values held of all columns together, shared out evenly."""

ROWS_IN_ALL = 120_000
"""Rows read of all tables together, shared out evenly, at most `ROWS_A_TABLE` each."""

ROWS_A_TABLE = 20_000
_FEWEST_ROWS = 50

KEPT_FROM_SECONDS = 1.0
"""An index that took longer to build is kept on disk."""

_WORD = re.compile(r"\w+")
_LONGEST = 60
_COMMON = 40
"""A word that occurs in more values than this says nothing about one of them."""

_BATCH = 10_000
_FIND = "SELECT owner, field, value FROM places WHERE folded = ? ORDER BY id"
_HOLDING = (
    "SELECT owner, field, value FROM words JOIN places ON place = id WHERE word = ? "
    f"ORDER BY id LIMIT {_COMMON + 1}"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is stored, with the spelling it has there."""

    table: str
    column: str
    value: str


class ValueIndex:
    """Folded value -> places, and folded word -> places of the longer values that hold it.

    The index is a SQLite database, in memory or in a file of the cache: a large one takes little
    memory and opens at once.
    """

    def __init__(self, connection: sqlite3.Connection | None = None) -> None:
        self._lock = threading.Lock()
        self.connection = connection or value_files.in_memory()
        self._size = 0
        self._spread: Counter[str] = Counter()

    def add(self, *places: Place) -> None:
        """Make values findable as a whole and by each of their words."""
        rows, words = [], []
        for place in places:
            folded = fold(place.value)
            if not folded:
                continue
            self._size += 1
            rows.append((self._size, folded, place.table, place.column, place.value))
            parts = set(_WORD.findall(folded))
            if len(parts) > 1:
                self._spread.update(parts)
                words += [(p, self._size) for p in parts if self._spread[p] <= _COMMON + 1]
        with self._lock:
            self.connection.executemany("INSERT INTO places VALUES (?, ?, ?, ?, ?)", rows)
            self.connection.executemany("INSERT INTO words VALUES (?, ?)", words)

    def find(self, text: str) -> list[Place]:
        """The places of the value `text`, without regard to case, accents and blanks.

        >>> index = ValueIndex()
        >>> index.add(Place("city", "name", "São Paulo"))
        >>> [place.value for place in index.find("sao paulo")]
        ['São Paulo']
        """
        return self._places(_FIND, fold(text))

    def holding(self, word: str) -> list[Place]:
        """The places of longer values that hold `word`; none if too many do."""
        places = self._places(_HOLDING, fold(word))
        return places if len(places) <= _COMMON else []

    def _places(self, query: str, wanted: str) -> list[Place]:
        with self._lock:
            return [Place(*row) for row in self.connection.execute(query, (wanted,))]


_indexes: Recent[ValueIndex] = Recent(size=8)


def value_index(database: Database, schema: Schema) -> ValueIndex:
    """The index of `database`, built once for each of its fingerprints, views left out; bounded.

    One that took long is kept in the user's cache and found there by the next process.
    """
    names = value_files.digest(*(t.name for t in schema.tables))
    key = (database.url, f"{database.fingerprint()} {names}")
    return _indexes.get(key, lambda: _opened(database, schema, key))


def _opened(database: Database, schema: Schema, key: tuple[str, str]) -> ValueIndex:
    held = value_files.opened(*key)
    if held is not None:
        return ValueIndex(held)
    started = time.perf_counter()
    index = _build(database, schema)
    if time.perf_counter() - started > KEPT_FROM_SECONDS:
        value_files.keep(index.connection, *key)
    return index


def _build(database: Database, schema: Schema) -> ValueIndex:
    index = ValueIndex()
    tables = [(t, names) for t in schema.tables if not t.is_view and (names := _texts(t))]
    limit = max(_FEWEST_ROWS, min(ROWS_A_TABLE, ROWS_IN_ALL // max(1, len(schema.tables))))
    columns = sum(len(names) for _, names in tables)
    most = max(1, min(VALUES_A_COLUMN, VALUES_IN_ALL // max(1, columns)))
    waiting: list[Place] = []
    for table, names in tables:
        waiting += _stored(database, table, names, limit, most)
        if len(waiting) >= _BATCH:
            index.add(*waiting)
            waiting.clear()
    index.add(*waiting)
    return index


def _texts(table: Table) -> list[str]:
    return [c.name for c in table.columns if _holds_text(c.type, c.samples)]


def _stored(
    database: Database, table: Table, names: Sequence[str], limit: int, most: int
) -> Iterator[Place]:
    asked = ", ".join(quote(name, database.dialect) for name in names)
    source = qualified(table, database.dialect)
    try:
        rows = database.query(f"SELECT {asked} FROM {source} LIMIT {limit}")
    except DatabaseError:
        yield from _sampled(table, names)
        return
    for i, name in enumerate(names):
        values = dict.fromkeys(row[i] for row in rows if isinstance(row[i], str))
        short = [v for v in values if len(v) <= _LONGEST]
        for value in short[:most]:
            yield Place(table.name, name, value)


def _sampled(table: Table, names: Sequence[str]) -> Iterator[Place]:
    """The sample values, where nothing can be asked: a schema that is only described has them."""
    for name in names:
        column = table.column(name)
        for text in column.samples if column else ():
            if text.startswith("'") and text.endswith("'") and not text.endswith("…'"):
                yield Place(table.name, name, text[1:-1].replace("''", "'"))


def _holds_text(kind: str, samples: tuple[str, ...]) -> bool:
    """True for columns that store short texts, by their samples rather than the declared type."""
    upper = kind.upper()
    if any(mark in upper for mark in ("BLOB", "BINARY", "BYTE", "[]", "JSON")):
        return False
    quoted = [s for s in samples if s.startswith(("'", '"'))]
    if samples and (not quoted or all(s.endswith("…'") for s in quoted)):
        return False
    return bool(quoted) or any(mark in upper for mark in ("CHAR", "TEXT", "STRING", "CLOB", "ENUM"))

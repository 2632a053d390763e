"""An index of stored text values: which words of a question are cell values (paper, III-A2)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from lynx_dspy.engines.base import Database
from lynx_dspy.errors import DatabaseError
from lynx_dspy.grounding import value_files
from lynx_dspy.grounding.date_styles import style_of
from lynx_dspy.grounding.identifiers import qualified, quote
from lynx_dspy.grounding.recent import Recent
from lynx_dspy.grounding.value_places import Place, ValueIndex
from lynx_dspy.values import Column, Schema, Table

VALUES_A_COLUMN = 2_000
"""Distinct values held of one column."""

VALUES_IN_ALL = 400_000
"""Values held of all columns together, shared out evenly."""

ROWS_IN_ALL = 120_000
"""Rows read of all tables together, shared out evenly, at most `ROWS_A_TABLE` each."""

ROWS_A_TABLE = 20_000
_FEWEST_ROWS = 50

TEXTS_A_COLUMN = 200
"""Rows read of a column of long texts, `_HEAD` characters of each."""

WORDS_A_COLUMN = 3_000
"""Different words held of the long texts of one column."""

WORDS_IN_ALL = 300_000

KEPT_FROM_SECONDS = 1.0
"""An index that took longer to build is kept on disk."""

_LONGEST = 60
_TITLE = 200
_HEAD = 600
_BATCH = 10_000
_NO_TEXT = ("BLOB", "BINARY", "BYTE", "[]", "JSON")
_TEXT = ("CHAR", "TEXT", "STRING", "CLOB", "ENUM")

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
    tables = [t for t in schema.tables if not t.is_view]
    columns = max(1, sum(_holds_text(c) for t in tables for c in t.columns))
    rows = max(_FEWEST_ROWS, min(ROWS_A_TABLE, ROWS_IN_ALL // max(1, len(schema.tables))))
    most = max(1, min(VALUES_A_COLUMN, VALUES_IN_ALL // columns))
    words = min(WORDS_A_COLUMN, WORDS_IN_ALL // columns)
    values: list[Place] = []
    titles: list[Place] = []
    for table in tables:
        for column, texts in _read(database, table, rows):
            short = [t for t in texts if len(t) <= _LONGEST]
            values += [Place(table.name, column, text) for text in short[:most]]
            if style := style_of(short):
                index.add_style(table.name, column, style)
            long = [t for t in texts if len(t) > _LONGEST][:TEXTS_A_COLUMN]
            titles += _titles(table, column, long, most)
            index.add_texts(table.name, column, long, words)
        for column, texts in _read_long(database, table, min(rows, TEXTS_A_COLUMN)):
            titles += _titles(table, column, texts, most)
            index.add_texts(table.name, column, texts, words)
        if len(values) + len(titles) >= _BATCH or table is tables[-1]:
            index.add(*values)
            index.add_titles(*titles)
            values, titles = [], []
    return index


def _titles(table: Table, column: str, texts: Sequence[str], most: int) -> list[Place]:
    whole = [text for text in texts if len(text) <= _TITLE]
    return [Place(table.name, column, text) for text in whole[:most]]


def _read(database: Database, table: Table, limit: int) -> Iterator[tuple[str, list[str]]]:
    """The distinct values of each column of short texts in the first `limit` rows."""
    columns = [c for c in table.columns if _holds_text(c)]
    asked = [quote(c.name, database.dialect) for c in columns]
    try:
        yield from _distinct(database, table, columns, asked, limit)
    except DatabaseError:
        yield from ((c.name, _sampled(c)) for c in columns)


def _read_long(database: Database, table: Table, limit: int) -> Iterator[tuple[str, list[str]]]:
    """The beginnings of the values of each column of long texts."""
    columns = [c for c in table.columns if _holds_long_text(c)]
    asked = [f"SUBSTR({quote(c.name, database.dialect)}, 1, {_HEAD})" for c in columns]
    with suppress(DatabaseError):
        yield from _distinct(database, table, columns, asked, limit)


def _distinct(
    database: Database, table: Table, columns: Sequence[Column], asked: Sequence[str], limit: int
) -> Iterator[tuple[str, list[str]]]:
    if not columns:
        return
    source = qualified(table, database.dialect)
    rows = database.query(f"SELECT {', '.join(asked)} FROM {source} LIMIT {limit}")
    for i, column in enumerate(columns):
        yield column.name, list(dict.fromkeys(row[i] for row in rows if isinstance(row[i], str)))


def _sampled(column: Column) -> list[str]:
    """The sample values, where nothing can be asked: a schema that is only described has them."""
    texts = [t for t in column.samples if t.startswith("'") and t.endswith("'")]
    return [t[1:-1].replace("''", "'") for t in texts if not t.endswith("…'")]


def _holds_text(column: Column) -> bool:
    """True for columns that store short texts, by their samples rather than the declared type."""
    if _is_any(column, _NO_TEXT):
        return False
    quoted = _quoted(column)
    if column.samples and (not quoted or all(s.endswith("…'") for s in quoted)):
        return False
    return bool(quoted) or _is_any(column, _TEXT)


def _holds_long_text(column: Column) -> bool:
    """True for columns declared as text whose samples are all longer than what is shown of them."""
    quoted = _quoted(column)
    cut = bool(quoted) and all(s.endswith("…'") for s in quoted)
    return cut and _is_any(column, _TEXT) and not _is_any(column, _NO_TEXT)


def _quoted(column: Column) -> list[str]:
    return [s for s in column.samples if s.startswith(("'", '"'))]


def _is_any(column: Column, marks: Sequence[str]) -> bool:
    return any(mark in column.type.upper() for mark in marks)

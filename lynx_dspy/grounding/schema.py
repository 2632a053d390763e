"""SchemaAbstract: the database's structure with a few values a column (paper, III-A2).

What is read is bounded: one `SELECT ... LIMIT n` a table, and for columns that look like codes one
`DISTINCT` over a bounded number of rows. No table is scanned to its end unless it is small.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from lynx_dspy.engines.base import Database
from lynx_dspy.errors import DatabaseError
from lynx_dspy.grounding.folding import folded
from lynx_dspy.grounding.identifiers import literal, qualified, quote
from lynx_dspy.grounding.keys import infer_keys
from lynx_dspy.grounding.recent import Recent
from lynx_dspy.values import Column, Schema, Table

SAMPLE_ROWS = 200
"""Rows read of each table, fewer where there are many tables."""

VIEW_ROWS = 100_000
"""Views are sampled only where no table is larger: one row of a view may take a whole scan."""

_ROWS_IN_ALL = 40_000
_FEWEST_ROWS = 20

CODE_ROWS = 10_000
"""Rows looked at, at most, to list the values of a column of codes."""

MANY_TABLES = 1_000
"""A database of more tables is read more sparingly: one table of each group, one query a table."""

CODES = 12
"""A column with at most so many distinct values is shown with all of them."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d\d?[:/]\d\d")
_TEXT_CHARS = 200
_BINARY = ("BLOB", "BINARY", "BYTEA", "BYTES", "IMAGE")
_TEXT = ("CHAR", "TEXT", "CLOB", "STRING")
_NESTED = ("ARRAY", "STRUCT", "MAP", "ROW")
_abstracts: Recent[Schema] = Recent(size=32)


@dataclass(frozen=True, slots=True)
class Sample:
    """What was read of a column: values by frequency, and whether these are all it holds."""

    values: tuple[Any, ...]
    rows: int
    complete: bool

    @property
    def near_unique(self) -> bool:
        """True when hardly any value repeats: an identifier, a measure or free text."""
        return self.rows >= 10 and len(self.values) > 0.9 * self.rows


def abstract(database: Database) -> Schema:
    """The schema of `database` with samples, distinct counts and inferred foreign keys.

    Held in the process until `database.fingerprint()` changes. Raises `DatabaseError` if the
    catalogue cannot be read; a table that cannot be sampled (a broken view) has no values.
    """
    key = (database.url, database.fingerprint())
    return _abstracts.get(key, lambda: _abstract(database))


def _abstract(database: Database) -> Schema:
    """Of a large warehouse, only one table of each group is read; codes are listed while few."""
    schema = database.introspect()
    samples: dict[str, dict[str, Sample]] = {}
    many = len(schema.tables) > MANY_TABLES
    read_of = {t.name for t in folded(schema).schema.tables} if many else None
    limit = max(_FEWEST_ROWS, min(SAMPLE_ROWS, _ROWS_IN_ALL // max(1, len(schema.tables))))
    tables = []
    largest = max((t.row_count or 0 for t in schema.tables), default=0)
    for table in schema.tables:
        dear = table.is_view and largest > VIEW_ROWS
        alike = read_of is not None and table.name not in read_of
        samples[table.name] = {} if dear or alike else _sample(database, table, limit, many)
        tables.append(_with_samples(table, samples[table.name], schema.dialect))
    sampled = replace(schema, tables=tuple(tables))
    values = {
        (table, column): sample.values
        for table, read in samples.items()
        for column, sample in read.items()
    }
    told = folded(sampled).schema if many else sampled
    inferred = infer_keys(told, values, None if many else database)
    return replace(sampled, foreign_keys=(*schema.foreign_keys, *inferred))


def _with_samples(table: Table, read: Mapping[str, Sample], dialect: str) -> Table:
    if not read:
        return table
    columns = tuple(_with_sample(c, table, read.get(c.name), dialect) for c in table.columns)
    return replace(table, columns=columns)


def with_descriptions(schema: Schema, descriptions: Mapping[str, Mapping[str, str]]) -> Schema:
    """`schema` with descriptions from outside, `{table: {column: text}}`, names without case.

    The key `""` of a table describes the table itself. An empty text changes nothing; names that
    the schema lacks are ignored, since descriptions are often written for another revision.
    """
    folded = {
        _folded(table): {_folded(column): text for column, text in columns.items()}
        for table, columns in descriptions.items()
    }
    tables = []
    for table in schema.tables:
        texts = folded.get(_folded(table.name), {})
        columns = tuple(
            replace(c, description=_line(texts.get(_folded(c.name), "")) or c.description)
            for c in table.columns
        )
        description = _line(texts.get("", "")) or table.description
        tables.append(replace(table, columns=columns, description=description))
    return replace(schema, tables=tuple(tables))


def _folded(name: str) -> str:
    return name.casefold().strip()


def _line(text: str) -> str:
    return " ".join(text.split())


def _sample(database: Database, table: Table, limit: int, many: bool) -> dict[str, Sample]:
    """The values read of each column that can be shown; binary columns are never asked for.

    One of many tables is read once: its codes are those of the first rows.
    """
    columns = [c for c in table.columns if not _is(c, _BINARY)]
    if not columns:
        return {}
    asked = ", ".join(_short(c, database.dialect) for c in columns)
    source = qualified(table, database.dialect)
    try:
        rows = database.query(f"SELECT {asked} FROM {source} LIMIT {limit}")
    except DatabaseError:
        return {}
    complete = len(rows) < limit
    samples = {
        column.name: Sample(_by_frequency(row[i] for row in rows), len(rows), complete)
        for i, column in enumerate(columns)
    }
    if complete or many:
        return samples
    codes = [c for c in columns if 0 < len(samples[c.name].values) <= CODES]
    return samples | {c.name: _codes(database, table, c, samples[c.name]) for c in codes}


def _codes(database: Database, table: Table, column: Column, seen: Sample) -> Sample:
    """`seen` again, with the values that occur in the first `CODE_ROWS` rows."""
    name = _short(column, database.dialect)
    source = qualified(table, database.dialect)
    rows = database.query(
        f"SELECT DISTINCT v FROM (SELECT {name} AS v FROM {source} LIMIT {CODE_ROWS}) AS s "
        f"LIMIT {CODES + 2}"
    )
    values = _by_frequency([*((v,) for v in seen.values), *rows], unpack=True)
    whole = table.row_count is not None and table.row_count <= CODE_ROWS and len(rows) <= CODES
    return Sample(values, max(seen.rows, len(values)), complete=whole)


def _short(column: Column, dialect: str) -> str:
    """The column in a SELECT list; the engine cuts long texts, so they never travel."""
    name = quote(column.name, dialect)
    return f"SUBSTR({name}, 1, {_TEXT_CHARS})" if _is(column, _TEXT) else name


def _is(column: Column, families: tuple[str, ...]) -> bool:
    kind = column.type.upper()
    nested = "[]" in kind or kind.startswith(_NESTED)
    return not nested and any(family in kind for family in families)


def _by_frequency(values: Iterable[Any], unpack: bool = False) -> tuple[Any, ...]:
    """Distinct values, the most frequent first; what is unhashable (lists, structs) as text."""
    plain = [value[0] for value in values] if unpack else list(values)
    try:
        counts = Counter(plain)
    except TypeError:
        counts = Counter(v if isinstance(v, int | float | str) else str(v) for v in plain if v)
    return tuple(v for v, _ in counts.most_common() if not isinstance(v, bytes | None))


def _with_sample(column: Column, table: Table, sample: Sample | None, dialect: str) -> Column:
    if sample is None:
        return column
    texts = [literal(value, dialect) for value in sample.values[: _wanted(column, table, sample)]]
    return replace(
        column,
        samples=tuple(dict.fromkeys(text for text in texts if text is not None)),
        distinct=len(sample.values) if sample.complete else None,
    )


def _wanted(column: Column, table: Table, sample: Sample) -> int:
    """How many values of a column help: all of a code, few of a text or measure, hardly any id."""
    first = sample.values[0] if sample.values else None
    is_key = column.name in table.primary_key or column.name.casefold().endswith("id")
    if is_key and isinstance(first, int):
        return 0
    if column.name in table.primary_key or sample.near_unique:
        return 1
    dated = "DATE" in column.type.upper() or "TIME" in column.type.upper() or _is_date(first)
    if dated or isinstance(first, float | Decimal):
        return 1 if dated else 2
    repeats = len(sample.values) <= (sample.rows if isinstance(first, str) else sample.rows // 3)
    return CODES if len(sample.values) <= CODES and repeats else 3


def _is_date(value: Any) -> bool:
    return isinstance(value, str) and bool(_DATE.match(value))

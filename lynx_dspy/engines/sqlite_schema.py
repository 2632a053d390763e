"""A SQLite catalogue as a `Schema`: declared types, keys, comments and row counts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any

from lynx_dspy.engines.ddl_comments import DDLComments, read_comments
from lynx_dspy.engines.limits import deadline
from lynx_dspy.errors import DatabaseError
from lynx_dspy.values import Column, ForeignKey, Row, Schema, Table

_COUNTING_SECONDS = 1.0
_HIDDEN = 1
"""`table_xinfo.hidden` of virtual tables' inner columns; 2 and 3 are generated columns."""

_OBJECTS = """
    SELECT l.name, l.type, coalesce(m.sql, '') FROM pragma_table_list AS l
    LEFT JOIN sqlite_master AS m ON m.name = l.name AND m.type IN ('table', 'view')
    WHERE l.schema = 'main' AND l.type != 'shadow' AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
    ORDER BY m.rowid
"""
_COLUMNS = """
    SELECT m.name, x.name, x.type, x."notnull", x.pk, x.hidden
    FROM sqlite_master AS m, pragma_table_xinfo(m.name) AS x
    WHERE m.type IN ('table', 'view') {which} ORDER BY m.rowid, x.cid
"""
_KEYS = """
    SELECT m.name, k.id, k."table", k."from", k."to"
    FROM sqlite_master AS m, pragma_foreign_key_list(m.name) AS k
    WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY m.rowid, k.id, k.seq
"""


def introspect(connection: sqlite3.Connection, name: str) -> Schema:
    """The structure of the database. Raises `sqlite3.Error`, and `DatabaseError` without tables."""
    objects = connection.execute(_OBJECTS).fetchall()
    columns = _columns(connection, [str(row[0]) for row in objects])
    counts = _row_counts(connection, [row[0] for row in objects if row[1] != "view"])
    tables = tuple(
        _table(table, kind, read_comments(sql), columns[table], counts.get(table))
        for table, kind, sql in objects
        if columns.get(table)
    )
    if not tables:
        raise DatabaseError(f"{name} holds no tables that can be read. Name another database.")
    schema = Schema("sqlite", tables, name=name)
    return Schema("sqlite", tables, tuple(_foreign_keys(connection, schema)), name)


def _columns(connection: sqlite3.Connection, names: Sequence[str]) -> dict[str, list[Row]]:
    """Rows of `table_xinfo` by table. One query for all; a broken view costs one for each."""
    try:
        rows = connection.execute(_COLUMNS.format(which="")).fetchall()
    except sqlite3.OperationalError:
        rows = []
        for name in names:
            with suppress(sqlite3.OperationalError):
                rows += connection.execute(_COLUMNS.format(which="AND m.name = ?"), (name,))
    return {name: list(group) for name, group in groupby(rows, key=lambda row: str(row[0]))}


def _table(
    name: str, kind: str, comments: DDLComments, rows: list[Row], count: int | None
) -> Table:
    key = sorted((row for row in rows if row[4]), key=lambda row: int(row[4]))
    return Table(
        name=name,
        columns=tuple(_column(row, comments) for row in rows if row[5] != _HIDDEN),
        description=comments.table,
        primary_key=tuple(str(row[1]) for row in key),
        row_count=count,
        is_view=kind == "view",
    )


def _column(row: Row, comments: DDLComments) -> Column:
    _, name, declared, not_null, key, _ = row
    description = comments.columns.get(name.casefold(), "")
    return Column(name, declared, description, nullable=not (not_null or key))


def _row_counts(connection: sqlite3.Connection, names: Sequence[str]) -> dict[str, int]:
    """Exact counts of the tables that could be counted in a second; the rest is left out."""
    counts: dict[str, int] = {}
    with deadline(_COUNTING_SECONDS, connection.interrupt) as expired:
        for name in names:
            if expired.is_set():
                break
            with suppress(sqlite3.OperationalError):
                (counts[name],) = connection.execute(
                    f"SELECT count(*) FROM {_quote(name)}"
                ).fetchone()
    return counts


def _foreign_keys(connection: sqlite3.Connection, schema: Schema) -> Iterator[ForeignKey]:
    """Declared keys to tables that exist; a key without named columns means the primary key."""

    def one_key(row: Row) -> tuple[Any, ...]:
        return row[:2]

    for (name, _), group in groupby(connection.execute(_KEYS).fetchall(), key=one_key):
        parts = list(group)
        target = schema.table(parts[0][2])
        if target is None:
            continue
        own = tuple(str(row[3]) for row in parts)
        named = tuple(str(row[4]) for row in parts if row[4] is not None)
        referred = named if len(named) == len(own) else target.primary_key
        if len(referred) == len(own):
            yield ForeignKey(name, own, target.name, referred)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

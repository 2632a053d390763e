"""PostgreSQL: its transactions, its catalogue and its planner (postgresql.org/docs: catalogs).

Runs over pg8000. Programs go through the extended protocol, which takes one statement only, and
through a cursor, which takes a query only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine

from lynx_dspy.engines.server_schema import Catalogue, Relation, schema
from lynx_dspy.engines.vendors import BATCH, Query, Result, Run, Vendor, streamed
from lynx_dspy.values import Column, FailureClass, Finding, Limits, Row, Schema

_JSON_TYPES = (114, 3802)
_READABLE = """
    relation.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT relation.relispartition
    AND space.nspname NOT IN ('pg_catalog', 'information_schema')
    AND space.nspname NOT LIKE 'pg\\_toast%' AND space.nspname NOT LIKE 'pg\\_temp%'
    AND has_schema_privilege(space.oid, 'USAGE')
    AND has_any_column_privilege(relation.oid, 'SELECT')
"""
_RELATIONS = f"""
    SELECT space.nspname, relation.relname, obj_description(relation.oid, 'pg_class'),
           relation.relkind IN ('v', 'm'),
           CASE WHEN relation.relkind = 'v' THEN -1 ELSE relation.reltuples END::bigint,
           CASE WHEN relation.relkind IN ('r', 'm') THEN pg_relation_size(relation.oid)
                WHEN relation.relkind = 'p' THEN (SELECT SUM(pg_relation_size(relid))::bigint
                                                  FROM pg_partition_tree(relation.oid))
                ELSE 9223372036854775807 END,
           CASE WHEN relation.relkind = 'p' THEN pg_get_partkeydef(relation.oid) END,
           (SELECT COUNT(*) FROM pg_inherits WHERE inhparent = relation.oid)
    FROM pg_class AS relation JOIN pg_namespace AS space ON space.oid = relation.relnamespace
    WHERE {_READABLE} ORDER BY relation.oid
"""
_COLUMNS = f"""
    SELECT space.nspname, relation.relname, field.attname,
           CASE WHEN kind.typtype = 'd' THEN format_type(kind.typbasetype, kind.typtypmod)
                ELSE format_type(field.atttypid, field.atttypmod) END,
           NOT field.attnotnull, col_description(relation.oid, field.attnum)
    FROM pg_attribute AS field
    JOIN pg_class AS relation ON relation.oid = field.attrelid
    JOIN pg_namespace AS space ON space.oid = relation.relnamespace
    JOIN pg_type AS kind ON kind.oid = field.atttypid
    WHERE {_READABLE} AND field.attnum > 0 AND NOT field.attisdropped
    AND has_column_privilege(relation.oid, field.attnum, 'SELECT')
    ORDER BY relation.oid, field.attnum
"""
_KEYS = """
    SELECT bond.contype, bond.oid::text, space.nspname, relation.relname, field.attname,
           other_space.nspname, other.relname, other_field.attname
    FROM pg_constraint AS bond
    CROSS JOIN LATERAL unnest(bond.conkey, bond.confkey) WITH ORDINALITY AS part (own, ref, place)
    JOIN pg_class AS relation ON relation.oid = bond.conrelid
    JOIN pg_namespace AS space ON space.oid = relation.relnamespace
    JOIN pg_attribute AS field
        ON field.attrelid = bond.conrelid AND field.attnum = part.own
    LEFT JOIN pg_class AS other ON other.oid = bond.confrelid
    LEFT JOIN pg_namespace AS other_space ON other_space.oid = other.relnamespace
    LEFT JOIN pg_attribute AS other_field
        ON other_field.attrelid = bond.confrelid AND other_field.attnum = part.ref
    WHERE bond.contype IN ('p', 'f') AND NOT relation.relispartition
    ORDER BY relation.oid, bond.oid, part.place
"""
_STAMP = """
    SELECT current_database(), stats_reset, tup_inserted, tup_updated, tup_deleted,
           (SELECT COUNT(*) || ' ' || COALESCE(MAX(oid), 0) FROM pg_class)
    FROM pg_stat_database WHERE datname = current_database()
"""
_MANY_ROWS = 1_000_000_000


def _begin(limits: Limits) -> tuple[str, ...]:
    milliseconds = max(1, round(limits.timeout_seconds * 1000))
    return (f"BEGIN READ ONLY; SET LOCAL statement_timeout = {milliseconds}",)


def _message(error: BaseException) -> str:
    """`[SQLSTATE] message (hint)`, from pg8000's fields or another driver's attributes."""
    cause = getattr(error, "orig", None) or error
    told: Any = cause.args[0] if cause.args else ""
    if isinstance(told, dict):
        hint = f" ({told['H']})" if told.get("H") else ""
        return f"[{told.get('C', '')}] {told.get('M', '')}{hint}"
    state = getattr(cause, "sqlstate", None)
    return f"[{state}] {cause}" if state else str(cause)


@contextmanager
def _run(connection: Connection, code: str) -> Iterator[Result]:
    raw: Any = connection.connection.dbapi_connection
    if connection.dialect.driver != "pg8000":
        with streamed(connection, code) as result:
            yield result
        return
    for oid in _JSON_TYPES:
        raw.register_in_adapter(oid, str)
    raw.execute_unnamed(f"DECLARE lynx NO SCROLL CURSOR FOR {code}")
    fetch = f"FETCH FORWARD {BATCH} FROM lynx"
    first = raw.execute_unnamed(fetch)

    def rows() -> Iterator[Row]:
        batch = first.rows
        while batch:
            yield from map(tuple, batch)
            batch = raw.execute_unnamed(fetch).rows if len(batch) == BATCH else []

    yield tuple(column["name"] for column in first.columns), rows()


def _explain(run: Run, connection: Connection, code: str) -> tuple[Finding, ...]:
    """Errors are raised; what is found is a plan of more rows than anyone would wait for."""
    raw: Any = connection.connection.dbapi_connection
    text = f"EXPLAIN (FORMAT JSON) {code}"
    if connection.dialect.driver == "pg8000":
        plan = raw.execute_unnamed(text).rows[0][0]
    else:
        plan = connection.exec_driver_sql(text).scalar_one()
    tree = json.loads(plan) if isinstance(plan, str) else plan
    rows = max(_rows_of(tree[0]["Plan"]))
    if rows < _MANY_ROWS:
        return ()
    message = f"the planner expects to pass {rows:.0e} rows: filter or join on keys first"
    return (Finding(FailureClass.SEMANTIC, message),)


def _rows_of(node: dict[str, Any]) -> Iterator[float]:
    yield float(node["Plan Rows"])
    for child in node.get("Plans", ()):
        yield from _rows_of(child)


def _introspect(engine: Engine, query: Query, name: str) -> Schema:
    keys = query(_KEYS)
    relations = [
        Relation((space, table), _described(comment, partition, parts), bool(view), rows, size or 0)
        for space, table, comment, view, rows, size, partition, parts in query(_RELATIONS)
    ]
    home, reader = query("SELECT current_schema(), current_user")[0]
    read = Catalogue(
        "postgres",
        name,
        home or "",
        relations,
        [
            ((space, table), Column(column, kind, comment or "", bool(nullable)))
            for space, table, column, kind, nullable, comment in query(_COLUMNS)
        ],
        [((k[2], k[3]), k[4]) for k in keys if k[0] == "p"],
        [(k[1], (k[2], k[3]), k[4], (k[5], k[6]), k[7]) for k in keys if k[0] == "f"],
    )
    return schema(read, query, reader)


def _described(comment: str | None, partition: str | None, parts: int) -> str:
    """The comment, with how a partitioned table is cut: a filter on that reads less.

    >>> _described("sales", "RANGE (day)", 12)
    'sales; partitioned by RANGE (day), 12 partitions'
    """
    cut = f"partitioned by {partition}, {parts} partitions" if partition else ""
    return "; ".join(filter(None, (comment, cut)))


VENDOR = Vendor(
    name="postgres",
    begin=_begin,
    message=_message,
    introspect=_introspect,
    opening=(
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "SET standard_conforming_strings = on",
        "SET cursor_tuple_fraction = 1.0",
    ),
    identify="SELECT pg_backend_pid()",
    cancel="SELECT pg_cancel_backend({})",
    stamp=_STAMP,
    run=_run,
    cursors=True,
    explain=_explain,
)

"""A DuckDB catalogue as a `Schema`: types, keys, comments, namespaces and row counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from lynx_dspy.errors import DatabaseError
from lynx_dspy.grounding.sources.naming import distinct_names
from lynx_dspy.values import Column, ForeignKey, Row, Schema, Table

Query = Callable[[str], list[Row]]
_Name = tuple[str, str]

_MAIN = "main"
_OBJECTS = """
    SELECT schema_name, table_name, comment, false FROM duckdb_tables()
    WHERE database_name = current_database() AND NOT internal
    UNION ALL
    SELECT schema_name, view_name, comment, true FROM duckdb_views()
    WHERE database_name = current_database() AND NOT internal
"""
_COLUMNS = """
    SELECT schema_name, table_name, column_name, data_type, is_nullable, comment
    FROM duckdb_columns() WHERE database_name = current_database() AND NOT internal
    ORDER BY table_oid, column_index
"""
_CONSTRAINTS = """
    SELECT schema_name, table_name, constraint_type, constraint_column_names,
           referenced_table, referenced_column_names
    FROM duckdb_constraints() WHERE database_name = current_database()
    AND constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY') ORDER BY table_oid, constraint_index
"""
_COUNTS_A_QUERY = 50


def introspect(query: Query, name: str) -> Schema:
    """The structure of the database that `query` reads. Raises `DatabaseError`."""
    columns: dict[_Name, list[Column]] = defaultdict(list)
    for space, table, column, kind, nullable, comment in query(_COLUMNS):
        columns[space, table].append(Column(column, kind, comment or "", bool(nullable)))
    constraints = query(_CONSTRAINTS)
    keys = {(c[0], c[1]): tuple(c[3]) for c in constraints if c[2] == "PRIMARY KEY"}
    objects = query(_OBJECTS)
    counts = _row_counts(query, [(space, table) for space, table, _, view in objects if not view])
    stored = tuple(
        Table(
            name=table,
            columns=tuple(columns[space, table]),
            description=comment or "",
            namespace="" if space == _MAIN else space,
            primary_key=keys.get((space, table), ()),
            row_count=counts.get((space, table)),
            is_view=bool(view),
            path=(table,) if space == _MAIN else (space, table),
        )
        for space, table, comment, view in objects
        if columns[space, table]
    )
    if not stored:
        raise DatabaseError(f"{name} holds no tables that can be read. Name another database.")
    tables = distinct_names(stored)
    named = {(t.namespace or _MAIN, t.parts[-1]): t.name for t in tables}
    return Schema("duckdb", tables, tuple(_foreign_keys(constraints, named)), name)


def _foreign_keys(constraints: list[Row], named: dict[_Name, str]) -> Iterator[ForeignKey]:
    """Both ends of a key are in one schema: DuckDB has no others."""
    for space, table, kind, columns, ref_table, ref_columns in constraints:
        if kind == "FOREIGN KEY" and {(space, table), (space, ref_table)} <= named.keys():
            yield ForeignKey(
                named[space, table], tuple(columns), named[space, ref_table], tuple(ref_columns)
            )


def _row_counts(query: Query, names: list[_Name]) -> dict[_Name, int]:
    """Exact counts; DuckDB takes them from its metadata."""
    counts: dict[_Name, int] = {}
    for start in range(0, len(names), _COUNTS_A_QUERY):
        some = names[start : start + _COUNTS_A_QUERY]
        counted = (f"(SELECT count(*) FROM {quote(s)}.{quote(t)})" for s, t in some)
        counts.update(zip(some, query("SELECT " + ", ".join(counted))[0], strict=True))
    return counts


def quote(name: str) -> str:
    """An identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'

"""A Snowflake database as a `Schema`, from its INFORMATION_SCHEMA and the declared keys.

Snowflake stores a bare name in upper case; here names are as they are stored. Primary and foreign
keys are declared only, never enforced. Source: docs.snowflake.com/sql-reference/info-schema.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from lynx_dspy.engines.cloud_schema import partitioned, with_note
from lynx_dspy.errors import DatabaseError
from lynx_dspy.grounding.identifiers import quote
from lynx_dspy.grounding.sources.naming import distinct_names
from lynx_dspy.values import Column, ForeignKey, Schema, Table

Records = Callable[[str], list[dict[str, Any]]]
"""Rows of a trusted query, by the names of their columns in lower case."""
_Name = tuple[str, str]

STAMP = """
    SELECT COUNT(*), MAX(last_altered), SUM(row_count) FROM {database}.INFORMATION_SCHEMA.TABLES
    WHERE table_schema <> 'INFORMATION_SCHEMA'
"""
"""Snowflake notes each change of a table's rows as its time of alteration."""

_TABLES = """
    SELECT table_schema, table_name, table_type, row_count, clustering_key, comment
    FROM {database}.INFORMATION_SCHEMA.TABLES
    WHERE table_schema <> 'INFORMATION_SCHEMA' {only} ORDER BY table_schema, table_name
"""
_COLUMNS = """
    SELECT table_schema, table_name, column_name, data_type, numeric_precision, numeric_scale,
           is_nullable, comment
    FROM {database}.INFORMATION_SCHEMA.COLUMNS
    WHERE table_schema <> 'INFORMATION_SCHEMA' {only}
    ORDER BY table_schema, table_name, ordinal_position
"""
_PRIMARY = "SHOW PRIMARY KEYS IN {place}"
_FOREIGN = "SHOW IMPORTED KEYS IN {place}"


def schema(records: Records, database: str, only: str = "") -> Schema:
    """The tables of `database`, or of its schema `only`. Raises `DatabaseError`."""
    where = f"AND table_schema = '{_escaped(only)}'" if only else ""
    asked = {"database": quote(database, "snowflake"), "only": where}
    names = [quote(name, "snowflake") for name in (database, only) if name]
    place = f"{'SCHEMA' if only else 'DATABASE'} {'.'.join(names)}"
    columns = _columns(records(_COLUMNS.format(**asked)))
    primary = _primary(records(_PRIMARY.format(place=place)))
    found = []
    for record in records(_TABLES.format(**asked)):
        name = (record["table_schema"], record["table_name"])
        if name in columns:
            found.append(_table(database, record, columns[name], primary.get(name, ())))
    if not found:
        shown = ".".join(filter(None, (database, only)))
        raise DatabaseError(f"{shown} holds no tables that this role can see. Name another.")
    tables = distinct_names(found)
    named = {(t.parts[1], t.parts[2]): t.name for t in tables}
    keys = tuple(_foreign(records(_FOREIGN.format(place=place)), database, named))
    return Schema("snowflake", tables, keys, only or database)


def _table(
    database: str, record: Mapping[str, Any], columns: list[Column], primary: tuple[str, ...]
) -> Table:
    space, name = record["table_schema"], record["table_name"]
    clustering, count = record["clustering_key"], record["row_count"]
    return Table(
        name=name,
        columns=tuple(columns),
        description=with_note(
            record["comment"], partitioned("", [clustering] if clustering else [])
        ),
        namespace=f"{database}.{space}",
        primary_key=primary,
        row_count=None if count is None else int(count),
        is_view="VIEW" in str(record["table_type"]).upper(),
        path=(database, space, name),
    )


def _columns(records: Iterable[Mapping[str, Any]]) -> Mapping[_Name, list[Column]]:
    found: dict[_Name, list[Column]] = defaultdict(list)
    for record in records:
        column = Column(
            name=record["column_name"],
            type=_type(record),
            description=" ".join((record["comment"] or "").split()),
            nullable=record["is_nullable"] == "YES",
        )
        found[record["table_schema"], record["table_name"]].append(column)
    return dict(found)


def _type(record: Mapping[str, Any]) -> str:
    kind, precision = record["data_type"], record["numeric_precision"]
    if kind not in ("NUMBER", "DECIMAL") or precision is None:
        return str(kind)
    return f"{kind}({precision}, {record['numeric_scale'] or 0})"


def _primary(records: Iterable[Mapping[str, Any]]) -> Mapping[_Name, tuple[str, ...]]:
    found: dict[_Name, list[tuple[int, str]]] = defaultdict(list)
    for record in records:
        place = (int(record["key_sequence"]), record["column_name"])
        found[record["schema_name"], record["table_name"]].append(place)
    return {name: tuple(column for _, column in sorted(key)) for name, key in found.items()}


def _foreign(
    records: Iterable[Mapping[str, Any]], database: str, named: Mapping[_Name, str]
) -> Iterator[ForeignKey]:
    """A record a column, grouped into keys; both ends must be tables of the schema."""
    keys: dict[tuple[str, ...], list[Mapping[str, Any]]] = defaultdict(list)
    ends = ("fk_schema_name", "fk_table_name", "pk_schema_name", "pk_table_name", "fk_name")
    for record in records:
        if record["pk_database_name"] == record["fk_database_name"] == database:
            keys[tuple(str(record[end]) for end in ends)].append(record)
    for (here_space, here, there_space, there, _), parts in keys.items():
        own, other = named.get((here_space, here)), named.get((there_space, there))
        if own is None or other is None:
            continue
        parts.sort(key=lambda record: int(record["key_sequence"]))
        columns = tuple(str(record["fk_column_name"]) for record in parts)
        yield ForeignKey(own, columns, other, tuple(str(r["pk_column_name"]) for r in parts))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "''")

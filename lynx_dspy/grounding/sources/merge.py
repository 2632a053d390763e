"""Sources that describe one database become one schema; where they differ is said, not raised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from lynx_dspy.grounding.resolver import Candidates, find_table
from lynx_dspy.grounding.sources.naming import distinct_names
from lynx_dspy.values import Column, ForeignKey, Schema, Table

Field = Literal["missing table", "missing column", "unclear table", "type", "primary key"]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Where a later source says something else: `kept` stands in the schema, `dropped` does not."""

    table: str
    column: str
    field: Field
    kept: str
    dropped: str

    def __str__(self) -> str:
        place = f"{self.table}.{self.column}" if self.column else self.table
        if self.field.startswith("missing"):
            return f"{place}: described, but not in the database; left out"
        if self.field == "unclear table":
            return f"{place}: could be {self.kept}; left out. Write more of its path"
        return f"{place}: {self.field} is {self.kept or 'none'}, not {self.dropped or 'none'}"


@dataclass(frozen=True, slots=True)
class Merged:
    """One schema out of several sources, and where these differ."""

    schema: Schema
    conflicts: tuple[Conflict, ...] = ()


def merge(base: Schema, *others: Schema, additive: bool = False) -> Merged:
    """`base` with what `others` know beyond it, in their order.

    `base` decides which tables and columns exist, their types and case (a live database); with
    `additive` tables and columns of the others are added. Descriptions come from the last source
    that has one, samples from the first; keys are added up.
    """
    conflicts: list[Conflict] = []
    for other in others:
        base = _merged(base, other, additive, conflicts)
    return Merged(base, tuple(conflicts))


def _merged(base: Schema, other: Schema, additive: bool, conflicts: list[Conflict]) -> Schema:
    tables = {table.name: table for table in base.tables}
    names: dict[str, str] = {}
    added: list[Table] = []
    for table in other.tables:
        own = table_of(base, table)
        if isinstance(own, Candidates) and own.exact:
            kept = " or ".join(own.names)
            conflicts.append(Conflict(table.name, "", "unclear table", kept, table.name))
        elif isinstance(own, Table):
            names[table.name] = own.name
            tables[own.name] = _table(tables[own.name], table, additive, conflicts)
        elif additive:
            names[table.name] = table.name
            added.append(table)
        else:
            conflicts.append(Conflict(table.name, "", "missing table", "", table.name))
    held = distinct_names([*tables.values(), *added]) if added else tuple(tables.values())
    keys = dict.fromkeys(base.foreign_keys)
    for key in _keys(other, names, held):
        if not any(_same(key, known) for known in keys):
            keys[key] = None
    return replace(base, tables=held, foreign_keys=tuple(keys))


def table_of(schema: Schema, table: Table) -> Table | Candidates:
    """The table of `schema` that another source's `table` is: by its path, else by its end."""
    called: Candidates | None = None
    for start in range(len(table.parts)):
        found = find_table(schema, table.parts[start:])
        if isinstance(found, Table):
            return found
        called = called or found
    return called or Candidates()


def _table(own: Table, said: Table, additive: bool, conflicts: list[Conflict]) -> Table:
    described = {column.name.casefold(): column for column in said.columns}
    columns = [
        _column(own.name, c, described.pop(c.name.casefold()), conflicts)
        if c.name.casefold() in described
        else c
        for c in own.columns
    ]
    for column in described.values():
        if additive:
            columns.append(column)
        else:
            conflicts.append(Conflict(own.name, column.name, "missing column", "", column.name))
    key = own.primary_key or _spelled(said.primary_key, columns)
    if said.primary_key and _folded(key) != _folded(said.primary_key):
        conflicts.append(
            Conflict(own.name, "", "primary key", ", ".join(key), ", ".join(said.primary_key))
        )
    return replace(
        own,
        columns=tuple(columns),
        description=said.description or own.description,
        primary_key=key,
        row_count=said.row_count if own.row_count is None else own.row_count,
    )


def _column(table: str, own: Column, said: Column, conflicts: list[Conflict]) -> Column:
    if own.type and said.type and _family(own.type) != _family(said.type):
        conflicts.append(Conflict(table, own.name, "type", own.type, said.type))
    return replace(
        own,
        type=own.type or said.type,
        description=said.description or own.description,
        samples=own.samples or said.samples,
        nullable=own.nullable and said.nullable,
    )


_FAMILIES = {
    "whole": ("INT", "SERIAL", "LONG"),
    "number": ("NUM", "DEC", "REAL", "FLOAT", "DOUBLE", "MONEY"),
    "text": ("CHAR", "TEXT", "STRING", "CLOB", "UUID", "ENUM"),
    "time": ("DATE", "TIME", "YEAR"),
    "flag": ("BOOL", "BIT"),
}
_ONE_KIND = {"whole": "number", "flag": "number"}
"""SQLite and Snowflake store whole numbers and flags as numbers: that is no contradiction."""


def _family(kind: str) -> str:
    upper = kind.upper()
    for family, marks in _FAMILIES.items():
        if any(mark in upper for mark in marks):
            return _ONE_KIND.get(family, family)
    return upper.split("(")[0].split("<")[0]


def _spelled(names: tuple[str, ...], columns: list[Column]) -> tuple[str, ...]:
    stored = {column.name.casefold(): column.name for column in columns}
    found = tuple(stored[n.casefold()] for n in names if n.casefold() in stored)
    return found if len(found) == len(names) else ()


def _folded(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.casefold() for name in names)


def _keys(other: Schema, names: dict[str, str], held: tuple[Table, ...]) -> Iterator[ForeignKey]:
    """The other's keys between tables that are held, in the spelling of these."""
    tables = {table.name: table for table in held}
    for key in other.foreign_keys:
        left = tables.get(names.get(key.table, ""))
        right = tables.get(names.get(key.ref_table, ""))
        if left is None or right is None:
            continue
        columns = _spelled(key.columns, list(left.columns))
        refs = _spelled(key.ref_columns, list(right.columns))
        if columns and refs:
            yield replace(
                key, table=left.name, columns=columns, ref_table=right.name, ref_columns=refs
            )


def _same(one: ForeignKey, two: ForeignKey) -> bool:
    return (one.table, one.columns, one.ref_table, one.ref_columns) == (
        two.table,
        two.columns,
        two.ref_table,
        two.ref_columns,
    )

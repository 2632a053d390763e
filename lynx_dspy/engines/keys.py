"""How tables can be joined: declared keys, inferred keys, and the only path between two tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lynx_dspy.values import Schema, Table

_KEY_ENDINGS = ("id", "_key", "code", "_no", "_num", "number", "_name")


@dataclass(frozen=True, slots=True)
class Edge:
    """`table.columns` equal `other.other_columns` in a join."""

    table: str
    columns: tuple[str, ...]
    other: str
    other_columns: tuple[str, ...]

    def flipped(self) -> Edge:
        """The same join, read from the other side."""
        return Edge(self.other, self.other_columns, self.table, self.columns)


def edges(schema: Schema, table: str) -> tuple[Edge, ...]:
    """All ways to join `table` with another one: foreign keys, else columns of one name that are
    a key of one side."""
    found: list[Edge] = []
    folded = table.casefold()
    for key in schema.foreign_keys:
        edge = Edge(key.table, key.columns, key.ref_table, key.ref_columns)
        if key.table.casefold() == folded:
            found.append(edge)
        elif key.ref_table.casefold() == folded:
            found.append(edge.flipped())
    joined = {edge.other.casefold() for edge in found} | {folded}
    own = schema.table(table)
    for other in schema.tables if own else ():
        if own and other.name.casefold() not in joined:
            found += _by_name(own, other)
    return tuple(found)


def between(schema: Schema, table: str, other: str) -> tuple[Edge, ...]:
    """The direct joins of two tables, as edges that start at `table`."""
    folded = other.casefold()
    return tuple(e for e in edges(schema, table) if e.other.casefold() == folded)


def only_path(
    schema: Schema, starts: Iterable[str], target: str, longest: int = 2
) -> tuple[Edge, ...] | None:
    """The shortest chain of joins from any of `starts` to `target`, if it is the only shortest.

    At most `longest` joins; None if there is none or more than one of that length.
    """
    paths: list[tuple[Edge, ...]] = [
        (edge,) for start in dict.fromkeys(starts) for edge in edges(schema, start)
    ]
    goal = target.casefold()
    for _ in range(longest):
        hits = {path for path in paths if path[-1].other.casefold() == goal}
        if hits:
            return next(iter(hits)) if len(hits) == 1 else None
        paths = [
            (*path, edge)
            for path in paths
            for edge in edges(schema, path[-1].other)
            if edge.other.casefold() not in {e.table.casefold() for e in path}
        ]
    return None


def only_key(table: Table) -> str | None:
    """The column that names a row: the primary key, else the only unique column ending in id."""
    if len(table.primary_key) == 1:
        return table.primary_key[0]
    unique = [
        c.name
        for c in table.columns
        if c.name.casefold().endswith("id") and table.row_count and c.distinct == table.row_count
    ]
    return unique[0] if len(unique) == 1 and not table.primary_key else None


def _by_name(own: Table, other: Table) -> list[Edge]:
    shared = [c.name for c in own.columns if other.column(c.name)]
    keys = [name for name in shared if _is_key(own, name) or _is_key(other, name)]
    return [Edge(own.name, (n,), other.name, (_spelled(other, n),)) for n in keys]


def _is_key(table: Table, name: str) -> bool:
    """A column that tells rows apart, called so that other tables may refer to it."""
    column = table.column(name)
    folded = name.casefold()
    if column is None or folded == "id" or not folded.endswith(_KEY_ENDINGS):
        return False
    if [k.casefold() for k in table.primary_key] == [folded]:
        return True
    return bool(table.row_count) and column.distinct == table.row_count


def _spelled(table: Table, name: str) -> str:
    column = table.column(name)
    return column.name if column else name

"""From a name as a model wrote it to the one element meant, or the candidates (paper, III-A2).

Exact names win over names that differ in case only, full paths over their ends, and what is written
over what is merely alike.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from lynx_dspy.engines.names import nearest
from lynx_dspy.grounding.identifiers import full_name, shown
from lynx_dspy.grounding.recent import Recent
from lynx_dspy.values import Column, Schema, Table

_PART = re.compile(r'"((?:[^"]|"")*)"|`((?:[^`]|``)*)`|\[([^\]]*)\]|([^."`\[\]]+)')
_MOST = 8
"""Candidates given at most."""

_Folded = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A column with its table."""

    table: Table
    column: Column


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a name could mean, best first, each as a program should write it; maybe none.

    `exact` says that each of them is called so, and only more of the path can tell them apart.
    """

    names: tuple[str, ...] = ()
    exact: bool = False


Resolved = Table | Place | Candidates


def resolve(schema: Schema, written: str, *, table: Table | None = None) -> Resolved:
    """The element of `schema` that `written` means, else what it could mean.

    `written` is a name of any length, quoted or not: `events`, `a.b.events`, `` `a.b.events` ``,
    `events.user_id`, `"Order Details"."Unit Price"`, `event_params.value.int_value`. A table is
    preferred to a column of the same name. With `table` only its columns are meant.

    >>> shop = Schema("sqlite", (Table("orders", (Column("id", "INT"),)),))
    >>> resolve(shop, "ORDERS") == shop.tables[0], resolve(shop, "orders.id").column.name
    (True, 'id')
    >>> resolve(shop, "order").names
    ('orders',)
    """
    parts = split_name(written)
    if not parts:
        return Candidates()
    if table is not None:
        return _one(_columns(table, parts), schema) or _near_columns(schema, [table], parts)
    # The index holds its schema, so no other one can get this id while it is kept.
    index = _indexes.get(id(schema), lambda: _Index(schema))
    return (
        _one(index.tables_called(parts), schema)
        or _one(list(index.places_called(parts)), schema)
        or _near(schema, index, parts)
    )


def find_table(schema: Schema, parts: tuple[str, ...]) -> Table | Candidates | None:
    """The table whose path ends in `parts`, those that do if there are several; None for none."""
    found = _one(_indexes.get(id(schema), lambda: _Index(schema)).tables_called(parts), schema)
    return found if not isinstance(found, Place) else None


def split_name(written: str) -> tuple[str, ...]:
    """The parts of a name without quotes; a path that is quoted as a whole is split too.

    >>> split_name('`web-data.ga4.events_*`'), split_name('"Order Details".[Unit Price]')
    (('web-data', 'ga4', 'events_*'), ('Order Details', 'Unit Price'))
    """
    parts: list[str] = []
    for double, back, square, bare in _PART.findall(written.strip()):
        if back:
            parts += back.replace("``", "`").split(".")
        else:
            parts.append(double.replace('""', '"') or square or bare)
    return tuple(part.strip() for part in parts if part.strip())


@dataclass(slots=True)
class _Index:
    """Tables and columns by their folded last names."""

    schema: Schema
    tables: dict[str, list[Table]] = field(default_factory=lambda: defaultdict(list))
    columns: dict[str, list[Place]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for table in self.schema.tables:
            self.tables[table.parts[-1].casefold()].append(table)
            for column in table.columns:
                self.columns[column.name.casefold()].append(Place(table, column))

    def tables_called(self, parts: _Folded) -> list[Table]:
        """Tables whose path ends in `parts`; those spelled exactly so, if there are any."""
        for ends in dict.fromkeys((parts, (".".join(parts),))):
            called = [t for t in self.tables.get(ends[-1].casefold(), ()) if _ends(t.parts, ends)]
            if called:
                return _exact([(t, t.parts[-len(ends) :] == ends) for t in called])
        return []

    def places_called(self, parts: _Folded) -> Iterator[Place]:
        """Columns called so: after a table's name, else by themselves, else the end of a path."""
        for cut in range(len(parts) - 1, 0, -1):
            for table in self.tables_called(parts[:cut]):
                found = _columns(table, parts[cut:])
                if found:
                    yield from found
                    return
        name = ".".join(parts).casefold()
        inner = (self.columns[key] for key in self.columns if key.endswith(f".{name}"))
        yield from self.columns.get(name) or (place for places in inner for place in places)


_indexes: Recent[_Index] = Recent(size=8)
_Item = TypeVar("_Item")


def _ends(path: _Folded, end: _Folded) -> bool:
    tail = path[-len(end) :]
    return len(tail) == len(end) and all(
        a.casefold() == b.casefold() for a, b in zip(tail, end, strict=True)
    )


def _exact(found: list[tuple[_Item, bool]]) -> list[_Item]:
    return [item for item, same in found if same] or [item for item, _ in found]


def _columns(table: Table, parts: _Folded) -> list[Place]:
    name = ".".join(parts)
    called = [c for c in table.columns if c.name.casefold() == name.casefold()]
    return _exact([(Place(table, c), c.name == name) for c in called])


def _one(found: list[Table] | list[Place], schema: Schema) -> Resolved | None:
    """The only one found, the ones found as candidates, or None if there is none."""
    if len(found) == 1:
        return found[0]
    names = dict.fromkeys(_name(item, schema) for item in found)
    return Candidates(tuple(names)[:_MOST], exact=True) if found else None


def _name(item: Table | Place, schema: Schema) -> str:
    if isinstance(item, Table):
        return full_name(item, schema.dialect)
    return f"{full_name(item.table, schema.dialect)}.{shown(item.column.name, schema.dialect)}"


def _near(schema: Schema, index: _Index, parts: _Folded) -> Candidates:
    """Names alike: columns of the table that is named, else tables, else columns."""
    for cut in range(len(parts) - 1, 0, -1):
        tables = index.tables_called(parts[:cut])
        if tables:
            return _near_columns(schema, tables, parts[cut:])
    names = {t.parts[-1]: t for t in schema.tables}
    tables = [names[near] for near in nearest(parts[-1], names)]
    columns = {p[0].column.name: p for p in index.columns.values()}
    places = [place for near in nearest(parts[-1], columns) for place in columns[near]]
    found = [_name(t, schema) for t in tables] + [_name(p, schema) for p in places]
    return Candidates(tuple(dict.fromkeys(found))[:_MOST])


def _near_columns(schema: Schema, tables: list[Table], parts: _Folded) -> Candidates:
    """Alike columns of these tables; a nested field may be written by its last names only."""
    name, last = ".".join(parts), f".{parts[-1].casefold()}"
    found = []
    for table in tables:
        inner = [c.name for c in table.columns if c.name.casefold().endswith(last)]
        alike = (*inner, *nearest(name, (c.name for c in table.columns)))
        found += [_name(Place(table, c), schema) for c in map(table.column, alike) if c is not None]
    return Candidates(tuple(dict.fromkeys(found))[:_MOST])

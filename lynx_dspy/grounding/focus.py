"""What a question needs of a schema: how near each table is, and which columns stay with it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lynx_dspy.engines.identity import by_identity
from lynx_dspy.grounding.keys import joins, neighbours
from lynx_dspy.values import ForeignKey, Link, Schema, Table

UNREACHED = 99.0
"""The distance of a table that no join path connects with what the question names."""

_NEAR = 0.99
_STAYING = 6
"""So many linked columns of a table, the surest ones, are shown whenever the table is."""

_FAN = 4
"""So many columns of one table that refer to the same column are told in one line."""

_Column = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What rendering asks of a schema again and again; names are folded."""

    tables: Mapping[str, Table]
    fans: Mapping[str, Sequence[Sequence[ForeignKey]]]
    """Joins by the table that refers: alone, or together where many lead to the same column."""

    @staticmethod
    @by_identity(16)
    def of(schema: Schema) -> Layout:
        """The layout of `schema`, made once."""
        fans: dict[tuple[str, ...], list[ForeignKey]] = defaultdict(list)
        for key in joins(schema):
            ends = (key.table, key.ref_table, *key.ref_columns)
            fans[tuple(map(str.casefold, ends))].append(key)
        by_table: dict[str, list[list[ForeignKey]]] = defaultdict(list)
        for (table, *_), keys in fans.items():
            by_table[table] += [keys] if len(keys) >= _FAN else [[key] for key in keys]
        return Layout({t.name.casefold(): t for t in schema.tables}, by_table)

    def fans_between(self, names: Collection[str]) -> Iterator[Sequence[ForeignKey]]:
        """The joins whose both tables are among `names`."""
        for name in names:
            yield from (f for f in self.fans.get(name, ()) if f[0].ref_table.casefold() in names)

    def key_columns(self, near: Collection[str]) -> Iterator[_Column]:
        """Columns that join near tables with each other, and of far tables those that lead here."""
        for key in (fan[0] for fans in self.fans.values() for fan in fans):
            left, right = key.table.casefold(), key.ref_table.casefold()
            if right in near:
                yield from ((left, c.casefold()) for c in key.columns)
            if left in near:
                yield from ((right, c.casefold()) for c in key.ref_columns)


@dataclass(frozen=True, slots=True)
class Focus:
    """What the question is about: distances of tables, and the columns that stay longest."""

    distance: Mapping[str, float]
    linked: frozenset[_Column]
    staying: frozenset[_Column]
    """The surest linked columns of each table: shown whenever their table is."""

    valued: frozenset[_Column]
    """Columns that store a value of the question."""

    keys: frozenset[_Column]
    """Columns by which tables are joined with those that are near."""

    def is_far(self, table: Table) -> bool:
        return self.distance[table.name] >= 1


def focus(schema: Schema, keep: Collection[str], links: Sequence[Link]) -> Focus:
    """Linked tables are nearer than 1, by confidence; others are as many joins away as it takes.

    `keep` holds tables and columns (`orders.total`) that the question needs.
    """
    layout = Layout.of(schema)
    kept = frozenset(_columns(layout, keep))
    near = {layout.tables[n].name for n in map(str.casefold, keep) if n in layout.tables}
    near |= {layout.tables[table].name for table, _ in kept}
    if not near:
        named = {x.table.casefold() for x in links}
        near = {layout.tables[n].name for n in named if n in layout.tables}
    distance = _distances(schema, near or {t.name for t in schema.tables})
    for one in links:
        if distance.get(one.table, 1) < 1:
            distance[one.table] = min(distance[one.table], _NEAR - 0.9 * one.confidence)
    linked = frozenset(_place(x) for x in links if x.column)
    valued = frozenset(_place(x) for x in links if x.value)
    reached = {t.casefold() for t, d in distance.items() if d < 1}
    return Focus(
        distance,
        linked | kept,
        frozenset(_surest(links)) | valued | kept,
        valued,
        frozenset(layout.key_columns(reached)),
    )


def _place(link: Link) -> _Column:
    return (link.table.casefold(), link.column.casefold())


def _columns(layout: Layout, names: Collection[str]) -> Iterator[_Column]:
    """The columns among `names`; tables and columns may have dots in their own names."""
    for name in map(str.casefold, names):
        for i, letter in enumerate(name):
            table = layout.tables.get(name[:i]) if letter == "." else None
            if table is not None and table.column(name[i + 1 :]):
                yield (name[:i], name[i + 1 :])


def _surest(links: Sequence[Link]) -> Iterator[_Column]:
    """The first linked columns of each table; links come best first."""
    seen: dict[str, set[str]] = defaultdict(set)
    for link in links:
        table, column = _place(link)
        if column and len(seen[table]) < _STAYING:
            seen[table].add(column)
            yield (table, column)


def _distances(schema: Schema, near: set[str]) -> dict[str, float]:
    distance = dict.fromkeys((t.name for t in schema.tables), UNREACHED)
    distance |= dict.fromkeys(near, _NEAR)
    beside = neighbours(schema)
    queue = deque(near)
    while queue:
        table = queue.popleft()
        for other in beside[table]:
            if distance[other] == UNREACHED:
                distance[other] = int(distance[table] + 1)
                queue.append(other)
    return distance

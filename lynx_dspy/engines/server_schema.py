"""From the rows of a server's catalogue to a `Schema`: the same for every kind of server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lynx_dspy.errors import DatabaseError
from lynx_dspy.grounding.identifiers import quote
from lynx_dspy.grounding.sources.naming import distinct_names
from lynx_dspy.values import Column, ForeignKey, Row, Schema, Table

Place = tuple[str, str]
"""Where a table is: its schema and its name."""

COUNTED_BYTES = 1_000_000
"""Tables up to this size are counted; of larger ones the server's own estimate is taken."""

_COUNTS_A_QUERY = 50


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view as the catalogue has it; `estimate` is -1 where the server has none."""

    place: Place
    comment: str = ""
    is_view: bool = False
    estimate: int = -1
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What was read of a database; `home` is the schema whose tables need no prefix."""

    dialect: str
    name: str
    home: str
    relations: Sequence[Relation]
    columns: Iterable[tuple[Place, Column]]
    primary: Iterable[tuple[Place, str]] = ()
    foreign: Iterable[tuple[str, Place, str, Place, str]] = field(default=())
    """Name of the constraint, table, column, table referred to, column referred to; in order."""


def schema(read: Catalogue, query: Callable[[str], list[Row]], reader: str) -> Schema:
    """The canonical form. Raises `DatabaseError` if `reader` may read no table."""
    columns: dict[Place, list[Column]] = defaultdict(list)
    for place, column in read.columns:
        columns[place].append(column)
    keys: dict[Place, list[str]] = defaultdict(list)
    for place, name in read.primary:
        keys[place].append(name)
    held = [relation for relation in read.relations if columns[relation.place]]
    if not held:
        raise DatabaseError(
            f"{read.name} holds no tables that {reader or 'this account'} may read. "
            "Grant SELECT on them, or name another database."
        )
    counts = _row_counts(read, held, query)
    tables = distinct_names(
        Table(
            name=r.place[1],
            columns=tuple(columns[r.place]),
            description=r.comment,
            namespace="" if r.place[0] == read.home else r.place[0],
            primary_key=tuple(keys[r.place]),
            row_count=counts.get(r.place),
            is_view=r.is_view,
            path=(r.place[1],) if r.place[0] == read.home else r.place,
        )
        for r in held
    )
    named = {(t.namespace or read.home, t.parts[-1]): t.name for t in tables}
    return Schema(read.dialect, tables, tuple(_foreign_keys(read.foreign, named)), read.name)


def _foreign_keys(
    rows: Iterable[tuple[str, Place, str, Place, str]], named: dict[Place, str]
) -> Iterator[ForeignKey]:
    pairs: dict[tuple[str, Place, Place], list[tuple[str, str]]] = defaultdict(list)
    for name, place, column, target, key in rows:
        pairs[name, place, target].append((column, key))
    for (_, place, target), both in pairs.items():
        if place in named and target in named:
            own, other = zip(*both, strict=True)
            yield ForeignKey(named[place], own, named[target], other)


def _row_counts(
    read: Catalogue, held: Sequence[Relation], query: Callable[[str], list[Row]]
) -> dict[Place, int]:
    """Exact counts of small tables, estimates of large ones, none of views."""
    tables = [r for r in held if not r.is_view]
    counts = {r.place: r.estimate for r in tables if r.estimate >= 0}
    small = [r.place for r in tables if r.bytes <= COUNTED_BYTES]
    for start in range(0, len(small), _COUNTS_A_QUERY):
        some = small[start : start + _COUNTS_A_QUERY]
        names = (".".join(quote(part, read.dialect) for part in place) for place in some)
        asked = ", ".join(f"(SELECT COUNT(*) FROM {name})" for name in names)
        try:
            counts.update(zip(some, map(int, query(f"SELECT {asked}")[0]), strict=True))
        except DatabaseError:  # a table that was dropped meanwhile, or may not be read as a whole
            continue
    return counts

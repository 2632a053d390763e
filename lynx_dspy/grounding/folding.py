"""Tables of one form folded into one unit a group: a table a day, a year, a region (III-A2).

As in Spider 2.0's own grouping, tables belong together that stand in one namespace, whose names
differ in digits only and which have the same columns; in what order does not matter. Here tables
that share most of their columns come together too, and the unit says which are not in all of them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from lynx_dspy.engines.identity import by_identity
from lynx_dspy.values import Column, ForeignKey, Schema, Table

MOST_ALIKE = 0.7
"""Tables that share so much of all their columns are one group."""

_DIGITS = re.compile(r"(\d+)")
_NAMED = 3
"""So many members are named one by one."""

_DIFFERING = 6
"""So many columns that are not in all members are named."""

_Fields = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Group:
    """Tables that one unit stands for; `members` are their names in natural order.

    `partial` counts the members that have a column of the unit, where not all have it.
    """

    unit: str
    members: tuple[str, ...]
    reading: str
    partial: Mapping[str, int] = field(default_factory=dict)

    @property
    def note(self) -> str:
        """What a model must know to read the members, in one line."""
        n, first, last = len(self.members), self.members[0], self.members[-1]
        span = ", ".join(self.members) if n <= _NAMED else f"{n} tables, {first} to {last}"
        return f"{self.unit} stands for {span}: {self.reading}{self._differing()}"

    def _differing(self) -> str:
        if not self.partial:
            return ""
        rare = sorted(self.partial.items(), key=lambda item: -item[1])
        named = ", ".join(f"{name} ({n})" for name, n in rare[:_DIFFERING])
        more = f" and {len(rare) - _DIFFERING} more" if len(rare) > _DIFFERING else ""
        return f"; not in all of them (in how many): {named}{more}"


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """A schema of units: tables as they are, and one table for each group."""

    schema: Schema
    groups: Mapping[str, Group] = field(default_factory=dict)
    """By the name of the unit."""

    @property
    def notes(self) -> dict[str, str]:
        """What must be said of each unit that stands for several tables."""
        return {unit: group.note for unit, group in self.groups.items()}

    def members(self, unit: str) -> tuple[str, ...]:
        """The names of the tables that a unit stands for."""
        group = self.groups.get(unit)
        return group.members if group else (unit,)


@by_identity(8)
def folded(schema: Schema) -> Folded:
    """The units of `schema`; the schema itself where no tables are alike.

    In BigQuery a unit is named by its wildcard (`events_*`), elsewhere by the member of the highest
    number, so that its name can be used as it stands.
    """
    found = list(_groups(schema))
    if not found:
        return Folded(schema)
    unit_of: dict[str, Table] = {}
    groups: dict[str, Group] = {}
    taken = {t.name.casefold() for t in schema.tables}
    for members in found:
        unit, group = _unit(members, schema, taken)
        groups[unit.name] = group
        taken.add(unit.name.casefold())
        unit_of |= dict.fromkeys((t.name.casefold() for t in members), unit)
    tables = {t.name: t for t in (unit_of.get(t.name.casefold(), t) for t in schema.tables)}
    keys = _keys(schema, {name: unit.name for name, unit in unit_of.items()})
    return Folded(replace(schema, tables=tuple(tables.values()), foreign_keys=keys), groups)


def _groups(schema: Schema) -> Iterator[list[Table]]:
    """Tables that belong together, at least two each, in natural order of their names."""
    alike: dict[tuple[str, ...], list[Table]] = defaultdict(list)
    for table in schema.tables:
        *space, name = (part.casefold() for part in table.parts)
        if _DIGITS.search(name):
            alike[(*space, _DIGITS.sub("#", name))].append(table)
    for tables in alike.values():
        for group in _clusters(tables) if len(tables) > 1 else ():
            if len(group) > 1:
                yield sorted(group, key=_natural)


def _clusters(tables: Sequence[Table]) -> list[list[Table]]:
    """The tables by form; a form joins the commonest one that shares most of its columns."""
    forms: dict[_Fields, list[Table]] = defaultdict(list)
    for table in tables:
        forms[frozenset((c.name.casefold(), c.type.casefold()) for c in table.columns)].append(
            table
        )
    clusters: list[tuple[_Fields, list[Table]]] = []
    for form, same in sorted(forms.items(), key=lambda item: -len(item[1])):
        near = (c for f, c in clusters if len(f & form) >= MOST_ALIKE * len(f | form))
        cluster = next(near, None)
        if cluster is None:
            clusters.append((form, same))
        else:
            cluster.extend(same)
    return [cluster for _, cluster in clusters]


def _natural(table: Table) -> list[tuple[int, str]]:
    pieces = _DIGITS.split(table.parts[-1].casefold())
    return [(int(p[:18]), "") if p.isdigit() else (-1, p) for p in pieces]


def _unit(members: Sequence[Table], schema: Schema, taken: set[str]) -> tuple[Table, Group]:
    """The table that stands for its members: the last one's columns, then those of others."""
    last = members[-1]
    counts = Counter((c.name.casefold(), c.type.casefold()) for t in members for c in t.columns)
    columns: dict[str, Column] = {}
    for column in chain(last.columns, *(t.columns for t in members)):
        known = columns.setdefault(column.name.casefold(), column)
        if column.samples and not known.samples:
            columns[column.name.casefold()] = replace(known, samples=column.samples)
    partial = {
        c.name: n
        for c in columns.values()
        if (n := counts[c.name.casefold(), c.type.casefold()]) < len(members)
    }
    wildcard, reading = _wildcard(members, schema)
    if wildcard and wildcard.casefold() in taken:
        wildcard = ""
    name = wildcard or last.name
    path = (*last.parts[:-1], wildcard.rpartition(".")[2]) if wildcard else last.path
    rows = [t.row_count for t in members]
    unit = replace(
        last,
        name=name,
        path=path,
        columns=tuple(columns.values()),
        row_count=None if None in rows else sum(n for n in rows if n is not None),
    )
    names = tuple(t.parts[-1] for t in members)
    return unit, Group(name, names, reading if wildcard else _UNION, partial)


_UNION = "several are read with UNION ALL"


def _wildcard(members: Sequence[Table], schema: Schema) -> tuple[str, str]:
    """BigQuery's wildcard name and condition; ("", "") in other dialects and where none fits."""
    names = [t.parts[-1] for t in members]
    prefix = _stem(names)
    if schema.dialect != "bigquery" or not prefix:
        return "", ""
    ends = sorted(name[len(prefix) :] for name in names)
    reading = f"choose with _TABLE_SUFFIX BETWEEN '{ends[0]}' AND '{ends[-1]}'"
    qualified = members[-1].name[: -len(names[-1])]
    return f"{qualified}{prefix}*", reading


def _stem(names: Sequence[str]) -> str:
    """What all names start with, up to the first number in which they differ.

    >>> _stem(["events_20201231", "events_20210101"])
    'events_'
    """
    pieces = [_DIGITS.split(name) for name in names]
    shared = []
    for same in zip(*pieces, strict=False):
        if len(set(same)) > 1:
            break
        shared.append(same[0])
    return "".join(shared)


def _keys(schema: Schema, unit_of: Mapping[str, str]) -> tuple[ForeignKey, ...]:
    """The keys between units, each once."""
    moved = (
        replace(
            key,
            table=unit_of.get(key.table.casefold(), key.table),
            ref_table=unit_of.get(key.ref_table.casefold(), key.ref_table),
        )
        for key in schema.foreign_keys
    )
    kept = {(k.table, k.columns, k.ref_table, k.ref_columns): k for k in moved}
    return tuple(k for k in kept.values() if k.table != k.ref_table or k in schema.foreign_keys)

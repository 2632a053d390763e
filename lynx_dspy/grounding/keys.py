"""Undeclared foreign keys, inferred from names, types and stored values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

from lynx_dspy.engines.base import Database
from lynx_dspy.engines.identity import by_identity
from lynx_dspy.errors import DatabaseError
from lynx_dspy.grounding.identifiers import qualified, quote, stem, words
from lynx_dspy.values import Column, ForeignKey, Schema, Table

Values = Mapping[tuple[str, str], Sequence[Any]]
"""Sampled distinct values by (table, column)."""

Name = tuple[str, ...]
"""A name as stems, without the prefix that all tables share."""

_KEY_WORDS = frozenset(
    stem(word)
    for word in ("id", "key", "code", "no", "nr", "num", "number", "uuid", "guid", "name")
)
_TAIL = 4
_ALIKE = 20
"""A name that could refer to more tables than this (one table a day) refers to none of them."""

_PROBE = 20
_PROBE_ROWS = 100_000
_LEAST_SHARE = 0.9
_BY_TABLE = 0.75
"""Score of a column named after a table, not after its key: `from_airport`."""

_UNPROVEN = 0.85
"""Confidence kept where stored values could not be compared."""


@dataclass(frozen=True)
class _Target:
    """A column that other tables could refer to."""

    table: Table
    column: Column
    table_name: Name
    own: Name
    declared: bool

    @cached_property
    def owned(self) -> bool:
        """True if the column's name says that it is this table's key: `customers.cust_id`."""
        return _owns(self.table_name, self.own)

    @cached_property
    def full(self) -> Name:
        """The key with its table's name: `customer id` for `customers.id` and `customers.cid`."""
        terse = len("".join(self.own[:-1])) < 2
        return (*self.table_name, self.own[-1]) if terse else self.own

    @property
    def handles(self) -> set[str]:
        """What a column that refers to this one may end in."""
        ends = (self.own, self.full, self.own[-2:], self.full[-2:], self.table_name[-1:])
        return {"".join(end) for end in ends if not set(end) <= _KEY_WORDS}


def infer_keys(schema: Schema, values: Values, database: Database | None) -> list[ForeignKey]:
    """Undeclared foreign keys, at most one a column, each with a confidence in [0.5, 1).

    Names propose (`orders.customer_id` and `customers.customer_id` or `customers.id`), types and
    sampled values dispose. `database` is asked for values only where the key's table is small or
    the key is declared; None leaves that out.
    """
    declared = {(k.table, c) for k in schema.foreign_keys for c in k.columns}
    prefix = _shared_prefix(schema)
    targets = _targets(schema, values, prefix)
    found = []
    for table in schema.tables:
        table_name = _name(table.name, prefix)
        for column in () if table.is_view else table.columns:
            name = _name(column.name, prefix)
            if (table.name, column.name) in declared or not name or _owns(table_name, name):
                continue
            for score, target in _proposals(table, name, targets)[:3]:
                sample = values.get((table.name, column.name), ())
                confidence = _confidence(score, column, target, sample, values, database)
                if confidence:
                    found.append(_key(table, column, target, confidence))
                    break
    return found


def _key(table: Table, column: Column, target: _Target, confidence: float) -> ForeignKey:
    return ForeignKey(
        table=table.name,
        columns=(column.name,),
        ref_table=target.table.name,
        ref_columns=(target.column.name,),
        inferred=True,
        confidence=round(confidence, 2),
    )


def _shared_prefix(schema: Schema) -> str:
    """Letters that all table names start with: `sb` of `sbCustomer` and `sbTicker`."""
    names = [t.name.casefold() for t in schema.tables]
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    prefix = "".join(letters[0] for letters in alike)
    return prefix if len(names) > 2 and 1 < len(prefix) < min(map(len, names)) - 2 else ""


def _name(name: str, prefix: str) -> Name:
    """The stems of a name; an `id` glued to a word is split off: `customerid`, `aid`."""
    folded = name.casefold()
    bare = name[len(prefix) :] if folded.startswith(prefix) else name
    parts = [stem(word) for word in words(bare)]
    if parts and len(parts[-1]) > 2 and parts[-1].endswith("id"):
        parts[-1:] = [stem(parts[-1][:-2]), "id"]
    return tuple(parts)


def _owns(table: Name, column: Name) -> bool:
    """True if `column` is `table` and a key word: (customer, id), (cust, id), (c, id) or (id)."""
    if not column or column[-1] not in _KEY_WORDS:
        return False
    head, whole = "".join(column[:-1]), "".join(table)
    initials = "".join(word[0] for word in table)
    return head in (whole, initials) or (len(table) == 1 and whole.startswith(head))


def _targets(schema: Schema, values: Values, prefix: str) -> dict[str, list[_Target]]:
    """Key-like columns, under each handle that a referring column may have."""
    targets: dict[str, list[_Target]] = defaultdict(list)
    for table in schema.tables:
        table_name = _name(table.name, prefix)
        for column in table.columns:
            declared = table.primary_key == (column.name,)
            own = _name(column.name, prefix)
            candidate = not table.primary_key and _looks_unique(table, column, own, values)
            if own and (declared or candidate):
                target = _Target(table, column, table_name, own, declared)
                for handle in target.handles:
                    targets[handle].append(target)
    return targets


def _looks_unique(table: Table, column: Column, own: Name, values: Values) -> bool:
    if not own or own[-1] not in _KEY_WORDS:
        return False
    distinct = column.distinct or len(values.get((table.name, column.name), ()))
    return table.row_count is None or distinct >= min(table.row_count, 200)


def _proposals(
    table: Table, name: Name, targets: Mapping[str, list[_Target]]
) -> list[tuple[float, _Target]]:
    """Targets that a column's name could mean, the likeliest first."""
    tail = "".join(name[-2:])
    handles = {"".join(name), name[-1], tail} | {tail[i:] for i in range(1, len(tail) - _TAIL)}
    filed = (targets.get(handle, ()) for handle in handles)
    near = {id(t): t for some in filed if len(some) <= _ALIKE for t in some}
    scored = [(_name_score(name, t), t) for t in near.values() if t.table.name != table.name]
    return sorted(((s, t) for s, t in scored if s), key=lambda pair: -pair[0])


def _name_score(name: Name, target: _Target) -> float:
    """How well a column's name says that it refers to `target`; 0 for "not at all"."""
    joined = "".join(name)
    if set(name) <= _KEY_WORDS:
        return 0.0
    if joined in ("".join(target.own), "".join(target.full)):
        return 0.95 if target.owned else 0.7
    if not target.owned:
        return 0.0
    if any(len(n) > 1 and joined.endswith("".join(n)) for n in (target.own, target.full)):
        return 0.85
    tail = len(target.table_name)
    return _BY_TABLE if name[-tail:] == target.table_name and len(name) - tail < 2 else 0.0


def _confidence(
    score: float,
    column: Column,
    target: _Target,
    sample: Sequence[Any],
    values: Values,
    database: Database | None,
) -> float:
    """`score` weighed by types and stored values; 0 if these speak against it."""
    if not _same_family(column.type, target.column.type):
        return 0.0
    share = _inclusion(sample, target, values, database)
    if score == _BY_TABLE and not _telling(sample):
        return 0.0
    if share is None:
        return score * _UNPROVEN if score > _BY_TABLE else 0.0
    return score * share if share >= _LEAST_SHARE else 0.0


def _telling(sample: Sequence[Any]) -> bool:
    """True for values that are hardly among a key's by chance, as small numbers are."""
    return len(sample) > 1 and all(isinstance(v, str) or v > 1_000 for v in sample[:_PROBE])


def _same_family(left: str, right: str) -> bool:
    families = {_family(left), _family(right)}
    return len(families) == 1 or "" in families


def _family(kind: str) -> str:
    upper = kind.upper()
    if "INT" in upper or upper.startswith(("NUM", "DEC", "REAL", "FLOAT", "DOUBLE", "LONG")):
        return "number"
    if any(mark in upper for mark in ("CHAR", "TEXT", "STRING", "CLOB", "UUID")):
        return "text"
    return upper.split("(")[0]


def _inclusion(
    sample: Sequence[Any], target: _Target, values: Values, database: Database | None
) -> float | None:
    """The share of sampled values that occur in the key; None where looking would cost too much."""
    probe = list(sample[:_PROBE])
    held = set(values.get((target.table.name, target.column.name), ()))
    if not probe or not held:
        return None
    missing = [value for value in probe if value not in held]
    if missing and target.column.distinct is None:
        stored = _stored(missing, target, database)
        if stored is None:
            return None
        missing = missing[stored:]
    return 1 - len(missing) / len(probe)


def _stored(probe: Sequence[Any], target: _Target, database: Database | None) -> int | None:
    """How many of `probe` the key holds."""
    rows = target.table.row_count
    if database is None or not (target.declared or (rows is not None and rows <= _PROBE_ROWS)):
        return None
    key = quote(target.column.name, database.dialect)
    source = qualified(target.table, database.dialect)
    marks = ", ".join("?" * len(probe))
    sql = f"SELECT COUNT(DISTINCT {key}) FROM {source} WHERE {key} IN ({marks})"
    try:
        return int(database.query(sql, probe)[0][0])
    except DatabaseError:
        return None


@by_identity(16)
def joins(schema: Schema) -> tuple[ForeignKey, ...]:
    """The foreign keys whose both ends exist in `schema`, each pair of columns once."""
    return tuple(_joins(schema))


def _joins(schema: Schema) -> Iterator[ForeignKey]:
    tables = {t.name.casefold(): t for t in schema.tables}
    seen = set()
    for key in schema.foreign_keys:
        ends = ((key.table.casefold(), key.columns), (key.ref_table.casefold(), key.ref_columns))
        pair = frozenset((t, tuple(c.casefold() for c in cs)) for t, cs in ends)
        known = all((t := tables.get(n)) and all(map(t.column, cs)) for n, cs in ends)
        if known and len(key.columns) == len(key.ref_columns) and pair not in seen:
            seen.add(pair)
            yield key


@by_identity(16)
def neighbours(schema: Schema) -> dict[str, list[str]]:
    """The tables that each table can be joined with, those it refers to first."""
    near: dict[str, list[str]] = {t.name: [] for t in schema.tables}
    names = {t.name.casefold(): t.name for t in schema.tables}
    for key in joins(schema):
        left, right = names[key.table.casefold()], names[key.ref_table.casefold()]
        near[left].insert(0, right)
        near[right].append(left)
    return near

"""Which trusted queries only look at the first rows of one table, so that reading it is cheap.

The samples of a schema are `SELECT columns FROM table LIMIT n`, maybe with DISTINCT around. In
BigQuery such a query pays for the whole columns, while listing the rows of a table is free.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lynx_dspy.values import Row


@dataclass(frozen=True, slots=True)
class BoundedRead:
    """The first `rows` rows of `table`: columns with the most characters shown of each.

    `columns` are dotted paths as the schema has them; `distinct` is how many different rows are
    wanted, None where all are.
    """

    table: tuple[str, ...]
    columns: tuple[tuple[str, int | None], ...]
    rows: int
    distinct: int | None = None

    @property
    def tops(self) -> tuple[str, ...]:
        """The top-level columns that must be read."""
        return tuple(dict.fromkeys(name.split(".")[0] for name, _ in self.columns))

    def of(self, records: Iterable[Mapping[str, Any]]) -> list[Row]:
        """The result, from records that hold `tops`."""
        rows = [self._row(record, place) for place, record in enumerate(records)]
        if self.distinct is None:
            return rows
        return [(value,) for value in _different(row[0] for row in rows)][: self.distinct]

    def _row(self, record: Mapping[str, Any], place: int) -> Row:
        return tuple(
            _cut(_inside(record, name.split("."), place), longest) for name, longest in self.columns
        )


def bounded_read(sql: str, dialect: str) -> BoundedRead | None:
    """How to read what `sql` asks for without a query; None if it is not of that form.

    >>> bounded_read("SELECT SUBSTR(`a`, 1, 9), `b` FROM `d`.`t` LIMIT 5", "bigquery").columns
    (('a', 9), ('b', None))
    """
    try:
        tree = sqlglot.parse_one(sql, read=dialect)
    except SqlglotError:
        return None
    if not isinstance(tree, exp.Select) or (most := _limit(tree)) is None:
        return None
    source = tree.args["from_"].this if tree.args.get("from_") else None
    if isinstance(source, exp.Subquery) and tree.args.get("distinct"):
        inner = _simple(source.this) if _is_plain(tree, {"distinct"}) else None
        if inner is None or len(inner.columns) != 1 or len(tree.expressions) != 1:
            return None
        return BoundedRead(inner.table, inner.columns, inner.rows, most)
    return _simple(tree)


def _simple(tree: exp.Expr) -> BoundedRead | None:
    if not isinstance(tree, exp.Select) or not _is_plain(tree, set()):
        return None
    most, source = _limit(tree), tree.args["from_"].this if tree.args.get("from_") else None
    columns = [_column(item) for item in tree.expressions]
    if most is None or not isinstance(source, exp.Table) or not all(columns):
        return None
    table = tuple(part.name for part in source.parts)
    return BoundedRead(table, tuple(c for c in columns if c is not None), most)


def _is_plain(tree: exp.Select, besides: set[str]) -> bool:
    known = {"kind", "expressions", "from_", "limit", *besides}
    return not any(value for key, value in tree.args.items() if key not in known)


def _limit(tree: exp.Select) -> int | None:
    limit = tree.args.get("limit")
    number = limit.expression if isinstance(limit, exp.Limit) else None
    return int(number.name) if isinstance(number, exp.Literal) and number.is_int else None


def _column(item: exp.Expr) -> tuple[str, int | None] | None:
    item = item.unalias()
    longest: int | None = None
    if isinstance(item, exp.Substring):
        length = item.args.get("length")
        if not isinstance(length, exp.Literal) or item.args["start"].name != "1":
            return None
        item, longest = item.this, int(length.name)
    if not isinstance(item, exp.Column):
        return None
    return ".".join(part.name for part in item.parts), longest


def _inside(value: Any, path: list[str], place: int) -> Any:
    """What a dotted path leads to; of a list, another element in each row, so that they vary.

    A struct is None: its fields are columns of their own.
    """
    for step, name in enumerate(path):
        if isinstance(value, list):
            return _inside(value[place % len(value)], path[step:], place) if value else None
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    if isinstance(value, list):
        value = value[place % len(value)] if value else None
    return None if isinstance(value, Mapping) else value


def _cut(value: Any, longest: int | None) -> Any:
    return value[:longest] if isinstance(value, str) else value


def _different(values: Iterable[Any]) -> Iterator[Any]:
    seen: set[Any] = set()
    for value in values:
        if value not in seen:
            seen.add(value)
            yield value

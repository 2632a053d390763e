"""Shapes of columns: the fields of structs and arrays, whichever way a schema writes them.

A schema may hold a nested field as a column of its own with a dotted name (`device.category`, the
form of the Spider 2.0 metadata) or inside the type text (`STRUCT<category STRING>`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lynx_dspy.engines.identity import by_identity
from lynx_dspy.values import Column, Table

NESTED = frozenset({"bigquery", "spark", "databricks", "hive", "trino", "presto"})
"""Dialects in which a dotted name may go into a column."""

_CONTAINERS = ("STRUCT", "ARRAY", "RECORD", "ROW", "MAP", "JSON")


@dataclass(frozen=True, eq=False, slots=True)
class Shape:
    """A column or field: its exact name, its type in upper case ("" if unknown), what is in it.

    `fields` are by folded name; empty where there are none or they are not known.
    """

    name: str
    type: str = ""
    fields: Mapping[str, Shape] = field(default_factory=dict)

    @property
    def is_array(self) -> bool:
        """True for a repeated column, whose fields need UNNEST."""
        return self.type.startswith("ARRAY")

    @property
    def is_scalar(self) -> bool:
        """True if the type is known and holds no fields."""
        return bool(self.type) and not self.fields and not self.type.startswith(_CONTAINERS)

    def field(self, name: str) -> Shape | None:
        """The field of this name, compared without case."""
        return self.fields.get(name.casefold())

    def element(self, name: str) -> Shape:
        """What UNNEST makes of it, under another name."""
        inner = self.type.removeprefix("ARRAY").strip("<>") if self.is_array else ""
        return Shape(name, inner, self.fields)


@by_identity(4096)
def shapes(table: Table) -> tuple[Shape, ...]:
    """The top-level columns of a table with what is in them."""
    tops = {c.name.casefold() for c in table.columns if c.type.upper().startswith(_CONTAINERS)}
    inner: dict[str, list[Column]] = {}
    outer: list[Column] = []
    for column in table.columns:
        top, dot, _ = column.name.partition(".")
        if dot and top.casefold() in tops:
            inner.setdefault(top.casefold(), []).append(column)
        else:
            outer.append(column)
    return tuple(_column(c, inner.get(c.name.casefold(), ())) for c in outer)


def _column(column: Column, inner: Iterable[Column]) -> Shape:
    found = _typed(column.name, column.type)
    tree: dict[str, Column] = {}
    for nested in inner:
        tree[nested.name.casefold()] = nested
    if not tree:
        return found
    return Shape(column.name, found.type, _fields(column.name.casefold(), tree))


def _fields(prefix: str, tree: Mapping[str, Column]) -> dict[str, Shape]:
    depth = prefix.count(".") + 1
    names = [n for n in tree if n.startswith(f"{prefix}.") and n.count(".") == depth]
    return {
        name.rsplit(".", 1)[1]: Shape(
            tree[name].name.rsplit(".", 1)[1], tree[name].type.upper(), _fields(name, tree)
        )
        for name in names
    }


@lru_cache(maxsize=4096)
def _typed(name: str, kind: str) -> Shape:
    text = " ".join(kind.split())
    if "<" not in text or text.upper() in ("ARRAY<STRUCT>", "STRUCT<>"):
        return Shape(name, text.upper())
    try:
        tree = sqlglot.parse_one(text, into=exp.DataType, read="bigquery")
    except (SqlglotError, RecursionError):
        return Shape(name, text.upper())
    return _of_type(name, tree)


def _of_type(name: str, kind: exp.Expr) -> Shape:
    if not isinstance(kind, exp.DataType):
        return Shape(name)
    inner = kind.expressions
    if kind.is_type("array") and inner:
        element = _of_type(name, inner[0])
        return Shape(name, f"ARRAY<{element.type}>", element.fields)
    if kind.is_type("struct") and inner:
        found = {
            f.name.casefold(): _of_type(f.name, f.args["kind"])
            for f in inner
            if isinstance(f, exp.ColumnDef) and f.args.get("kind") is not None
        }
        return Shape(name, "STRUCT", found)
    return Shape(name, kind.sql("bigquery").upper())

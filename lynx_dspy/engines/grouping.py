"""Outputs that stand beside aggregates without being grouped, where the dialect refuses them.

SQLite and MySQL take the value of any row (a doubt, see `doubts`); DuckDB says so itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from lynx_dspy.engines.names import Frame, home, path_of
from lynx_dspy.engines.problems import Kind, Problem, problem
from lynx_dspy.values import Schema

STRICT = frozenset(
    {"bigquery", "snowflake", "postgres", "redshift", "spark", "databricks", "trino", "presto"}
)


def grouping_problems(views: tuple[Frame, ...], schema: Schema) -> Iterator[Problem]:
    """Outputs that are neither aggregated nor grouped; none where that cannot be sure."""
    if schema.dialect not in STRICT:
        return
    for frame in views:
        keys = _Keys.of(frame, schema)
        for item in frame.select.expressions if keys else ():
            column = keys.open_column(item) if keys else None
            if column is not None:
                name = column.sql(schema.dialect)
                text = f"{name} stands beside an aggregate but is not in GROUP BY; group by it, "
                text += f"or write an aggregate such as MAX({name})"
                yield problem(Kind.GROUPING, text, name, (), column, frame)


class _Keys:
    """What a query groups by: expressions as text, and names."""

    def __init__(self, frame: Frame, group: exp.Group | None, schema: Schema) -> None:
        self.frame, self.schema = frame, schema
        self.texts: set[str] = set()
        self.names: set[str] = set()
        outputs = frame.select.expressions
        for key in group.expressions if group else ():
            self.texts.add(self._text(key))
            path = path_of(key)
            self.names |= {".".join(path).casefold(), path[-1].casefold()} if path else set()
            if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(outputs):
                self._take(outputs[int(key.name) - 1])
            for item in outputs:
                if len(path) == 1 and item.alias_or_name.casefold() == path[0].casefold():
                    self._take(item)

    @staticmethod
    def of(frame: Frame, schema: Schema) -> _Keys | None:
        """None for queries without aggregates, and where a grouping is not a plain list."""
        select = frame.select
        group = select.args.get("group")
        stars = any(e.is_star and not isinstance(e, exp.Count) for e in select.expressions)
        if stars or (group and {k for k, v in group.args.items() if v} - {"expressions"}):
            return None
        if group and group.find(exp.Rollup, exp.Cube, exp.GroupingSets):
            return None
        aggregates = [a for e in select.expressions for a in e.find_all(exp.AggFunc)]
        plain = [a for a in aggregates if home(a) is select and not _in_window(a)]
        if not plain and not group:
            return None
        return None if _determined(frame, group, schema) else _Keys(frame, group, schema)

    def _take(self, item: exp.Expr) -> None:
        self.texts.add(self._text(item.unalias()))
        path = path_of(item.unalias())
        self.names |= {".".join(path).casefold(), path[-1].casefold()} if path else set()
        if item.alias:
            self.names.add(item.alias.casefold())

    def _text(self, node: exp.Expr) -> str:
        return node.sql(self.schema.dialect).casefold()

    def open_column(self, node: exp.Expr) -> exp.Column | None:
        """A column of `node` that is neither grouped nor aggregated."""
        if isinstance(node, exp.Alias) and node.alias.casefold() in self.names:
            return None
        if self._text(node) in self.texts or isinstance(
            node, exp.AggFunc | exp.WithinGroup | exp.Query | exp.Anonymous | exp.Window
        ):
            return None
        if isinstance(node, exp.Column):
            return node if self._is_open(node) else None
        for child in node.iter_expressions():
            found = self.open_column(child)
            if found is not None:
                return found
        return None

    def _is_open(self, column: exp.Column) -> bool:
        path = [name.casefold() for name in path_of(column)]
        prefixes = {".".join(path[a:b]) for a in range(2) for b in range(a + 1, len(path) + 1)}
        if prefixes & self.names or path[-1] in self.names:
            return False
        if len(path) == 1:
            known = bool(self.frame.holders(column.name))
            return known and path[0] not in self.frame.outputs
        return self.frame.source(path[0]) is not None


def _in_window(node: exp.Expr) -> bool:
    above = node.parent
    while isinstance(above, exp.IgnoreNulls | exp.RespectNulls | exp.Filter | exp.WithinGroup):
        above = above.parent
    return isinstance(above, exp.Window)


def _determined(frame: Frame, group: exp.Group | None, schema: Schema) -> bool:
    """PostgreSQL lets the columns of a table stand whose primary key is grouped."""
    if schema.dialect != "postgres" or group is None:
        return False
    tables = [source.table for source in frame.sources]
    keyed = [t for t in tables if t is not None and t.primary_key]
    names = {path_of(k)[-1].casefold() for k in group.expressions if path_of(k)}
    grouped = any(names >= {k.casefold() for k in t.primary_key} for t in keyed)
    return grouped or len(keyed) < len(tables)

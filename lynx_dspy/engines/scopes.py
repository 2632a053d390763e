"""Output aliases used where the dialect does not know them yet.

Facts: GoogleSQL query syntax ("visibility" of aliases), PostgreSQL 7.3.1 and 4.2, MySQL "Problems
with Column Aliases". Snowflake, Spark, DuckDB and SQLite resolve an alias in WHERE, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from lynx_dspy.engines.names import Frame, home
from lynx_dspy.engines.problems import Kind, Problem, problem
from lynx_dspy.values import Schema

_LATE = {
    "bigquery": (exp.Group, exp.Order, exp.Having, exp.Qualify),
    "mysql": (exp.Group, exp.Order, exp.Having),
    "postgres": (exp.Group, exp.Order),
    "redshift": (exp.Group, exp.Order),
}
"""The clauses in which an output alias may be used."""


def scope_problems(column: exp.Column, frame: Frame, schema: Schema) -> Iterator[Problem]:
    """An alias of the query's own output, used in a clause that is evaluated before it."""
    late = _LATE.get(schema.dialect)
    if late is None or column.name.casefold() not in frame.outputs:
        return
    clause = clause_of(column, frame.select)
    if clause is None or isinstance(clause, late):
        return
    meant = frame.outputs[column.name.casefold()]
    where = "the SELECT list" if clause.arg_key == "expressions" else type(clause).__name__.upper()
    text = f"the alias {column.name} cannot be used in {where}; repeat {meant.sql(schema.dialect)}"
    if meant.find(exp.Window):
        text = f"the alias {column.name} cannot be used in {where}; filter it in an outer query"
        text += " or with QUALIFY" if schema.dialect == "bigquery" else ""
    yield problem(Kind.SCOPE, text, column.name, (), column, frame)


def clause_of(node: exp.Expr, select: exp.Select) -> exp.Expr | None:
    """The child of `select` that holds `node`: Where, Group, a Join, an output ..."""
    child: exp.Expr | None = node
    while child is not None and child.parent is not select:
        child = child.parent
    return child


def alias_repeated(item: Problem, schema: Schema) -> str | None:
    """The expression instead of its alias, where it is neither aggregate nor window."""
    column, frame = item.node, item.frame
    if not isinstance(column, exp.Column) or frame is None or home(column) is not frame.select:
        return None
    meant = frame.outputs.get(column.name.casefold())
    if meant is None or meant.find(exp.AggFunc, exp.Window, exp.Query):
        return None
    before = column.sql(schema.dialect)
    new = meant.copy()
    column.replace(exp.paren(new) if isinstance(new, exp.Binary) else new)
    return f"alias {before} -> {new.sql(schema.dialect)}"

"""Schema linking: which tables and columns a query uses, beside those that the gold uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from lynx_dspy.errors import BadInput
from lynx_dspy.values import Schema


@dataclass(frozen=True, slots=True)
class Names:
    """What a query uses, in lower case: `table` and `table.column`.

    `unknown` are names that the schema lacks, as the query writes them.
    """

    tables: frozenset[str] = frozenset()
    columns: frozenset[str] = frozenset()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Linking:
    """Shares in [0, 1]. Precision of nothing named and recall of nothing wanted are 1."""

    table_precision: float
    table_recall: float
    column_precision: float
    column_recall: float


def linking(gold_sql: str, pred: str | Iterable[str], schema: Schema) -> Linking:
    """Precision and recall of the tables and columns in `pred` against those of the gold query.

    `pred` is a query, or names as `table` and `table.column`. Invented names count against
    precision; a prediction that does not parse names nothing. Raises `BadInput` for a gold that
    does not parse.
    """
    gold_tree = parsed(gold_sql, schema)
    if gold_tree is None:
        raise BadInput(f"The gold query does not parse as {schema.dialect}: {gold_sql[:80]!r}.")
    gold = names_used(gold_tree, schema)
    named = _as_names(pred, schema)
    invented = {name.casefold() for name in named.unknown}
    return Linking(
        *_precision_recall(gold.tables, named.tables | {n for n in invented if "." not in n}),
        *_precision_recall(gold.columns, named.columns | {n for n in invented if "." in n}),
    )


def parsed(sql: str, schema: Schema) -> exp.Expr | None:
    """The query's tree in the schema's dialect; None if it does not parse."""
    try:
        return parse_one(sql, dialect=schema.dialect)
    except (SqlglotError, RecursionError):
        return None


def names_used(tree: exp.Expr, schema: Schema) -> Names:
    """The tables and columns that a query reads, aliases and subqueries resolved.

    A star in a select list uses all columns of its tables. A column that the schema cannot place
    belongs to the query's own subqueries, or is unknown.
    """
    tables: set[str] = set()
    columns: set[str] = set()
    unknown: dict[str, None] = {}
    for scope in scopes(tree):
        for table in _tables(scope):
            tables.add(table.name.casefold())
            if schema.table(table.name) is None:
                unknown[table.name] = None
        columns.update(_star_columns(scope, schema))
        for column in own_columns(scope):
            home = home_of(column, scope, schema)
            if home:
                columns.add(f"{home}.{column.name}".casefold())
            elif _is_invented(column, scope, schema):
                unknown[_written(column, scope)] = None
    known = frozenset(t for t in tables if schema.table(t) is not None)
    return Names(known, frozenset(columns), tuple(unknown))


def scopes(tree: exp.Expr) -> list[Scope]:
    """The query's SELECTs with their sources, innermost first; none if they cannot be told."""
    try:
        return traverse_scope(tree)
    except SqlglotError:
        return []


def own_columns(scope: Scope) -> list[exp.Column]:
    """The columns written in this SELECT itself: those of its subqueries have their own scope."""
    return [c for c in scope.columns if c.parent_select is scope.expression]


def home_of(column: exp.Column, scope: Scope, schema: Schema) -> str:
    """The schema's table that a column belongs to; empty if none of the query's tables has it."""
    level: Scope | None = scope
    while level is not None:
        for alias, table in level.sources.items():
            if not isinstance(table, exp.Table):
                continue
            known = schema.table(table.name)
            named = column.table.casefold() in ("", alias.casefold())
            if named and known and known.column(column.name):
                return known.name
        level = level.parent
    return ""


def _tables(scope: Scope) -> Iterator[exp.Table]:
    return (source for source in scope.sources.values() if isinstance(source, exp.Table))


def _star_columns(scope: Scope, schema: Schema) -> Iterator[str]:
    query = scope.expression
    for selected in query.selects if isinstance(query, exp.Query) else []:
        if not selected.is_star or not isinstance(selected, exp.Star | exp.Column):
            continue
        qualifier = selected.table if isinstance(selected, exp.Column) else ""
        for alias, source in scope.sources.items():
            table = schema.table(source.name) if isinstance(source, exp.Table) else None
            if table and qualifier.casefold() in ("", alias.casefold()):
                yield from (f"{table.name}.{c.name}".casefold() for c in table.columns)


def _is_invented(column: exp.Column, scope: Scope, schema: Schema) -> bool:
    """Whether nothing in the query or the schema could be meant.

    SQLite reads a quoted name that is no column as text, so quoted names are let through.
    """
    if column.is_star or column.this.quoted or not isinstance(column.this, exp.Identifier):
        return False
    if not column.table:
        aliases = {alias.alias.casefold() for alias in scope.expression.find_all(exp.Alias)}
        placed = all(
            isinstance(source, exp.Table) and schema.table(source.name)
            for source in scope.sources.values()
        )
        return placed and column.name.casefold() not in aliases
    source = {a.casefold(): s for a, s in scope.sources.items()}.get(column.table.casefold())
    return isinstance(source, exp.Table) and schema.table(source.name) is not None


def _written(column: exp.Column, scope: Scope) -> str:
    source = scope.sources.get(column.table)
    table = source.name if isinstance(source, exp.Table) else column.table
    return f"{table or '?'}.{column.name}"


def _as_names(pred: str | Iterable[str], schema: Schema) -> Names:
    if isinstance(pred, str):
        tree = parsed(pred, schema)
        return names_used(tree, schema) if tree is not None else Names()
    folded = {name.casefold() for name in pred}
    columns = frozenset(name for name in folded if "." in name)
    return Names(frozenset(folded - columns), columns)


def _precision_recall(gold: frozenset[str], named: frozenset[str]) -> tuple[float, float]:
    hits = len(gold & named)
    return hits / len(named) if named else 1.0, hits / len(gold) if gold else 1.0

"""Fixes of joins: conditions on columns that are not there, relations that lack or are idle."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from lynx_dspy.engines import keys
from lynx_dspy.engines.folding import QUALIFIED, identifier
from lynx_dspy.engines.names import Frame, Source, home
from lynx_dspy.engines.problems import Problem
from lynx_dspy.engines.shadow import COMPILED
from lynx_dspy.values import Schema, Table


def join_named_table(problem: Problem, schema: Schema) -> str | None:
    """A table that columns name but FROM does not: joined along the only key path."""
    column, frame = problem.node, problem.frame
    if not isinstance(column, exp.Column) or frame is None or not column.table:
        return None
    table = schema.table(column.table)
    if table is None or table.column(column.name) is None:
        return None
    return _joined(frame, table, schema)


def join_holder(problem: Problem, schema: Schema) -> str | None:
    """A column that no relation in scope has: its table joined along the only key path."""
    column, frame = problem.node, problem.frame
    if not isinstance(column, exp.Column) or frame is None or frame.holders(column.name):
        return None
    if in_join_condition(column):
        return None
    own = frame.source(column.table) if column.table else None
    holders = [t for t in schema.tables if t.column(column.name)]
    for longest in (1, 2):
        for starts in ([own] if own else [], frame.sources):
            names = [s.table.name for s in starts if s.table]
            paths = [(t, keys.only_path(schema, names, t.name, longest)) for t in holders]
            found = [(t, path) for t, path in paths if path]
            if len(found) == 1:
                return _joined_for(column, frame, schema, *found[0])
            if found:
                break
    return None


def _joined_for(
    column: exp.Column, frame: Frame, schema: Schema, table: Table, path: tuple[keys.Edge, ...]
) -> str:
    left = frame.source(column.table) if column.table else None
    note = _extended(frame, path, schema)
    column.set("table", exp.to_identifier(_label(table.name, schema)))
    return note + (dropped_if_idle(frame, left, schema) if left else "")


def _joined(frame: Frame, table: Table, schema: Schema) -> str | None:
    names = [s.table.name for s in frame.sources if s.table]
    path = keys.only_path(schema, names, table.name)
    return _extended(frame, path, schema) if path else None


def table_node(table: Table, schema: Schema) -> exp.Table:
    """The table as a program names it: by its full name where the dialect asks for that."""
    if schema.dialect not in QUALIFIED or len(table.parts) < 2:
        quoted = not table.name.isidentifier() or None
        return exp.Table(this=exp.to_identifier(table.name, quoted=quoted))
    parts = [identifier(part, schema.dialect) for part in table.parts[-3:]]
    return exp.Table(**dict(zip(("this", "db", "catalog"), reversed(parts), strict=False)))


def _label(name: str, schema: Schema) -> str:
    """How columns name a table that was joined without an alias."""
    table = schema.table(name)
    return table.parts[-1] if table and schema.dialect in QUALIFIED else name


def _join_table(name: str, schema: Schema) -> exp.Table:
    table = schema.table(name)
    return table_node(table, schema) if table else exp.to_table(name)


def _extended(frame: Frame, path: tuple[keys.Edge, ...], schema: Schema) -> str:
    """Adds the joins of a path, after naming the relation of every bare column."""
    for column in own_columns(frame):
        holders = frame.holders(column.name)
        if not column.table and len(holders) == 1 and not is_alias_use(column, frame):
            column.set("table", exp.to_identifier(holders[0].alias))
    notes = []
    for edge in path:
        start = next(
            (s.alias for s in frame.sources if s.table and same(s.table.name, edge.table)),
            _label(edge.table, schema),
        )
        on = _condition(start, edge.columns, _label(edge.other, schema), edge.other_columns)
        join = exp.Join(this=_join_table(edge.other, schema), on=on)
        frame.select.append("joins", join)
        notes.append(join.sql(schema.dialect).strip())
    return f"added {' '.join(notes)}"


def _condition(
    left: str, columns: tuple[str, ...], right: str, others: tuple[str, ...]
) -> exp.Expr:
    pairs = zip(columns, others, strict=True)
    return exp.and_(
        *(exp.EQ(this=_name(a, left), expression=_name(b, right)) for a, b in pairs), copy=False
    )


def _name(column: str, table: str) -> exp.Column:
    return exp.column(
        exp.to_identifier(column, quoted=not column.isidentifier() or None),
        exp.to_identifier(table, quoted=not table.isidentifier() or None),
    )


def key_instead(problem: Problem, schema: Schema) -> str | None:
    """A join on columns that are not there: on the only key of the two tables instead."""
    frame, node = problem.frame, problem.node
    if frame is None or node is None:
        return None
    for left, right in _pairs(problem, frame):
        found = [
            (x, y, edge)
            for x in left
            for y in right
            if x.table and y.table
            for edge in keys.between(schema, x.table.name, y.table.name)
        ]
        found = _as_written(found, node) if len(found) > 1 else found
        if len(found) == 1:
            x, y, edge = found[0]
            on = _condition(x.alias, edge.columns, y.alias, edge.other_columns)
            return _reconditioned(node, on)
    return None


def _pairs(problem: Problem, frame: Frame) -> Iterator[tuple[list[Source], list[Source]]]:
    """The two relations that the condition compares, else the joined one and all before it."""
    node = problem.node
    pair = node.find_ancestor(exp.EQ, exp.Select) if node is not None else None
    sides = [pair.this, pair.expression] if isinstance(pair, exp.EQ) else []
    if sides and all(isinstance(side, exp.Column) and side.table for side in sides):
        left, right = (frame.source(side.table) for side in sides)
        if left and right and left is not right:
            yield [left], [right]
    join = _join_of(problem)
    joined = frame.source(join.this.alias_or_name) if join else None
    if joined is not None:
        yield list(frame.sources[: frame.sources.index(joined)]), [joined]


def _join_of(problem: Problem) -> exp.Join | None:
    """The join whose ON or USING the problem is in."""
    node = problem.node
    if isinstance(node, exp.Join):
        return node
    join = node.find_ancestor(exp.Join, exp.Select) if node is not None else None
    return join if isinstance(join, exp.Join) and join.args.get("on") is not None else None


def _as_written(
    found: list[tuple[Source, Source, keys.Edge]], node: exp.Expr
) -> list[tuple[Source, Source, keys.Edge]]:
    """Of several keys, those that share a column with the condition as written."""
    pair = node.find_ancestor(exp.EQ, exp.Select)
    names = {c.name.casefold() for c in pair.find_all(exp.Column)} if pair else set()
    return [
        (x, y, e)
        for x, y, e in found
        if names & {c.casefold() for c in (*e.columns, *e.other_columns)}
    ]


def _reconditioned(node: exp.Expr, on: exp.Expr) -> str:
    pair = node.find_ancestor(exp.EQ, exp.Join)
    if isinstance(pair, exp.EQ):
        before = pair.sql()
        pair.replace(on)
    else:
        join = node if isinstance(node, exp.Join) else node.find_ancestor(exp.Join)
        before = join.sql() if join else ""
        if join:
            join.set("using", None)
            join.set("on", on)
    return f"join condition {before} -> {on.sql()}"


def bridge(problem: Problem, schema: Schema) -> str | None:
    """Two tables without a common key: the only table between them is joined, too."""
    frame, join, node = problem.frame, _join_of(problem), problem.node
    joined = frame.source(join.this.alias_or_name) if frame and join else None
    if not (frame and join and joined and joined.table and node):
        return None
    before = frame.sources[: frame.sources.index(joined)]
    names = [s.table.name for s in before if s.table]
    path = keys.only_path(schema, names, joined.table.name)
    if path is None or len(path) != 2:
        return None
    first, second = path
    start = next(s.alias for s in before if s.table and same(s.table.name, first.table))
    between = exp.Join(
        this=_join_table(first.other, schema),
        on=_condition(start, first.columns, _label(first.other, schema), first.other_columns),
    )
    joins = frame.select.args["joins"]
    joins.insert(joins.index(join), between)
    frame.select.set("joins", joins)
    middle = _label(second.table, schema)
    on = _condition(middle, second.columns, joined.alias, second.other_columns)
    return f"{_reconditioned(node, on)}; added {between.sql(schema.dialect).strip()}"


def without_join(problem: Problem, schema: Schema) -> str | None:
    """A join on columns that are not there, to a table that nothing else uses: left out."""
    frame, join = problem.frame, _join_of(problem)
    joined = frame.source(join.this.alias_or_name) if frame and join else None
    if frame is None or joined is None:
        return None
    return dropped_if_idle(frame, joined, schema).removeprefix("; ") or None


def without_unknown(problem: Problem, schema: Schema) -> str | None:
    """A join to a table that is not there and that nothing else uses: left out."""
    frame, node = problem.frame, problem.node
    source = next((s for s in frame.sources if s.node is node), None) if frame else None
    if frame is None or source is None or len(frame.sources) < 2:
        return None
    return dropped_if_idle(frame, source, schema).removeprefix("; ") or None


def dropped_if_idle(frame: Frame, source: Source, schema: Schema) -> str:
    """Leaves a joined relation out that was only there for a column it does not have.

    Not where rows are counted by COUNT(*): the join may be there to multiply them. Not in warehouse
    programs: a join to a query of their own is mostly a filter.
    """
    if schema.dialect not in COMPILED:
        return ""
    joins = frame.select.args.get("joins") or []
    own = [j for j in joins if j.this is source.node]
    counted = source.columns is not None and frame.select.find(exp.Star)
    if _is_used(frame, source, own) or counted:
        return ""
    if not own or own[0].args.get("side"):
        return ""
    own[0].pop()
    return f"; left out {source.node.sql()}, which nothing uses"


def _is_used(frame: Frame, source: Source, own: list[exp.Join]) -> bool:
    inside = {id(c) for join in own for c in join.find_all(exp.Column)}
    for column in frame.select.find_all(exp.Column):
        named = same(column.table, source.alias)
        bare = not column.table and source.has(column.name)
        bare = bare and not (source.columns is None and frame.holders(column.name))
        if id(column) not in inside and (named or bare):
            return True
    return False


def is_alias_use(column: exp.Column, frame: Frame) -> bool:
    return (
        column.name.casefold() in frame.outputs
        and column.find_ancestor(exp.Order, exp.Group, exp.Having) is not None
    )


def in_join_condition(node: exp.Expr) -> bool:
    join = node.find_ancestor(exp.Join, exp.Select)
    return isinstance(join, exp.Join)


def own_columns(frame: Frame) -> list[exp.Column]:
    found = frame.select.find_all(exp.Column)
    return [c for c in found if home(c) is frame.select and not isinstance(c.this, exp.Star)]


def same(left: str, right: str) -> bool:
    return left.casefold() == right.casefold()

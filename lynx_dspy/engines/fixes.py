"""Fixes of single problems. Each takes a problem and the schema, changes the problem's tree in
place and says what it did, or leaves the tree alone and gives None."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from lynx_dspy.engines import keys
from lynx_dspy.engines.names import Frame, Source, best, home, normal
from lynx_dspy.engines.static import Kind, Problem, is_value
from lynx_dspy.values import Schema, Table

Fix = Callable[[Problem, Schema], str | None]


def table_near(problem: Problem, schema: Schema) -> str | None:
    """A table name that is near exactly one known table."""
    node = problem.node
    if not isinstance(node, exp.Table):
        return None
    found = schema.table(node.name)
    name = found.name if found else best(node.name, (t.name for t in schema.tables), floor=0.75)
    return _renamed_table(node, name) if name else None


def table_by_columns(problem: Problem, schema: Schema) -> str | None:
    """The only table that has all the columns which the program takes from the unknown one."""
    node, frame = problem.node, problem.frame
    if not isinstance(node, exp.Table) or frame is None:
        return None
    alias, alone = node.alias_or_name.casefold(), len(frame.sources) == 1
    used = {
        c.name
        for c in _columns(frame)
        if c.table.casefold() == alias or (alone and not c.table and c.name not in frame.outputs)
    }
    fitting = [t for t in schema.tables if used and all(t.column(name) for name in used)]
    return _renamed_table(node, fitting[0].name) if len(fitting) == 1 else None


def _renamed_table(node: exp.Table, name: str) -> str:
    before = node.sql()
    written = node.name
    node.set("db", None)
    node.set("catalog", None)
    node.set("this", exp.to_identifier(name, quoted=not name.isidentifier() or None))
    if not node.alias and written.casefold() != name.casefold():
        node.set("alias", exp.TableAlias(this=exp.to_identifier(written)))
    return f"table {before} -> {node.sql()}"


def alias_of_table(problem: Problem, schema: Schema) -> str | None:
    """A table named by its own name although it has an alias, or an alias misspelled."""
    column, frame = problem.node, problem.frame
    if not isinstance(column, exp.Column) or frame is None:
        return None
    wanted = normal(column.table)
    fitting = [
        s
        for s in frame.sources
        if s.has(column.name)
        and wanted in (normal(s.alias), normal(s.table.name if s.table else s.alias))
    ]
    return _requalified(column, fitting[0]) if len(fitting) == 1 else None


def join_named_table(problem: Problem, schema: Schema) -> str | None:
    """A table that columns name but FROM does not: joined along the only key path."""
    column, frame = problem.node, problem.frame
    if not isinstance(column, exp.Column) or frame is None or not column.table:
        return None
    table = schema.table(column.table)
    if table is None or table.column(column.name) is None:
        return None
    return _joined(frame, table, schema)


def other_source(problem: Problem, schema: Schema) -> str | None:
    """A column under the wrong alias, which exactly one other relation in scope has."""
    column, frame = problem.node, problem.frame
    if not isinstance(column, exp.Column) or frame is None:
        return None
    for level in frame.lineage:
        holders = level.holders(column.name)
        if holders:
            sure = len(holders) == 1 or _made_equal(column.name, level)
            fits = sure and not _ties(column, holders[0])
            return _moved(column, frame, holders[0]) if fits else None
    return None


def _made_equal(name: str, frame: Frame) -> bool:
    """True if the query equates all the relations' columns of this name."""
    holders = {s.alias.casefold() for s in frame.holders(name)}
    reached: set[str] = set()
    for pair in frame.select.find_all(exp.EQ):
        sides = [pair.this, pair.expression]
        if all(isinstance(s, exp.Column) and _same(s.name, name) for s in sides):
            reached |= {side.table.casefold() for side in sides}
    return len(holders) > 1 and holders <= reached


def _ties(column: exp.Column, target: Source) -> bool:
    """True where the move would compare a relation with itself: a join condition lost."""
    pair = column.parent
    if _join_condition(column):
        return True
    if not isinstance(pair, exp.EQ):
        return False
    other = pair.expression if pair.this is column else pair.this
    return isinstance(other, exp.Column) and _same(other.table, target.alias)


def _join_condition(node: exp.Expr) -> bool:
    join = node.find_ancestor(exp.Join, exp.Select)
    return isinstance(join, exp.Join)


def _moved(column: exp.Column, frame: Frame, target: Source) -> str:
    left = frame.source(column.table) if column.table else None
    note = _requalified(column, target)
    if left is not None and left is not target:
        note += _dropped_if_idle(frame, left)
    return note


def _requalified(column: exp.Column, source: Source) -> str:
    before = column.sql()
    column.set("table", exp.to_identifier(source.alias))
    spelled = next((c for c in source.columns or () if c.casefold() == column.name.casefold()), "")
    if spelled and not spelled.isidentifier():
        column.set("this", exp.to_identifier(spelled, quoted=True))
    return f"column {before} -> {column.sql()}"


def other_table(problem: Problem, schema: Schema) -> str | None:
    """A query on one table that lacks a column: the only table that has all columns used."""
    frame = problem.frame
    if frame is None or len(frame.sources) != 1 or not isinstance(problem.node, exp.Column):
        return None
    source = frame.sources[0]
    columns = [c for c in _columns(frame) if not _is_alias_use(c, frame)]
    foreign = any(c.table and not _same(c.table, source.alias) for c in columns)
    if foreign or source.table is None or not isinstance(source.node, exp.Table):
        return None
    names = {c.name for c in columns}
    fitting = [t for t in schema.tables if all(t.column(name) for name in names)]
    if len(fitting) != 1 or len(names) < 2:
        return None
    for column in columns:
        if column.table and not source.node.alias:
            column.set("table", exp.to_identifier(fitting[0].name))
    before = source.node.sql()
    source.node.set("this", exp.to_identifier(fitting[0].name))
    return f"table {before} -> {source.node.sql()}, which has all columns used"


def near_in_own(problem: Problem, schema: Schema) -> str | None:
    """A column name near exactly one of the relation it is taken from."""
    column, frame = problem.node, problem.frame
    source = frame.source(column.table) if frame and isinstance(column, exp.Column) else None
    if source is None or not isinstance(column, exp.Column):
        return None
    name = best(column.name, source.columns or ())
    return _respelled(column, source, name) if name else None


def near_in_frame(problem: Problem, schema: Schema) -> str | None:
    """A column name near exactly one of all relations in scope."""
    column, frame = problem.node, problem.frame
    if not isinstance(column, exp.Column) or frame is None:
        return None
    name = best(column.name, (c for s in frame.sources for c in s.columns or ()))
    holders = frame.holders(name) if name else ()
    if not name or len(holders) != 1 or _ties(column, holders[0]):
        return None
    return _respelled(column, holders[0], name)


def output_near(problem: Problem, schema: Schema) -> str | None:
    """A name in ORDER BY, GROUP BY or HAVING that is near exactly one output name."""
    column, frame = problem.node, problem.frame
    if not isinstance(column, exp.Column) or frame is None or column.table:
        return None
    if column.find_ancestor(exp.Order, exp.Group, exp.Having, exp.Select) is frame.select:
        return None
    aliases = [e.alias for e in frame.select.expressions if isinstance(e, exp.Alias)]
    name = best(column.name, aliases)
    if not name:
        return None
    before = column.sql()
    column.set("this", exp.to_identifier(name, quoted=not name.isidentifier() or None))
    return f"column {before} -> {column.sql()}"


def equal_in_frame(problem: Problem, schema: Schema) -> str | None:
    """A column name equal to exactly one in scope but for case, signs and plural."""
    column, frame = problem.node, problem.frame
    if not isinstance(column, exp.Column) or frame is None:
        return None
    wanted = normal(column.name)
    fitting = [(s, c) for s in frame.sources for c in s.columns or () if normal(c) == wanted]
    own = [pair for pair in fitting if _same(pair[0].alias, column.table)]
    if len(own) == 1:
        return _respelled(column, *own[0])
    fits = len(fitting) == 1 and not _ties(column, fitting[0][0])
    return _respelled(column, *fitting[0]) if fits else None


def _respelled(column: exp.Column, source: Source, name: str) -> str:
    before = column.sql()
    column.set("this", exp.to_identifier(name, quoted=not name.isidentifier() or None))
    if column.table or problem_needs_table(column):
        column.set("table", exp.to_identifier(source.alias))
    return f"column {before} -> {column.sql()}"


def problem_needs_table(column: exp.Column) -> bool:
    """True where a bare name could be taken for an output alias or for another relation's."""
    select = home(column)
    return select is not None and bool(select.args.get("joins"))


def join_holder(problem: Problem, schema: Schema) -> str | None:
    """A column that no relation in scope has: its table joined along the only key path."""
    column, frame = problem.node, problem.frame
    if not isinstance(column, exp.Column) or frame is None or frame.holders(column.name):
        return None
    if _join_condition(column):
        return None
    own = frame.source(column.table) if column.table else None
    holders = [t for t in schema.tables if t.column(column.name)]
    for starts in ([own] if own else [], frame.sources):
        names = [s.table.name for s in starts if s.table]
        for longest in (1, 2):
            paths = [(t, keys.only_path(schema, names, t.name, longest)) for t in holders]
            found = [(t, path) for t, path in paths if path]
            if len(found) == 1:
                return _joined_for(column, frame, *found[0])
            if found:
                break
    return None


def _joined_for(column: exp.Column, frame: Frame, table: Table, path: tuple[keys.Edge, ...]) -> str:
    left = frame.source(column.table) if column.table else None
    note = _extended(frame, path)
    column.set("table", exp.to_identifier(table.name))
    return note + (_dropped_if_idle(frame, left) if left else "")


def _joined(frame: Frame, table: Table, schema: Schema) -> str | None:
    names = [s.table.name for s in frame.sources if s.table]
    path = keys.only_path(schema, names, table.name)
    return _extended(frame, path) if path else None


def _extended(frame: Frame, path: tuple[keys.Edge, ...]) -> str:
    """Adds the joins of a path, after naming the relation of every bare column."""
    for column in _columns(frame):
        holders = frame.holders(column.name)
        if not column.table and len(holders) == 1 and not _is_alias_use(column, frame):
            column.set("table", exp.to_identifier(holders[0].alias))
    notes = []
    for edge in path:
        start = next(
            (s.alias for s in frame.sources if s.table and _same(s.table.name, edge.table)),
            edge.table,
        )
        on = _condition(start, edge.columns, edge.other, edge.other_columns)
        join = exp.Join(this=exp.to_table(edge.other), on=on)
        frame.select.append("joins", join)
        notes.append(join.sql().strip())
    return f"added {' '.join(notes)}"


def _is_alias_use(column: exp.Column, frame: Frame) -> bool:
    return (
        column.name.casefold() in frame.outputs
        and column.find_ancestor(exp.Order, exp.Group, exp.Having) is not None
    )


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


def _same(left: str, right: str) -> bool:
    return left.casefold() == right.casefold()


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
    start = next(s.alias for s in before if s.table and _same(s.table.name, first.table))
    between = exp.Join(
        this=exp.to_table(first.other),
        on=_condition(start, first.columns, first.other, first.other_columns),
    )
    joins = frame.select.args["joins"]
    joins.insert(joins.index(join), between)
    frame.select.set("joins", joins)
    on = _condition(second.table, second.columns, joined.alias, second.other_columns)
    return f"{_reconditioned(node, on)}; added {between.sql().strip()}"


def without_join(problem: Problem, schema: Schema) -> str | None:
    """A join on columns that are not there, to a table that nothing else uses: left out."""
    frame, join = problem.frame, _join_of(problem)
    joined = frame.source(join.this.alias_or_name) if frame and join else None
    if frame is None or joined is None:
        return None
    return _dropped_if_idle(frame, joined).removeprefix("; ") or None


def _dropped_if_idle(frame: Frame, source: Source) -> str:
    """Leaves a relation out that was only there for a column it does not have.

    Not where rows are counted: the join may be there to multiply them.
    """
    joins = frame.select.args.get("joins") or []
    own = [j for j in joins if j.this is source.node]
    if _is_used(frame, source, own) or frame.select.find(exp.Star, exp.Count):
        return ""
    if own and not own[0].args.get("side"):
        own[0].pop()
    elif not own and len(joins) == 1 and not joins[0].args.get("side"):
        first = joins[0].pop()
        frame.select.set("from_", exp.From(this=first.this))
    else:
        return ""
    return f"; left out {source.node.sql()}, which nothing uses"


def _is_used(frame: Frame, source: Source, own: list[exp.Join]) -> bool:
    joins = frame.select.args.get("joins") or []
    ignored = own or (joins if len(joins) == 1 else [])
    inside = {id(c) for join in ignored for c in join.find_all(exp.Column)}
    for column in frame.select.find_all(exp.Column):
        named = column.table.casefold() == source.alias.casefold()
        if id(column) not in inside and (named or (not column.table and source.has(column.name))):
            return True
    return False


def _columns(frame: Frame) -> list[exp.Column]:
    found = frame.select.find_all(exp.Column)
    return [c for c in found if home(c) is frame.select and not isinstance(c.this, exp.Star)]


def either_side(problem: Problem, schema: Schema) -> str | None:
    """An ambiguous column that the join makes equal on both sides: the first relation's."""
    column, frame = problem.node, problem.frame
    if not isinstance(column, exp.Column) or frame is None:
        return None
    if not _made_equal(column.name, frame):
        return None
    return _requalified(column, frame.holders(column.name)[0])


def first_side(problem: Problem, schema: Schema) -> str | None:
    """An ambiguous column: of the relation that is written first."""
    column, frame = problem.node, problem.frame
    if not isinstance(column, exp.Column) or frame is None:
        return None
    return _requalified(column, frame.holders(column.name)[0])


def as_text(problem: Problem, schema: Schema) -> str | None:
    """A text in double quotes."""
    column = problem.node
    if not isinstance(column, exp.Column) or column.table or not column.this.args.get("quoted"):
        return None
    if not is_value(column):
        return None
    text = exp.Literal.string(column.name)
    column.replace(text)
    return f'"{column.name}" -> {text.sql()}'


def aggregate_moved(problem: Problem, schema: Schema) -> str | None:
    """An aggregate in WHERE: to HAVING when there are groups, else into a subquery."""
    node, frame = problem.node, problem.frame
    if node is None or frame is None:
        return None
    if frame.select.args.get("group"):
        return _to_having(node, frame)
    inner = exp.select(node.copy())
    for part in ("from_", "joins"):
        value = frame.select.args.get(part)
        copied = [j.copy() for j in value] if isinstance(value, list) else value and value.copy()
        inner.set(part, copied)
    before = node.sql()
    node.replace(exp.Subquery(this=inner))
    return f"{before} in WHERE -> a subquery"


def _to_having(node: exp.Expr, frame: Frame) -> str | None:
    where = frame.select.args["where"]
    conditions = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    moved = [c for c in conditions if c.find(exp.AggFunc)]
    kept = [c for c in conditions if not c.find(exp.AggFunc)]
    if any(c.find(exp.Query) for c in moved):
        return None
    frame.select.set("where", exp.Where(this=exp.and_(*kept)) if kept else None)
    frame.select.having(*moved, copy=False)
    return f"{node.sql()} moved from WHERE to HAVING"


def is_null(problem: Problem, schema: Schema) -> str | None:
    """= NULL."""
    node = problem.node
    if not isinstance(node, exp.EQ | exp.NEQ):
        return None
    new: exp.Expr = exp.Is(this=node.this.copy(), expression=exp.Null())
    if isinstance(node, exp.NEQ):
        new = exp.Not(this=new)
    node.replace(new)
    return f"{node.sql()} -> {new.sql()}"


def as_stored(problem: Problem, schema: Schema) -> str | None:
    """A text that is stored in another case only."""
    node = problem.node
    if not isinstance(node, exp.Literal) or len(problem.finding.candidates) != 1:
        return None
    new = exp.Literal.string(problem.finding.candidates[0])
    note = f"{node.sql()} -> {new.sql()}, as it is stored"
    node.replace(new)
    return note


_JOINS = (key_instead, bridge)
_COLUMNS = (output_near, other_source, equal_in_frame, other_table, near_in_own, join_holder, near_in_frame)

FIXES: dict[Kind, tuple[Fix, ...]] = {
    Kind.TABLE: (table_near, table_by_columns),
    Kind.ALIAS: (alias_of_table, join_named_table, *_JOINS, *_COLUMNS, without_join),
    Kind.COLUMN: (*_JOINS, as_text, *_COLUMNS, without_join),
    Kind.QUOTED: (output_near, equal_in_frame, as_text, *_COLUMNS),
    Kind.AMBIGUOUS: (either_side, first_side),
    Kind.AGGREGATE: (aggregate_moved,),
    Kind.NULL: (is_null,),
    Kind.CASE: (as_stored,),
}
"""Which fixes meet which kind of problem, the surest first."""

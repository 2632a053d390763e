"""Fixes of single problems. Each takes a problem and the schema, changes the problem's tree in
place and says what it did, or leaves the tree alone and gives None."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from lynx_dspy.engines.folding import QUALIFIED, identifier, named_alike
from lynx_dspy.engines.join_fixes import (
    bridge,
    dropped_if_idle,
    in_join_condition,
    is_alias_use,
    join_holder,
    join_named_table,
    key_instead,
    own_columns,
    same,
    table_node,
    without_join,
    without_unknown,
)
from lynx_dspy.engines.keys import only_key
from lynx_dspy.engines.lookups import is_value
from lynx_dspy.engines.names import Frame, Source, best, home, normal
from lynx_dspy.engines.problems import Kind, Problem
from lynx_dspy.engines.quoting import alias_identifier, requoted
from lynx_dspy.engines.scopes import alias_repeated
from lynx_dspy.engines.shadow import COMPILED
from lynx_dspy.values import Schema, Table


def table_near(problem: Problem, schema: Schema) -> str | None:
    """A table name that is near exactly one known table, or lacks only its namespace."""
    node = problem.node
    if not isinstance(node, exp.Table):
        return None
    if schema.dialect in QUALIFIED:
        table = _only_alike(node, schema)
        return _renamed_table(node, table, schema) if table else None
    found = schema.table(node.name)
    name = found.name if found else best(node.name, (t.name for t in schema.tables), floor=0.75)
    found = schema.table(name) if name else None
    return _renamed_table(node, found, schema) if found else None


def _only_alike(node: exp.Table, schema: Schema) -> Table | None:
    """The only table of this last name, else the only one of the nearest last name."""
    alike = named_alike(schema, node)
    if not alike and not node.name.endswith("*"):
        name = best(node.name, (t.parts[-1] for t in schema.tables), floor=0.75)
        alike = tuple(t for t in schema.tables if t.parts[-1] == name)
    return alike[0] if len(alike) == 1 else None


def table_by_columns(problem: Problem, schema: Schema) -> str | None:
    """The only table that has all the columns which the program takes from the unknown one."""
    node, frame = problem.node, problem.frame
    if not isinstance(node, exp.Table) or frame is None:
        return None
    alias, alone = node.alias_or_name.casefold(), len(frame.sources) == 1
    used = {
        c.name
        for c in own_columns(frame)
        if c.table.casefold() == alias or (alone and not c.table and c.name not in frame.outputs)
    }
    fitting = [t for t in schema.tables if used and all(t.column(name) for name in used)]
    return _renamed_table(node, fitting[0], schema) if len(fitting) == 1 else None


def _renamed_table(node: exp.Table, table: Table, schema: Schema) -> str:
    before = node.sql(schema.dialect)
    written = node.name
    named = table_node(table, schema)
    for part in ("this", "db", "catalog"):
        node.set(part, named.args.get(part))
    if not node.alias and written.casefold() != node.name.casefold():
        node.set("alias", exp.TableAlias(this=exp.to_identifier(written)))
    return f"table {before} -> {node.sql(schema.dialect)}"


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
            return _moved(column, frame, holders[0], schema) if fits else None
    return None


def _made_equal(name: str, frame: Frame) -> bool:
    """True if the query equates all the relations' columns of this name."""
    holders = {s.alias.casefold() for s in frame.holders(name)}
    reached: set[str] = set()
    for pair in frame.select.find_all(exp.EQ):
        sides = [pair.this, pair.expression]
        if all(isinstance(s, exp.Column) and same(s.name, name) for s in sides):
            reached |= {side.table.casefold() for side in sides}
    return len(holders) > 1 and holders <= reached


def _ties(column: exp.Column, target: Source) -> bool:
    """True where the move would compare a relation with itself: a join condition lost."""
    pair = column.parent
    if in_join_condition(column):
        return True
    if not isinstance(pair, exp.EQ):
        return False
    other = pair.expression if pair.this is column else pair.this
    return isinstance(other, exp.Column) and same(other.table, target.alias)


def _moved(column: exp.Column, frame: Frame, target: Source, schema: Schema) -> str:
    left = frame.source(column.table) if column.table else None
    note = _requalified(column, target)
    if left is not None and left is not target:
        note += dropped_if_idle(frame, left, schema)
    return note


def _requalified(column: exp.Column, source: Source) -> str:
    before = column.sql()
    column.set("table", alias_identifier(source))
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
    columns = [c for c in own_columns(frame) if not is_alias_use(c, frame)]
    foreign = any(c.table and not same(c.table, source.alias) for c in columns)
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


def own_key(problem: Problem, schema: Schema) -> str | None:
    """`id` or `<table>_id` where the table's key is called otherwise."""
    column, frame = problem.node, problem.frame
    if not isinstance(column, exp.Column) or frame is None:
        return None
    owner = frame.source(column.table) if column.table else None
    wanted = normal(column.name)
    plain = [owner] if owner and wanted == "id" else []
    named = [s for s in frame.sources if s.table and wanted == normal(s.table.name) + "id"]
    fitting = [s for s in plain or named if s.table]
    key = only_key(fitting[0].table) if len(fitting) == 1 and fitting[0].table else None
    return _respelled(column, fitting[0], key, schema) if key else None


def near_in_own(problem: Problem, schema: Schema) -> str | None:
    """A column name near exactly one of the relation it is taken from."""
    column, frame = problem.node, problem.frame
    source = frame.source(column.table) if frame and isinstance(column, exp.Column) else None
    if source is None or not isinstance(column, exp.Column):
        return None
    name = best(column.name, source.columns or ())
    return _respelled(column, source, name, schema) if name else None


def near_in_frame(problem: Problem, schema: Schema) -> str | None:
    """A column name near exactly one of all relations in scope."""
    column, frame = problem.node, problem.frame
    if not isinstance(column, exp.Column) or frame is None:
        return None
    name = best(column.name, (c for s in frame.sources for c in s.columns or ()))
    holders = frame.holders(name) if name else ()
    if not name or len(holders) != 1 or _ties(column, holders[0]):
        return None
    return _respelled(column, holders[0], name, schema)


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
    own = [pair for pair in fitting if same(pair[0].alias, column.table)]
    if len(own) == 1:
        return _respelled(column, *own[0], schema)
    fits = len(fitting) == 1 and not _ties(column, fitting[0][0])
    return _respelled(column, *fitting[0], schema) if fits else None


def _named(name: str, schema: Schema) -> exp.Identifier:
    if schema.dialect not in COMPILED:
        return identifier(name, schema.dialect)
    return exp.to_identifier(name, quoted=not name.isidentifier() or None)


def _respelled(column: exp.Column, source: Source, name: str, schema: Schema) -> str:
    before = column.sql()
    column.set("this", _named(name, schema))
    if column.table or _needs_table(column):
        column.set("table", alias_identifier(source))
    return f"column {before} -> {column.sql()}"


def _needs_table(column: exp.Column) -> bool:
    """True where a bare name could be taken for an output alias or for another relation's."""
    select = home(column)
    return select is not None and bool(select.args.get("joins"))


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


_BACKTICKS = frozenset({"bigquery", "mysql", "spark", "databricks", "hive"})
"""Dialects in which double quotes make a text, so that a quoted name never is one."""


def as_text(problem: Problem, schema: Schema) -> str | None:
    """A text in double quotes."""
    column = problem.node
    if not isinstance(column, exp.Column) or column.table or not column.this.args.get("quoted"):
        return None
    if not is_value(column) or schema.dialect in _BACKTICKS:
        return None
    if schema.dialect not in COMPILED and problem.finding.candidates:
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


def group_by_key(problem: Problem, schema: Schema) -> str | None:
    """A column beside an aggregate, of a table whose key is grouped: grouped by it, too."""
    column, frame = problem.node, problem.frame
    if not isinstance(column, exp.Column) or frame is None:
        return None
    group = frame.select.args.get("group")
    if group is None:
        return None
    holder = frame.source(column.table) if column.table else next(iter(frame.holders(column.name)))
    key = only_key(holder.table) if holder and holder.table else None
    grouped = [k for k in group.expressions if isinstance(k, exp.Column)]
    if not key or not any(
        same(k.name, key) and holder and (not k.table or same(k.table, holder.alias))
        for k in grouped
    ):
        return None
    group.append("expressions", column.copy())
    return f"grouped by {column.sql(schema.dialect)}, too"


def field_near(problem: Problem, schema: Schema) -> str | None:
    """A field name that is near exactly one of the struct."""
    column, (before, _, wrong) = problem.node, problem.finding.name.rpartition(".")
    name = best(wrong, problem.finding.candidates)
    if not isinstance(column, exp.Column) or not name:
        return None
    depth = before.count(".") + 1
    parts = [*column.parts]
    above = column.parent
    while isinstance(above, exp.Dot) and isinstance(above.expression, exp.Identifier):
        parts.append(above.expression)
        above = above.parent
    if len(parts) <= depth or parts[depth].name != wrong:
        return None
    parts[depth].replace(identifier(name, schema.dialect))
    return f"field {before}.{wrong} -> {name}"


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


_COLUMNS = (
    output_near,
    other_source,
    equal_in_frame,
    other_table,
    own_key,
    near_in_own,
    join_holder,
    near_in_frame,
)


Fix = Callable[[Problem, Schema], str | None]

FIXES: dict[Kind, tuple[Fix, ...]] = {
    Kind.TABLE: (table_near, table_by_columns, without_unknown),
    Kind.ALIAS: (alias_of_table, join_named_table, *_JOINS, *_COLUMNS, without_join),
    Kind.COLUMN: (*_JOINS, as_text, *_COLUMNS, without_join),
    Kind.QUOTED: (output_near, equal_in_frame, as_text, *_COLUMNS),
    Kind.AMBIGUOUS: (either_side, first_side),
    Kind.SPELLED: (requoted,),
    Kind.FIELD: (field_near,),
    Kind.SCOPE: (alias_repeated,),
    Kind.GROUPING: (group_by_key,),
    Kind.AGGREGATE: (aggregate_moved,),
    Kind.NULL: (is_null,),
    Kind.CASE: (as_stored,),
}
"""Which fixes meet which kind of problem, the surest first."""

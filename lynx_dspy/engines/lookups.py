"""Names that a query uses and does not have: tables, aliases, columns (failure class schema)."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from lynx_dspy.engines import keys
from lynx_dspy.engines.names import PSEUDO_COLUMNS, Frame, Source, find_table, home, nearest
from lynx_dspy.engines.problems import Kind, Problem, problem
from lynx_dspy.values import Schema


def name_problems(tree: exp.Expr, views: tuple[Frame, ...], schema: Schema) -> Iterator[Problem]:
    by_select = {id(frame.select): frame for frame in views}
    for frame in views:
        for source in frame.sources:
            yield from _table(source, frame, schema)
    for column in tree.find_all(exp.Column):
        select = home(column)
        if select is not None and not isinstance(column.this, exp.Star):
            yield from _column(column, by_select[id(select)], schema)
    for frame in views:
        yield from _using(frame)


def _table(source: Source, frame: Frame, schema: Schema) -> Iterator[Problem]:
    node = source.node
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        return
    name = ".".join(part.name for part in node.parts)
    table = find_table(schema, node)
    home_names = {"main", "temp", (table.namespace if table else "").casefold()}
    foreign = schema.dialect in ("sqlite", "duckdb") and node.db.casefold() not in {"", *home_names}
    if source.columns is not None and not (foreign and table):
        return
    near = (table.name,) if table else nearest(node.name, (t.name for t in schema.tables), 0.5)
    known = ", ".join(t.name for t in schema.tables[:30])
    hint = f"nearest: {', '.join(near)}" if near else f"tables: {known}"
    yield problem(Kind.TABLE, f"no table {name}; {hint}", name, near, node, frame)


def _column(column: exp.Column, frame: Frame, schema: Schema) -> Iterator[Problem]:
    if column.table:
        yield from _qualified(column, frame, schema)
        return
    for level in frame.lineage:
        holders = level.holders(column.name)
        if len(holders) > 1 and column.name.casefold() not in level.shared:
            if level is frame and not _is_output(column, frame):
                yield _ambiguous(column, frame, holders)
            return
        if holders or any(s.columns is None for s in level.sources):
            return
    if _is_output(column, frame) or column.name.casefold() in PSEUDO_COLUMNS.get(
        schema.dialect, ()
    ):
        return
    yield from _bare(column, frame, schema)


def _is_output(column: exp.Column, frame: Frame) -> bool:
    return any(column.name.casefold() in level.outputs for level in frame.lineage)


def _ambiguous(column: exp.Column, frame: Frame, holders: tuple[Source, ...]) -> Problem:
    names = tuple(f"{s.alias}.{column.name}" for s in holders)
    text = f"column {column.name} is ambiguous; write {' or '.join(names)}"
    return problem(Kind.AMBIGUOUS, text, column.name, names, column, frame)


def _qualified(column: exp.Column, frame: Frame, schema: Schema) -> Iterator[Problem]:
    for level in frame.lineage:
        source = level.source(column.table)
        if source is None:
            continue
        if source.has(column.name) or _is_pseudo(column.name, source, schema):
            return
        yield _lacking(column, source, frame, schema)
        return
    for level in frame.lineage:
        unsure = level.holders(column.table) or any(s.columns is None for s in level.sources)
        if unsure and schema.dialect != "sqlite":
            return
    names = tuple(s.alias for s in frame.sources if s.alias)
    near = tuple(f"{s.alias}.{column.name}" for s in frame.sources if s.has(column.name))
    text = f"no table or alias {column.table} in FROM; there are: {', '.join(names)}"
    written = f"{column.table}.{column.name}"
    yield problem(Kind.ALIAS, text, written, near, column, frame)


def _is_pseudo(name: str, source: Source, schema: Schema) -> bool:
    return source.table is not None and name.casefold() in PSEUDO_COLUMNS.get(schema.dialect, ())


def _lacking(column: exp.Column, source: Source, frame: Frame, schema: Schema) -> Problem:
    columns = source.columns or ()
    near = nearest(column.name, columns)
    others = tuple(f"{s.alias}.{column.name}" for s in frame.holders(column.name))
    what = source.table.name if source.table else source.alias
    text = f"no column {column.name} in {what}; {what} has: {', '.join(columns[:40])}"
    found = others or (near + _elsewhere(column.name, frame, schema))
    if found:
        text += f"; nearest: {', '.join(found)}"
    written = f"{column.table}.{column.name}"
    return problem(Kind.COLUMN, text, written, found, column, frame)


def _bare(column: exp.Column, frame: Frame, schema: Schema) -> Iterator[Problem]:
    quoted = bool(column.this.args.get("quoted")) and schema.dialect == "sqlite"
    if quoted and is_value(column) and not any(t.column(column.name) for t in schema.tables):
        return
    near = nearest(column.name, (c for s in frame.sources for c in s.columns or ()))
    found = near + _elsewhere(column.name, frame, schema)
    where = ", ".join(dict.fromkeys(s.alias for s in frame.sources)) or "a query without FROM"
    text = f"no column {column.name} in {where}"
    if found:
        text += f"; nearest: {', '.join(found)}"
    if quoted:
        text += "; SQLite reads an unknown name in double quotes as a text"
    kind = Kind.QUOTED if quoted else Kind.COLUMN
    yield problem(kind, text, column.name, found, column, frame)


def is_value(column: exp.Column) -> bool:
    """True where a text would stand: compared, listed, or given to a function."""
    parent = column.parent
    if isinstance(parent, exp.In):
        return column is not parent.this
    if isinstance(parent, exp.Binary) and isinstance(parent, exp.Predicate):
        return column is parent.expression or isinstance(parent.expression, exp.Column)
    return isinstance(parent, exp.Between | exp.DPipe | exp.Func) and not isinstance(
        parent, exp.AggFunc
    )


def _elsewhere(name: str, frame: Frame, schema: Schema) -> tuple[str, ...]:
    """Other tables that have the column, those that a key leads to first, with that join."""
    inside = {s.table.name for s in frame.sources if s.table}
    found: list[tuple[int, str]] = []
    for table in schema.tables:
        column = table.column(name)
        if column is None or table.name in inside:
            continue
        path = keys.only_path(schema, inside, table.name)
        joins = " ".join(_join_text(edge) for edge in path or ())
        text = f"{table.name}.{column.name}"
        found.append((len(path or "far away"), f"{text} ({joins})" if joins else text))
    return tuple(text for _, text in sorted(found)[:3])


def _join_text(edge: keys.Edge) -> str:
    pairs = zip(edge.columns, edge.other_columns, strict=True)
    conditions = " AND ".join(f"{edge.table}.{a} = {edge.other}.{b}" for a, b in pairs)
    return f"JOIN {edge.other} ON {conditions}"


def _using(frame: Frame) -> Iterator[Problem]:
    for join in frame.select.args.get("joins") or ():
        joined = frame.source(join.this.alias_or_name)
        for name in join.args.get("using") or ():
            others = [s for s in frame.sources if s is not joined]
            if joined and not (joined.has(name.name) and any(s.has(name.name) for s in others)):
                text = f"USING ({name.name}): not a column of both sides"
                yield problem(Kind.COLUMN, text, name.name, (), join, frame)

"""Names that a query uses and does not have: tables, aliases, columns (failure class schema)."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from lynx_dspy.engines import keys
from lynx_dspy.engines.fields import field_problems
from lynx_dspy.engines.folding import QUALIFIED, full_name, is_exact, named_alike, stored_as
from lynx_dspy.engines.names import (
    PSEUDO_COLUMNS,
    Frame,
    Source,
    cte_of,
    find_table,
    home,
    nearest,
)
from lynx_dspy.engines.problems import Kind, Problem, problem
from lynx_dspy.engines.scopes import scope_problems
from lynx_dspy.engines.shapes import NESTED
from lynx_dspy.values import Schema, Table


def name_problems(
    tree: exp.Expr, views: tuple[Frame, ...], schema: Schema, declared: frozenset[str] = frozenset()
) -> Iterator[Problem]:
    """Names without a referent; `declared` are a script's variables, folded."""
    by_select = {id(frame.select): frame for frame in views}
    for frame in views:
        for source in frame.sources:
            yield from _table(source, frame, schema)
    for column in tree.find_all(exp.Column):
        select = home(column)
        named = select is not None and not isinstance(column.this, exp.Star)
        if select is not None and named and not _is_word(column, declared):
            yield from _column(column, by_select[id(select)], schema)
    for frame in views:
        yield from _using(frame)


def _is_word(column: exp.Column, declared: frozenset[str]) -> bool:
    """True for what sqlglot reads as a column and is none: variables, units, a sequence's parts."""
    name = column.name.casefold()
    if not column.table and name in declared:
        return True
    if column.find_ancestor(exp.Pivot, exp.MatchRecognize) is not None:
        return True
    unit = name in _UNITS and isinstance(column.parent, exp.Func | exp.Kwarg)
    return (not column.table and unit) or name in ("nextval", "currval")


_UNITS = frozenset(
    f"{unit}{ending}"
    for unit in ("year", "quarter", "month", "week", "isoweek", "day", "hour", "minute", "second")
    for ending in ("", "s")
) | {"millisecond", "microsecond", "isoyear", "dayofweek", "dayofyear", "dow", "doy", "epoch"}


def _table(source: Source, frame: Frame, schema: Schema) -> Iterator[Problem]:
    node = source.node
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        return
    if not node.db and cte_of(node) is not None:
        return
    name = ".".join(part.name for part in node.parts)
    if "information_schema" in name.casefold() or _is_field(node, frame, schema):
        return
    table = find_table(schema, node)
    home_names = {"main", "temp", (table.namespace if table else "").casefold()}
    foreign = schema.dialect in ("sqlite", "duckdb") and node.db.casefold() not in {"", *home_names}
    if table is not None and not foreign:
        yield from _unqualified(table, node, frame, schema)
        return
    yield from _unknown_table(table, node, name, frame, schema)


def _is_field(node: exp.Table, frame: Frame, schema: Schema) -> bool:
    """True for `FROM t, t.items`: a repeated column, not a table."""
    first = node.parts[0].name
    return bool(node.db) and schema.dialect in NESTED and frame.source(first) is not None


def _unqualified(table: Table, node: exp.Table, frame: Frame, schema: Schema) -> Iterator[Problem]:
    needed = {"bigquery": 2, "snowflake": 3}.get(schema.dialect, 99)
    if not node.db and len(table.parts) >= needed:
        full = full_name(table, schema.dialect)
        text = f"table {node.name} lacks its namespace; write {full}"
        yield problem(Kind.TABLE, text, node.name, (full,), node, frame)


def _unknown_table(
    table: Table | None, node: exp.Table, name: str, frame: Frame, schema: Schema
) -> Iterator[Problem]:
    alike = (table,) if table else named_alike(schema, node)[:4]
    if not alike:
        short = {t.parts[-1]: t for t in reversed(schema.tables)}
        whole = {t.name: t for t in schema.tables}
        options = whole if schema.dialect not in QUALIFIED else short
        alike = tuple(options[n] for n in nearest(node.name, options, 0.5))
    near = tuple(_label(t, schema) for t in alike)
    known = ", ".join(_label(t, schema) for t in schema.tables[:30])
    hint = f"nearest: {', '.join(near)}" if near else f"tables: {known}"
    yield problem(Kind.TABLE, f"no table {name}; {hint}", name, near, node, frame)


def _label(table: Table, schema: Schema) -> str:
    return full_name(table, schema.dialect) if schema.dialect in QUALIFIED else table.name


def _column(column: exp.Column, frame: Frame, schema: Schema) -> Iterator[Problem]:
    if column.table and schema.dialect in NESTED:
        yield from field_problems(column, frame, schema)
        return
    if column.table:
        yield from _qualified(column, frame, schema)
        return
    for level in frame.lineage:
        holders = exact_holders(column, level, schema)
        if len(holders) > 1 and column.name.casefold() not in level.shared:
            is_name = level.source(column.name) is not None and schema.dialect in NESTED
            meant = is_name or _is_output(column, frame) or _is_listed(column, frame, schema)
            if level is frame and not meant:
                yield _ambiguous(column, frame, holders)
            return
        if holders or level.unsure(column):
            return
    if _is_output(column, frame):
        yield from scope_problems(column, frame, schema)
        return
    whole_row = schema.dialect in _ROWS and any(f.source(column.name) for f in frame.lineage)
    if whole_row or column.name.casefold() in PSEUDO_COLUMNS.get(schema.dialect, ()):
        return
    yield from _bare(column, frame, schema)


_ROWS = NESTED | {"postgres", "redshift"}
"""Dialects in which the name of a relation stands for its row."""


def exact_holders(column: exp.Column, frame: Frame, schema: Schema) -> tuple[Source, ...]:
    """The relations that have a bare column, by its exact case where several have it without."""
    holders = frame.holders(column.name)
    if len(holders) < 2 or not is_exact(schema):
        return holders
    stored = stored_as(column.this, schema.dialect)
    exact = tuple(s for s in holders if stored in (s.columns or ()))
    return exact or holders


def _is_output(column: exp.Column, frame: Frame) -> bool:
    return any(column.name.casefold() in level.outputs for level in frame.lineage)


def _is_listed(column: exp.Column, frame: Frame, schema: Schema) -> bool:
    """True where GROUP BY or ORDER BY repeats an output: that is then meant."""
    if schema.dialect == "postgres" or column.find_ancestor(exp.Group, exp.Order) is None:
        return False
    names = {item.alias_or_name.casefold() for item in frame.select.expressions}
    return schema.dialect not in ("sqlite", "duckdb") and column.name.casefold() in names


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

"""Names found only without regard to case, in dialects where case decides (Snowflake, Postgres)."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from lynx_dspy.engines.folding import identifier, is_exact, stored_as
from lynx_dspy.engines.names import Frame, Source, cte_of, home
from lynx_dspy.engines.problems import Kind, Problem, problem
from lynx_dspy.values import Schema


def quoting_problems(tree: exp.Expr, views: tuple[Frame, ...], schema: Schema) -> Iterator[Problem]:
    """Names that must be quoted, or must not be, to be found."""
    if not is_exact(schema):
        return
    by_select = {id(frame.select): frame for frame in views}
    for frame in views:
        for source in frame.sources:
            yield from _relation(source, frame, schema)
    for column in tree.find_all(exp.Column):
        select = home(column)
        if select is not None and isinstance(column.this, exp.Identifier):
            yield from _column(column, by_select[id(select)], schema)


def alias_identifier(source: Source) -> exp.Identifier:
    """The identifier that names a source, quoted as the program wrote it."""
    alias = source.node.args.get("alias")
    node = alias.this if isinstance(alias, exp.TableAlias) and alias.this else source.node.this
    if isinstance(node, exp.Identifier) and node.name == source.alias:
        return node.copy()
    return exp.to_identifier(source.alias)


def _relation(source: Source, frame: Frame, schema: Schema) -> Iterator[Problem]:
    node = source.node
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        return
    parts = [p for p in node.parts if isinstance(p, exp.Identifier)]
    if source.table is not None:
        for part, stored in zip(reversed(parts), reversed(source.table.parts), strict=False):
            yield from _differs(part, stored, frame, schema)
        return
    query = None if node.db else cte_of(node)
    alias = query.args["alias"].this if query is not None else None
    if isinstance(alias, exp.Identifier):
        yield from _differs(node.this, stored_as(alias, schema.dialect), frame, schema)


def _column(column: exp.Column, frame: Frame, schema: Schema) -> Iterator[Problem]:
    qualifier = column.args.get("table")
    if isinstance(qualifier, exp.Identifier):
        source = _named(qualifier, frame, schema)
        if source is None:
            return
        stored = stored_as(alias_identifier(source), schema.dialect)
        if column.args.get("db") is None:
            yield from _differs(qualifier, stored, frame, schema)
        yield from _held(column.this, (source,), frame, schema)
        return
    for level in frame.lineage:
        if stored_as(column.this, schema.dialect) in _outputs(level, schema):
            return
        if any(s.columns is None for s in level.sources):
            return
        holders = level.holders(column.name)
        if holders:
            yield from _held(column.this, holders, frame, schema)
            return
    for stored in _outputs(frame, schema):
        yield from _differs(column.this, stored, frame, schema)


def _named(qualifier: exp.Identifier, frame: Frame, schema: Schema) -> Source | None:
    wanted = stored_as(qualifier, schema.dialect)
    for level in frame.lineage:
        for source in level.sources:
            if stored_as(alias_identifier(source), schema.dialect) == wanted:
                return source
    return next(filter(None, (level.source(qualifier.name) for level in frame.lineage)), None)


def _outputs(frame: Frame, schema: Schema) -> set[str]:
    return {
        stored_as(item.args["alias"], schema.dialect)
        for item in frame.select.expressions
        if isinstance(item, exp.Alias) and isinstance(item.args["alias"], exp.Identifier)
    }


def _held(
    name: exp.Identifier, holders: tuple[Source, ...], frame: Frame, schema: Schema
) -> Iterator[Problem]:
    columns = [c for source in holders for c in source.columns or ()]
    if stored_as(name, schema.dialect) in columns:
        return
    alike = [c for c in columns if c.casefold() == name.name.casefold()]
    if alike:
        yield from _differs(name, alike[0], frame, schema)


def _differs(name: exp.Identifier, stored: str, frame: Frame, schema: Schema) -> Iterator[Problem]:
    if stored_as(name, schema.dialect) == stored or name.name.casefold() != stored.casefold():
        return
    written = name.sql(schema.dialect)
    right = identifier(stored, schema.dialect).sql(schema.dialect)
    text = f"{schema.dialect} finds no {written}: case matters; write {right}"
    yield problem(Kind.SPELLED, text, written, (right,), name, frame)


def requoted(item: Problem, schema: Schema) -> str | None:
    """A name written so that its stored case is found."""
    node = item.node
    if not isinstance(node, exp.Identifier) or len(item.finding.candidates) != 1:
        return None
    before = node.sql(schema.dialect)
    right = item.finding.candidates[0]
    stored = right[1:-1].replace('""', '"') if right.startswith('"') else right
    node.replace(identifier(stored, schema.dialect))
    return f"name {before} -> {right}"

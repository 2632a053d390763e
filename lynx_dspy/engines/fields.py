"""Dotted references where a dot may go into a struct: alias.column.field (BigQuery, Spark ...)."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from lynx_dspy.engines.names import PSEUDO_COLUMNS, Frame, Source, nearest, path_of
from lynx_dspy.engines.problems import Kind, Problem, problem
from lynx_dspy.engines.shapes import Shape
from lynx_dspy.values import Schema


def field_problems(column: exp.Column, frame: Frame, schema: Schema) -> Iterator[Problem]:
    """What is wrong with a dotted reference; nothing where a type on its way is not known."""
    path = _whole_path(column)
    for level in frame.lineage:
        source = level.source(path[0])
        if source is not None:
            if source.columns is None or path[1].casefold() in PSEUDO_COLUMNS.get(
                schema.dialect, ()
            ):
                return
            if source.has(path[1]):
                yield from _inside(source.shape(path[1]), path, 2, column, frame, schema)
                return
        holders = level.holders(path[0])
        held = holders[0].shape(path[0]) if holders else None
        if holders and not (source and held and held.is_scalar):
            yield from _inside(held, path, 1, column, frame, schema)
            return
        if source is not None:
            yield _lacking(path, source, column, frame)
            return
        if level.unsure(column):
            return
    if not _is_full_name(column, frame):
        yield _unknown(path, column, frame)


def _whole_path(column: exp.Column) -> tuple[str, ...]:
    node: exp.Expr = column
    while isinstance(node.parent, exp.Dot) and node.parent.this is node and path_of(node.parent):
        node = node.parent
    return path_of(node)


def _is_full_name(column: exp.Column, frame: Frame) -> bool:
    """True for `schema.table.column`."""
    return any(level.source(column.table) for level in frame.lineage)


def _inside(
    shape: Shape | None,
    path: tuple[str, ...],
    start: int,
    column: exp.Column,
    frame: Frame,
    schema: Schema,
) -> Iterator[Problem]:
    for place in range(start, len(path)):
        if shape is None:
            return
        before, name = ".".join(path[:place]), path[place]
        if shape.is_array and schema.dialect == "bigquery":
            yield _repeated(shape, before, name, column, frame)
            return
        inner = shape.field(name)
        if inner is None:
            if shape.fields or shape.is_scalar:
                yield _no_field(shape, before, name, column, frame)
            return
        shape = inner


def _repeated(shape: Shape, before: str, name: str, column: exp.Column, frame: Frame) -> Problem:
    alias = before.rsplit(".", 1)[-1]
    text = f"{before} is an ARRAY: add CROSS JOIN UNNEST({before}) AS {alias[:1]} and write "
    text += f"{alias[:1]}.{name}"
    if shape.field("key") and shape.field("value"):
        text += f", or (SELECT value.<type>_value FROM UNNEST({before}) WHERE key = '...')"
    return problem(Kind.FIELD, text, f"{before}.{name}", (), column, frame)


def _no_field(shape: Shape, before: str, name: str, column: exp.Column, frame: Frame) -> Problem:
    names = [field.name for field in shape.fields.values()]
    if not names:
        text = f"{before} is {shape.type} and has no field {name}"
        return problem(Kind.FIELD, text, f"{before}.{name}", (), column, frame)
    near = nearest(name, names)
    text = f"no field {name} in {before}; it has: {', '.join(names[:40])}"
    text += f"; nearest: {', '.join(near)}" if near else ""
    return problem(Kind.FIELD, text, f"{before}.{name}", near, column, frame)


def _lacking(path: tuple[str, ...], source: Source, column: exp.Column, frame: Frame) -> Problem:
    columns = source.columns or ()
    others = tuple(f"{s.alias}.{path[1]}" for s in frame.holders(path[1]))
    near = others or nearest(path[1], columns)
    what = source.table.name if source.table else source.alias
    text = f"no column {path[1]} in {what}; {what} has: {', '.join(columns[:40])}"
    text += f"; nearest: {', '.join(near)}" if near else ""
    return problem(Kind.COLUMN, text, ".".join(path), near, column, frame)


def _unknown(path: tuple[str, ...], column: exp.Column, frame: Frame) -> Problem:
    names = tuple(s.alias for s in frame.sources if s.alias)
    near = tuple(f"{s.alias}.{path[1]}" for s in frame.sources if s.has(path[1]))
    text = f"no table, alias or struct column {path[0]} in FROM; there are: {', '.join(names)}"
    return problem(Kind.ALIAS, text, ".".join(path), near, column, frame)

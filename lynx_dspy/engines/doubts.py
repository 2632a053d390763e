"""What runs and yet looks wrong: misread spellings, NULLs, unknown values, products, groups."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from lynx_dspy.engines.grouping import STRICT
from lynx_dspy.engines.names import Frame, home, nearest, normal
from lynx_dspy.engines.problems import Kind, Problem, problem
from lynx_dspy.engines.respell import respell
from lynx_dspy.values import Column, Schema


def misspellings(tree: exp.Expr, schema: Schema) -> Iterator[Problem]:
    for change in respell(tree.copy(), schema)[1]:
        if change.silent:
            text = f"{schema.dialect} misreads {change.before}; write {change.after}"
            yield problem(Kind.SPELLING, text, change.before, (change.after,))


def doubts(views: tuple[Frame, ...], schema: Schema) -> Iterator[Problem]:
    for frame in views:
        yield from _nulls(frame)
        yield from _literals(frame)
        yield from _products(frame)
        yield from _numbers_as_text(frame)
        if schema.dialect in _CLASHING:
            yield from _clashes(frame, schema)
        if schema.dialect not in STRICT:
            yield from _ungrouped(frame)


def _nulls(frame: Frame) -> Iterator[Problem]:
    for node in frame.select.find_all(exp.EQ, exp.NEQ):
        if home(node) is not frame.select or not isinstance(node.expression, exp.Null):
            continue
        if node.find_ancestor(exp.Where, exp.Having, exp.Join, exp.If) is not None:
            word = "IS" if isinstance(node, exp.EQ) else "IS NOT"
            text = f"{node.sql()} is never true; write {node.this.sql()} {word} NULL"
            yield problem(Kind.NULL, text, node.sql(), (), node, frame)


def _literals(frame: Frame) -> Iterator[Problem]:
    for node in frame.select.find_all(exp.EQ, exp.In):
        if home(node) is not frame.select or not isinstance(node.this, exp.Column):
            continue
        column = column_of(node.this, frame)
        options = node.expressions if isinstance(node, exp.In) else [node.expression]
        for literal in options if column else ():
            if column and isinstance(literal, exp.Literal):
                yield from _literal(literal, column, frame)


def column_of(node: exp.Column, frame: Frame) -> Column | None:
    """The schema's column that `node` names in `frame` or around it."""
    for level in frame.lineage:
        for source in level.sources:
            fits = not node.table or source.alias.casefold() == node.table.casefold()
            found = source.table.column(node.name) if fits and source.table else None
            if found is not None:
                return found
    return None


def _literal(literal: exp.Literal, column: Column, frame: Frame) -> Iterator[Problem]:
    numeric = any(t in column.type.upper() for t in ("INT", "REAL", "NUM", "DOUB", "FLOA", "DEC"))
    if numeric and literal.is_string and not _is_number(literal.name):
        text = f"{column.name} is {column.type}, compared with the text '{literal.name}'"
        yield problem(Kind.TYPE, text, literal.name, (), literal, frame)
        return
    stored = stored_values(column)
    if not literal.is_string or stored is None or literal.name in stored:
        return
    near = tuple(v for v in stored if normal(v) == normal(literal.name)) or nearest(
        literal.name, stored
    )
    folded = tuple(v for v in stored if v.casefold() == literal.name.casefold())
    kind = Kind.CASE if len(folded) == 1 else Kind.VALUE
    near = folded or near
    shown = ", ".join(repr(v) for v in near or stored[:8])
    text = f"{column.name} never is '{literal.name}'; it holds: {shown}"
    yield problem(kind, text, literal.name, near, literal, frame)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def stored_values(column: Column) -> tuple[str, ...] | None:
    """All distinct texts of a column, if the schema holds all of them."""
    if column.distinct is None or not column.samples or column.distinct > len(column.samples):
        return None
    if not all(s.startswith("'") and s.endswith("'") for s in column.samples):
        return None
    return tuple(s[1:-1].replace("''", "'") for s in column.samples)


def _products(frame: Frame) -> Iterator[Problem]:
    where = frame.select.args.get("where")
    for join in frame.select.args.get("joins") or ():
        free = not (join.args.get("on") or join.args.get("using") or join.args.get("method"))
        source = frame.source(join.this.alias_or_name)
        if not free or join.args.get("side") or source is None or source.table is None:
            continue
        alias = join.this.alias_or_name.casefold()
        tied = where and any(c.table.casefold() in ("", alias) for c in where.find_all(exp.Column))
        if not tied:
            text = f"{join.this.alias_or_name} is joined without a condition: every pair of rows"
            yield problem(Kind.PRODUCT, text, join.this.alias_or_name, (), join, frame)


_CLASHING = frozenset({"bigquery", "postgres", "redshift"})
"""Dialects that refuse to compare a text column with a number column."""


def _numbers_as_text(frame: Frame) -> Iterator[Problem]:
    """Text columns that hold numbers, ordered or added as they are: '9' comes after '10'."""
    for node in frame.select.find_all(exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.Ordered):
        if home(node) is not frame.select or not isinstance(node.this, exp.Column):
            continue
        column = column_of(node.this, frame)
        if column is None or not _holds_numbers(column):
            continue
        other = node.args.get("expression") or node.args.get("low")
        number = isinstance(other, exp.Literal | exp.Neg) and not other.is_string
        if isinstance(node, exp.Ordered) or number:
            name = node.this.sql()
            text = f"{name} is text that holds numbers, and is ordered as text; "
            text += f"write CAST({name} AS a number)"
            yield problem(Kind.NUMBER, text, name, (), node.this, frame)


def _holds_numbers(column: Column) -> bool:
    texts = [s[1:-1] for s in column.samples if s.startswith("'") and s.endswith("'")]
    kind = column.type.upper().startswith(("TEXT", "VARCHAR", "STRING", "CHAR"))
    lengths = {len(t.lstrip("-").split(".")[0]) for t in texts}
    return kind and len(lengths) > 1 and all(map(_is_number, texts))


def _clashes(frame: Frame, schema: Schema) -> Iterator[Problem]:
    for node in frame.select.find_all(exp.EQ):
        sides = (node.this, node.expression)
        if home(node) is not frame.select or not all(isinstance(s, exp.Column) for s in sides):
            continue
        kinds = [_family(column_of(side, frame)) for side in sides]
        if {"text", "number"} == set(kinds):
            written = node.sql(schema.dialect)
            text = f"{written} compares a text with a number; CAST one of them"
            yield problem(Kind.TYPE, text, written, (), node, frame)


def _family(column: Column | None) -> str:
    kind = column.type.upper() if column else ""
    if kind.startswith(("TEXT", "VARCHAR", "STRING", "CHAR")):
        return "text"
    numeric = ("INT", "BIGINT", "SMALLINT", "NUM", "DEC", "FLOAT", "DOUBLE", "REAL")
    return "number" if kind.startswith(numeric) else ""


def _ungrouped(frame: Frame) -> Iterator[Problem]:
    select = frame.select
    aggregated = [e for e in select.expressions if e.find(exp.AggFunc) and not e.find(exp.Window)]
    bare = [e for e in select.expressions if isinstance(e.unalias(), exp.Column)]
    group = select.args.get("group")
    names = {e.name.casefold() for e in group.expressions} if group else set()
    numbers = [e for e in group.expressions if isinstance(e, exp.Literal)] if group else []
    for item in bare if aggregated and not numbers else ():
        column = item.unalias()
        if not {column.name.casefold(), item.alias.casefold()} & names:
            text = f"{column.sql()} stands beside an aggregate but is not in GROUP BY"
            yield problem(Kind.UNGROUPED, text, column.sql(), (), item, frame)

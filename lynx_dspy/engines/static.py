"""Checks a program against the schema without running it (paper, III-C: failure classes).

Names are looked up frame by frame; where an engine is at hand in process, its own compiler has
the last word (`shadow`), so that a program it accepts is never called broken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from lynx_dspy.engines import keys, spelling
from lynx_dspy.engines.names import (
    PSEUDO_COLUMNS,
    Frame,
    Source,
    find_table,
    frames,
    home,
    nearest,
    normal,
)
from lynx_dspy.engines.respell import foreign_words, respell
from lynx_dspy.engines.shadow import known_functions, shadow
from lynx_dspy.values import Column, FailureClass, Finding, Schema


class Kind(StrEnum):
    """What is wrong; the second group runs all the same."""

    SYNTAX = "syntax"
    STATEMENT = "statement"
    TABLE = "table"
    ALIAS = "alias"
    COLUMN = "column"
    AMBIGUOUS = "ambiguous"
    QUOTED = "quoted"
    FUNCTION = "function"
    AGGREGATE = "aggregate"
    ENGINE = "engine"

    SPELLING = "spelling"
    NULL = "null"
    CASE = "case"
    VALUE = "value"
    TYPE = "type"
    PRODUCT = "product"
    UNGROUPED = "ungrouped"


CERTAIN = frozenset({Kind.SPELLING, Kind.NULL, Kind.CASE})
"""Mild kinds that have one sensible outcome all the same, so that mending them is safe."""

_CLASSES = {
    Kind.SYNTAX: FailureClass.SYNTAX,
    Kind.STATEMENT: FailureClass.SYNTAX,
    Kind.FUNCTION: FailureClass.SYNTAX,
    Kind.AGGREGATE: FailureClass.SYNTAX,
    Kind.TABLE: FailureClass.SCHEMA,
    Kind.ALIAS: FailureClass.SCHEMA,
    Kind.COLUMN: FailureClass.SCHEMA,
    Kind.AMBIGUOUS: FailureClass.SCHEMA,
    Kind.QUOTED: FailureClass.SCHEMA,
}


@dataclass(frozen=True, eq=False)
class Problem:
    """A finding with the place that it is about."""

    kind: Kind
    finding: Finding
    node: exp.Expr | None = None
    frame: Frame | None = None

    @property
    def is_error(self) -> bool:
        """True if the program cannot run or does not mean what it says."""
        return self.finding.failure_class is not FailureClass.SEMANTIC


def check(code: str, schema: Schema) -> tuple[Finding, ...]:
    """What speaks against `code`, errors (class syntax or schema) first, then semantic doubts.

    Runs nothing and never raises. Empty means: it compiles and nothing looks odd.
    """
    tree = parsed(code, schema.dialect)
    found = problems(tree, schema, code) if tree is not None else _unreadable(code, schema)
    ordered = sorted(found, key=lambda p: not p.is_error)
    return tuple(dict.fromkeys(p.finding for p in ordered))


def has_errors(findings: tuple[Finding, ...]) -> bool:
    """True if any finding says that the program cannot run."""
    return any(f.failure_class is not FailureClass.SEMANTIC for f in findings)


def parsed(code: str, dialect: str) -> exp.Expr | None:
    """The tree of a single statement; None if it is not one that sqlglot can read."""
    try:
        trees = sqlglot.parse(code, read=dialect)
    except (SqlglotError, RecursionError):
        return None
    kept = [tree for tree in trees if tree is not None]
    return kept[0] if len(kept) == 1 else None


def problems(tree: exp.Expr, schema: Schema, code: str) -> list[Problem]:
    """All problems of a program, given as tree and as text."""
    if not isinstance(tree, exp.Query):
        kind = type(tree).__name__.upper()
        return [_problem(Kind.STATEMENT, f"only a SELECT query may be run, not {kind}", kind)]
    views = frames(tree, schema)
    found = [*_names(tree, views, schema), *_functions(code, schema), *_aggregates(views)]
    found = _judged(found, code, schema)
    return found + [*_spellings(tree, schema), *_doubts(views)]


def _judged(found: list[Problem], code: str, schema: Schema) -> list[Problem]:
    """Our errors, corrected by the engine's own compiler."""
    compiler = shadow(schema)
    if compiler is None:
        return found
    complaint = compiler(code)
    if not complaint:
        return [p for p in found if p.kind is Kind.QUOTED]
    return found or [_from_engine(complaint, code, schema)]


def _from_engine(complaint: str, code: str, schema: Schema) -> Problem:
    hints = spelling.HINTS.get(schema.dialect, {})
    advice = "; ".join(hints[word] for word in foreign_words(code, schema.dialect))
    named = any(w in complaint for w in ("no such table", "no such column", "ambiguous"))
    found = FailureClass.SCHEMA if named or "Binder" in complaint else FailureClass.SYNTAX
    text = f"{complaint}: {advice}" if advice else complaint
    return Problem(Kind.ENGINE, Finding(found, text))


def _unreadable(code: str, schema: Schema) -> list[Problem]:
    compiler = shadow(schema)
    complaint = compiler(code) if compiler else ""
    if compiler and not complaint and code.strip():
        return []
    try:
        trees = [t for t in sqlglot.parse(code, read=schema.dialect) if t is not None]
    except (SqlglotError, RecursionError) as error:
        where = str(error).splitlines()[0] if str(error) else "cannot be read"
        return [_problem(Kind.SYNTAX, f"syntax error: {complaint or where}")]
    if not trees:
        return [_problem(Kind.STATEMENT, "there is no query")]
    return [_problem(Kind.STATEMENT, f"{len(trees)} statements; write one SELECT query")]


def _problem(
    kind: Kind,
    message: str,
    name: str = "",
    candidates: tuple[str, ...] = (),
    node: exp.Expr | None = None,
    frame: Frame | None = None,
) -> Problem:
    found = _CLASSES.get(kind, FailureClass.SEMANTIC)
    return Problem(kind, Finding(found, message, name, candidates), node, frame)


def _names(tree: exp.Expr, views: tuple[Frame, ...], schema: Schema) -> Iterator[Problem]:
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
    yield _problem(Kind.TABLE, f"no table {name}; {hint}", name, near, node, frame)


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
    return _problem(Kind.AMBIGUOUS, text, column.name, names, column, frame)


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
        if level.holders(column.table) or any(s.columns is None for s in level.sources):
            if schema.dialect not in ("sqlite",) and level.source(column.table) is None:
                return
    names = tuple(s.alias for s in frame.sources if s.alias)
    near = tuple(f"{s.alias}.{column.name}" for s in frame.sources if s.has(column.name))
    text = f"no table or alias {column.table} in FROM; there are: {', '.join(names)}"
    written = f"{column.table}.{column.name}"
    yield _problem(Kind.ALIAS, text, written, near, column, frame)


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
    return _problem(Kind.COLUMN, text, written, found, column, frame)


def _bare(column: exp.Column, frame: Frame, schema: Schema) -> Iterator[Problem]:
    quoted = bool(column.this.args.get("quoted")) and schema.dialect == "sqlite"
    if quoted and is_value(column):
        if not any(t.column(column.name) for t in schema.tables):
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
    yield _problem(kind, text, column.name, found, column, frame)


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
                yield _problem(Kind.COLUMN, text, name.name, (), join, frame)


def _functions(code: str, schema: Schema) -> Iterator[Problem]:
    known = known_functions(schema.dialect)
    if known is None:
        return
    try:
        tokens = sqlglot.tokenize(code, read=schema.dialect)
    except SqlglotError:
        return
    named = {TokenType.VAR, TokenType.LEFT, TokenType.RIGHT, TokenType.DATE, TokenType.REPLACE}
    for token, after in zip(tokens, tokens[1:], strict=False):
        name = token.text.casefold()
        called = token.token_type in named and after.token_type is TokenType.L_PAREN
        if called and name not in known and name not in NOT_FUNCTIONS:
            near = nearest(name, known, 0.75) if schema.dialect != "sqlite" else ()
            advice = spelling.HINTS.get(schema.dialect, {}).get(token.text.upper(), "")
            text = f"{schema.dialect} has no function {token.text}"
            text += f"; {advice}" if advice else ""
            yield _problem(Kind.FUNCTION, text, token.text, near)


NOT_FUNCTIONS = frozenset(
    "in values over filter using exists and or not as on from where select case when then else "
    "cast try_cast extract partition materialized coalesce any all some interval within group "
    "row rows union except intersect having limit offset between like glob match regexp "
    "struct map array list unnest table lateral pivot unpivot columns grouping cube rollup "
    "sets position substring trim overlay left right raise distinct nullif if is by set".split()
)


def _aggregates(views: tuple[Frame, ...]) -> Iterator[Problem]:
    for frame in views:
        where = frame.select.args.get("where")
        for node in where.find_all(exp.AggFunc) if where else ():
            if home(node) is frame.select and not isinstance(node.parent, exp.Window):
                text = f"aggregate {node.sql()} in WHERE; use HAVING, or a subquery"
                yield _problem(Kind.AGGREGATE, text, node.sql(), (), node, frame)


def _spellings(tree: exp.Expr, schema: Schema) -> Iterator[Problem]:
    for change in respell(tree.copy(), schema)[1]:
        if change.silent:
            text = f"{schema.dialect} misreads {change.before}; write {change.after}"
            yield _problem(Kind.SPELLING, text, change.before, (change.after,))


def _doubts(views: tuple[Frame, ...]) -> Iterator[Problem]:
    for frame in views:
        yield from _nulls(frame)
        yield from _literals(frame)
        yield from _products(frame)
        yield from _ungrouped(frame)


def _nulls(frame: Frame) -> Iterator[Problem]:
    for node in frame.select.find_all(exp.EQ, exp.NEQ):
        if home(node) is frame.select and isinstance(node.expression, exp.Null):
            if node.find_ancestor(exp.Where, exp.Having, exp.Join, exp.If) is not None:
                word = "IS" if isinstance(node, exp.EQ) else "IS NOT"
                text = f"{node.sql()} is never true; write {node.this.sql()} {word} NULL"
                yield _problem(Kind.NULL, text, node.sql(), (), node, frame)


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
        yield _problem(Kind.TYPE, text, literal.name, (), literal, frame)
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
    yield _problem(kind, text, literal.name, near, literal, frame)


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
        if not free or str(join.args.get("kind", "")).upper() == "CROSS" or join.args.get("side"):
            continue
        alias = join.this.alias_or_name.casefold()
        tied = where and any(c.table.casefold() in ("", alias) for c in where.find_all(exp.Column))
        if not tied:
            text = f"{join.this.alias_or_name} is joined without a condition: every pair of rows"
            yield _problem(Kind.PRODUCT, text, join.this.alias_or_name, (), join, frame)


def _ungrouped(frame: Frame) -> Iterator[Problem]:
    select = frame.select
    aggregated = [e for e in select.expressions if e.find(exp.AggFunc) and not e.find(exp.Window)]
    bare = [e for e in select.expressions if isinstance(e.unalias(), exp.Column)]
    group = select.args.get("group")
    names = {e.name.casefold() for e in group.expressions} if group else set()
    numbers = [e for e in group.expressions if isinstance(e, exp.Literal)] if group else []
    for item in bare if aggregated and not numbers else ():
        if item.unalias().name.casefold() not in names and item.alias.casefold() not in names:
            if not group or not isinstance(item.unalias().this, exp.Star):
                text = f"{item.unalias().sql()} stands beside an aggregate but is not in GROUP BY"
                yield _problem(Kind.UNGROUPED, text, item.unalias().sql(), (), item, frame)

"""Checks a program against the schema without running it (paper, III-C: failure classes).

Names are looked up frame by frame; where an engine is at hand in process, its own compiler has
the last word (`shadow`), so that a program it accepts is never called broken.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from lynx_dspy.engines import spelling
from lynx_dspy.engines.doubts import doubts, misspellings
from lynx_dspy.engines.lookups import name_problems
from lynx_dspy.engines.names import Frame, frames, home, nearest
from lynx_dspy.engines.problems import Kind, Problem, problem
from lynx_dspy.engines.respell import foreign_words
from lynx_dspy.engines.shadow import known_functions, shadow
from lynx_dspy.values import FailureClass, Finding, Schema


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
        return [problem(Kind.STATEMENT, f"only a SELECT query may be run, not {kind}", kind)]
    views = frames(tree, schema)
    found = [*name_problems(tree, views, schema), *_functions(code, schema), *_aggregates(views)]
    found = _judged(found, code, schema)
    return [*found, *misspellings(tree, schema), *doubts(views)]


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
        return [problem(Kind.SYNTAX, f"syntax error: {complaint or where}")]
    if not trees:
        return [problem(Kind.STATEMENT, "there is no query")]
    return [problem(Kind.STATEMENT, f"{len(trees)} statements; write one SELECT query")]


def _functions(code: str, schema: Schema) -> Iterator[Problem]:
    known = known_functions(schema.dialect)
    if known is None:
        return
    try:
        tokens = sqlglot.tokenize(code, read=schema.dialect)
    except SqlglotError:
        return
    named = {TokenType.VAR, TokenType.LEFT, TokenType.RIGHT, TokenType.DATE, TokenType.REPLACE}
    for token, after in itertools.pairwise(tokens):
        name = token.text.casefold()
        called = token.token_type in named and after.token_type is TokenType.L_PAREN
        if called and name not in known and name not in NOT_FUNCTIONS:
            near = nearest(name, known, 0.75) if schema.dialect != "sqlite" else ()
            advice = spelling.HINTS.get(schema.dialect, {}).get(token.text.upper(), "")
            text = f"{schema.dialect} has no function {token.text}"
            text += f"; {advice}" if advice else ""
            yield problem(Kind.FUNCTION, text, token.text, near)


# fmt: off
NOT_FUNCTIONS = frozenset({
    "all", "and", "any", "array", "as", "between", "by", "case", "cast", "coalesce", "columns",
    "cube", "distinct", "else", "except", "exists", "extract", "filter", "from", "glob", "group",
    "grouping", "having", "if", "in", "intersect", "interval", "is", "join", "lateral", "like",
    "limit", "list", "map", "match", "materialized", "not", "nullif", "offset", "on", "or", "over",
    "overlay", "partition", "pivot", "position", "raise", "regexp", "rollup", "row", "rows",
    "select", "set", "sets", "struct", "substring", "table", "then", "trim", "try_cast", "union",
    "unnest", "unpivot", "using", "values", "when", "where", "within",
})
"""Words that stand before a bracket and are no functions of the engine's list."""
# fmt: on


def _aggregates(views: tuple[Frame, ...]) -> Iterator[Problem]:
    for frame in views:
        where = frame.select.args.get("where")
        for node in where.find_all(exp.AggFunc) if where else ():
            if home(node) is frame.select and not isinstance(node.parent, exp.Window):
                text = f"aggregate {node.sql()} in WHERE; use HAVING, or a subquery"
                yield problem(Kind.AGGREGATE, text, node.sql(), (), node, frame)

"""Checks a program against the schema without running it (paper, III-C: failure classes).

Names are looked up frame by frame; where an engine is at hand in process, its own compiler has
the last word (`shadow`), so that a program it accepts is never called broken.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lynx_dspy.engines import spelling
from lynx_dspy.engines.doubts import doubts, misspellings
from lynx_dspy.engines.framing import frames
from lynx_dspy.engines.functions import CONSTRUCTS, LACKING
from lynx_dspy.engines.grouping import grouping_problems
from lynx_dspy.engines.lookups import name_problems
from lynx_dspy.engines.names import Frame, home, nearest
from lynx_dspy.engines.places import located
from lynx_dspy.engines.problems import Kind, Problem, problem
from lynx_dspy.engines.quoting import quoting_problems
from lynx_dspy.engines.respell import foreign_words
from lynx_dspy.engines.shadow import known_functions, shadow
from lynx_dspy.values import FailureClass, Finding, Schema

NOT_SQL = frozenset({"pandas"})
"""Dialects whose programs are in another language (`engines/python`)."""


def check(code: str, schema: Schema) -> tuple[Finding, ...]:
    """What speaks against `code`, errors (class syntax or schema) first, then semantic doubts.

    Runs nothing and never raises. Empty means: nothing is known to be wrong with it.
    """
    tree = parsed(code, schema.dialect)
    found = problems(tree, schema, code) if tree is not None else _unreadable(code, schema)
    ordered = sorted(found, key=lambda p: not p.is_error)
    return tuple(dict.fromkeys(located(p, code) for p in ordered))


def has_errors(findings: tuple[Finding, ...]) -> bool:
    """True if any finding says that the program cannot run."""
    return any(f.failure_class is not FailureClass.SEMANTIC for f in findings)


def parsed(code: str, dialect: str) -> exp.Expr | None:
    """The tree of a single statement; None if it is not one that sqlglot can read.

    In BigQuery a query may follow declarations, which are not part of the tree.
    """
    return script(code, dialect).query


@dataclass(frozen=True, slots=True)
class Script:
    """A query, the statements before it that only declare, and the names that they declare."""

    query: exp.Expr | None
    preamble: tuple[exp.Expr, ...] = ()

    @property
    def variables(self) -> frozenset[str]:
        """Folded names of the declared variables."""
        items = [i for s in self.preamble if isinstance(s, exp.Declare) for i in s.expressions]
        names = [
            n for item in items for n in (item.this if type(item.this) is list else [item.this])
        ]
        return frozenset(n.name.casefold() for n in names if n is not None)

    @property
    def functions(self) -> frozenset[str]:
        """Folded names of the declared functions."""
        made = [s.this.this for s in self.preamble if isinstance(s, exp.Create)]
        return frozenset(name.name.casefold() for name in made)


def script(code: str, dialect: str) -> Script:
    """The statements of a program; `query` is None if it is not one query with its preamble."""
    if dialect in NOT_SQL:
        return Script(None)
    try:
        read = sqlglot.parse(code, read=dialect)
    except (SqlglotError, RecursionError):
        return Script(None)
    trees = [tree for tree in read if tree is not None and not isinstance(tree, exp.Semicolon)]
    if len(trees) > 1 and (dialect != "bigquery" or not all(map(_declares, trees[:-1]))):
        return Script(None)
    return Script(trees[-1], tuple(trees[:-1])) if trees else Script(None)


def _declares(tree: exp.Expr) -> bool:
    if isinstance(tree, exp.Create):
        return tree.kind == "FUNCTION" and "TEMP" in tree.sql("bigquery")[:12]
    return isinstance(tree, exp.Declare | exp.Set)


def problems(tree: exp.Expr, schema: Schema, code: str) -> list[Problem]:
    """All problems of a program, given as tree and as text."""
    if not isinstance(tree, exp.Query):
        kind = type(tree).__name__.upper()
        return [problem(Kind.STATEMENT, f"only a SELECT query may be run, not {kind}", kind)]
    views = frames(tree, schema)
    declared = script(code, schema.dialect) if schema.dialect == "bigquery" else Script(tree)
    found = [
        *name_problems(tree, views, schema, declared.variables),
        *quoting_problems(tree, views, schema),
        *_functions(code, schema, declared.functions),
        *_aggregates(views),
        *grouping_problems(views, schema),
    ]
    found = _judged(found, code, schema)
    return [*found, *misspellings(tree, schema), *doubts(views, schema)]


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


def _functions(code: str, schema: Schema, declared: frozenset[str]) -> Iterator[Problem]:
    known = known_functions(schema.dialect)
    lacking = LACKING.get(schema.dialect, {})
    if known is None and not lacking:
        return
    try:
        tokens = sqlglot.tokenize(code, read=schema.dialect)
    except SqlglotError:
        return
    named = {TokenType.VAR, TokenType.LEFT, TokenType.RIGHT, TokenType.DATE, TokenType.REPLACE}
    yield from _constructs(tokens, schema)
    for place, (token, after) in enumerate(itertools.pairwise(tokens)):
        name = token.text.casefold()
        if after.token_type is not TokenType.L_PAREN or name in declared:
            continue
        if known is None:
            member = place > 0 and tokens[place - 1].token_type is TokenType.DOT
            quoted = token.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
            if token.text.upper() in lacking and not member and not quoted:
                advice = f"write {lacking[token.text.upper()]}"
                yield _no_function(token, schema, advice, ())
        elif token.token_type in named and name not in known and name not in NOT_FUNCTIONS:
            near = nearest(name, known, 0.75) if schema.dialect != "sqlite" else ()
            advice = spelling.HINTS.get(schema.dialect, {}).get(token.text.upper(), "")
            yield _no_function(token, schema, advice, near)


def _constructs(tokens: list[Token], schema: Schema) -> Iterator[Problem]:
    lacking = CONSTRUCTS.get(schema.dialect, {})
    for token in tokens:
        advice = lacking.get(token.token_type.name)
        if advice:
            text = f"{schema.dialect} has no {token.text}; write {advice}"
            yield replace(problem(Kind.CONSTRUCT, text, token.text), start=token.start)


def _no_function(token: Token, schema: Schema, advice: str, near: tuple[str, ...]) -> Problem:
    text = f"{schema.dialect} has no function {token.text}" + (f"; {advice}" if advice else "")
    found = problem(Kind.FUNCTION, text, token.text, near)
    return replace(found, start=token.start)


# fmt: off
NOT_FUNCTIONS = frozenset({
    "all", "and", "any", "array", "as", "between", "by", "case", "cast", "coalesce", "columns",
    "cube", "distinct", "else", "except", "exists", "extract", "filter", "from", "glob", "group",
    "grouping", "having", "if", "in", "intersect", "interval", "is", "join", "json_each",
    "json_tree", "lateral", "like",
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

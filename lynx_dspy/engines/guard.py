"""The read-only allow-list that every program passes before an engine sees it.

The second of three walls: the engines themselves are opened read-only, and their limits hold
whatever passes here. So where sqlglot cannot read a single query, an engine in process may judge
it: it is locked to its own files. A server is not, so what cannot be read does not reach one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lynx_dspy.engines.forbidden import (
    FORBIDDEN_FUNCTION,
    FORBIDDEN_PACKAGES,
    FORBIDDEN_SPACES,
    FORBIDDEN_TABLE,
    SEQUENCE_COLUMNS,
    STATEMENTS,
)
from lynx_dspy.values import FailureClass, Outcome, Status

IN_PROCESS = frozenset({"sqlite", "duckdb"})
"""Dialects whose engines run here, locked to the files that they were given."""

_LONGEST = 100_000
_UNREADABLE = "this cannot be read as"
_OPENINGS = frozenset({"SELECT", "WITH", "VALUES", "FROM", "PIVOT", "UNPIVOT", "("})

_NODES = (
    *(exp.Condition, exp.Query, exp.Values, exp.Pivot, exp.UnpivotColumns, exp.PivotAlias),
    *(exp.PivotAny, exp.With, exp.CTE, exp.From, exp.Join, exp.Lateral, exp.Unnest, exp.Table),
    *(exp.TableAlias, exp.TableSample, exp.Where, exp.Group, exp.Cube, exp.Rollup, exp.Having),
    *(exp.GroupingSets, exp.Qualify, exp.Order, exp.Ordered, exp.Limit, exp.LimitOptions),
    *(exp.Offset, exp.Fetch, exp.Distinct, exp.WindowSpec, exp.WithinGroup, exp.Filter),
    *(exp.IgnoreNulls, exp.RespectNulls, exp.HavingMax, exp.Alias, exp.Aliases, exp.Identifier),
    *(exp.Var, exp.Star, exp.Tuple, exp.Slice, exp.Lambda, exp.AtTimeZone, exp.FromTimeZone),
    *(exp.Interval, exp.IntervalOp, exp.IntervalSpan, exp.TimeUnit, exp.DataType),
    *(exp.DataTypeParam, exp.ColumnDef, exp.Comprehension, exp.PositionalColumn, exp.JSON),
    *(exp.JSONPath, exp.JSONPathPart, exp.JSONKeyValue, exp.JSONExtractQuote, exp.OnCondition),
    *(exp.FormatJson, exp.Cluster, exp.Sort, exp.Distribute, exp.Variadic, exp.IndexTableHint),
    *(exp.CharacterSet, exp.Introducer, exp.National, exp.RecursiveWithSearch, exp.Collate),
    *(exp.Semicolon, exp.ForIn, exp.WithOperator, exp.TableFromRows, exp.Version),
)
"""Everything that a query may be made of; a node of another type blocks the program."""

_TABLE_FUNCTIONS = frozenset(
    [
        *(
            "range",
            "generate_series",
            "exploding_generate_series",
            "unnest",
            "explode",
            "flatten",
            "posexplode",
            "inline",
        ),
        *("json_each", "json_tree", "json_table", "json_array_elements"),
        *("json_array_elements_text", "jsonb_each", "jsonb_array_elements"),
        *("regexp_split_to_table", "string_split", "split_to_table", "histogram"),
        *("histogram_values", "repeat_row", "generate_date_array"),
        *("generate_timestamp_array", "generate_subscripts", "values", "generator"),
        *("rtreecheck", "bm25", "array_to_table", "string_to_table"),
    ]
)

_FILE_NAME = re.compile(
    r".*://.*|.*\.(?:csv|tsv|txt|parquet|json|jsonl|ndjson|xlsx|gz|zst|db|duckdb|sqlite3?)",
    re.I | re.S,
)
_FORMATS = frozenset({"printf", "format"})
_WIDE_FORMAT = re.compile(r"%[^a-zA-Z%]*\d{4}|%[^a-zA-Z%]*\*")
_EXECUTABLE = re.compile(r"/\*(?:M?!|\+)", re.I)
_UNDERLINED = re.compile(r"\x1b\[\d+m")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_FIRST = re.compile(r"\w+|\S")
_LEADING = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.S)


def check(code: str, dialect: str) -> str | None:
    """None if `code` may run, else one line that says why it may not. Never raises for any text.

    >>> check("SELECT 1", "sqlite")
    >>> check("DROP TABLE t", "sqlite")
    'only a query may run; this begins with DROP'
    """
    if len(code) > _LONGEST:
        return f"the program has {len(code)} characters; at most {_LONGEST} may run"
    try:
        tokens = sqlglot.tokenize(code, read=dialect)
    except SqlglotError as error:
        return _check_opening(_first_word(code)) or _unreadable(error, dialect)
    statements = _split(tokens)
    if not statements:
        return "there is no program: the text holds no statement"
    if len(statements) > 1:
        return f"exactly one statement may run; this holds {len(statements)}"
    tokens = statements[0]
    return (
        _check_opening(tokens[0].text.upper())
        or _check_hidden(code, tokens, dialect)
        or _check_tree(code, tokens, dialect)
    )


def refusal(code: str, dialect: str) -> Outcome | None:
    """The outcome of a program that must not reach the engine; None if it may."""
    if _LEADING.fullmatch(code) or not code.strip("; \t\r\n"):
        return Outcome(Status.NO_PROGRAM, error="there is no program: the text holds no statement")
    if not code.isascii() and _LONE_SURROGATE.search(code):  # DuckDB's Python driver crashes on it
        error = "the program holds a character that is not Unicode text (a lone surrogate)"
        return Outcome(Status.ERROR, error=error, failure_class=FailureClass.SYNTAX)
    reason = check(code, dialect)
    if reason and reason.startswith(_UNREADABLE):
        return Outcome(Status.ERROR, error=reason, failure_class=FailureClass.SYNTAX)
    return Outcome(Status.BLOCKED, error=reason) if reason else None


def _check_opening(word: str) -> str | None:
    return None if word in _OPENINGS else f"only a query may run; this begins with {word[:30]}"


def _check_hidden(code: str, tokens: list[Token], dialect: str) -> str | None:
    """Text that a server reads otherwise than sqlglot: what MySQL runs of a comment, and names
    that PostgreSQL spells by code points."""
    if dialect in IN_PROCESS:
        return None
    words = STATEMENTS.get(dialect, frozenset())
    for token in tokens:
        if token.text.upper() in words and code[token.start] not in "\"'[":
            return f"{token.text.upper()} is not allowed: only queries that read may run"
    gaps = (code[a.end + 1 : b.start] for a, b in pairwise(tokens))
    for gap in (code[: tokens[0].start], *gaps, code[tokens[-1].end + 1 :]):
        if found := _EXECUTABLE.search(gap):
            return f"comments that begin with {found[0]} are run by some servers, so none may stand"
    for first, second, third in zip(tokens, tokens[1:], tokens[2:], strict=False):
        spelled = first.text.upper() == "U" and second.text == "&" and third.start == second.end + 1
        if spelled and code[third.start] in "\"'":
            return "names and texts spelled by code points (U&) are not allowed"
    return None


def _unreadable(error: SqlglotError, dialect: str) -> str | None:
    if dialect in IN_PROCESS:
        return None
    line = " ".join(_UNDERLINED.sub("", str(error)).split())
    return f"{_UNREADABLE} {dialect}: {line}"


def _check_tree(code: str, tokens: list[Token], dialect: str) -> str | None:
    try:
        trees = Dialect.get_or_raise(dialect).parser().parse(tokens, code)
        nodes = (node for tree in trees if tree for node in tree.walk())
        return next(filter(None, (_check_node(node, dialect) for node in nodes)), None)
    except SqlglotError as error:
        inner = next((t.text for t in tokens if t.token_type != TokenType.L_PAREN), "")
        reasons = (_check_opening(inner.upper()), *map(_check_call, _called(tokens)))
        return next(filter(None, reasons), None) or _unreadable(error, dialect)
    except RecursionError:
        return "the program is nested too deeply"


def _check_node(node: exp.Expr, dialect: str) -> str | None:
    if not isinstance(node, _NODES):
        return f"{type(node).__name__.upper()} is not allowed: only queries that read may run"
    if isinstance(node, exp.Table | exp.Lateral | exp.TableFromRows):
        return _check_relation(node, dialect)
    if isinstance(node, exp.Parameter | exp.SessionParameter) and dialect not in IN_PROCESS:
        return f"the variable {node.sql(dialect)} is not allowed"
    if isinstance(node, exp.Dot):
        return _check_package(node)
    if isinstance(node, exp.Column) and node.name.upper() in SEQUENCE_COLUMNS.get(dialect, ()):
        return f"{node.name} is not allowed: it moves a sequence on"
    if isinstance(node, exp.Func):
        return next(filter(None, map(_check_call, _names(node))), None) or _check_format(node)
    return None


def _check_relation(node: exp.Table | exp.Lateral | exp.TableFromRows, dialect: str) -> str | None:
    source = node.this.expression if isinstance(node.this, exp.Dot) else node.this
    if isinstance(source, exp.Func):
        if _TABLE_FUNCTIONS.isdisjoint(_names(source)):
            return f"the table function {_names(source)[0]} is not allowed"
        return None
    if isinstance(node, exp.Lateral):
        return None
    if not isinstance(node, exp.Table) or not isinstance(source, exp.Identifier):
        return "only tables and queries may stand after FROM and JOIN"
    if FORBIDDEN_TABLE.fullmatch(node.name.lower()):
        return f"reading {node.name} is not allowed"
    if node.db.lower() in FORBIDDEN_SPACES.get(dialect, ()):
        return f"reading from {node.db} is not allowed"
    if dialect == "duckdb" and source.args.get("quoted") and _FILE_NAME.fullmatch(node.name):
        return f"reading the file {node.name!r} is not allowed; name a table"
    return None


def _check_package(node: exp.Dot) -> str | None:
    """`SNOWFLAKE.CORTEX.COMPLETE(…)`: functions of a package that does more than compute."""
    path = {part.name.lower() for part in node.find_all(exp.Identifier)}
    if isinstance(node.expression, exp.Func) and (found := FORBIDDEN_PACKAGES & path):
        return f"functions of {min(found)} are not allowed"
    return None


def _check_format(node: exp.Func) -> str | None:
    """SQLite's `printf('%.2000000000c', 'x')` works for 16 s that nothing can interrupt."""
    if _FORMATS.isdisjoint(_names(node)):
        return None
    pattern = node.args.get("this") if isinstance(node, exp.Format) else None
    pattern = pattern or next(iter(node.expressions), None)
    if isinstance(pattern, exp.Literal) and not _WIDE_FORMAT.search(pattern.name):
        return None
    return "printf takes only a literal format with widths below 1000, and no *"


def _names(function: exp.Func) -> list[str]:
    if isinstance(function, exp.Anonymous | exp.AnonymousAggFunc):
        return [function.name.lower()]
    return [name.lower() for name in function.sql_names()]


def _check_call(name: str) -> str | None:
    if FORBIDDEN_FUNCTION.fullmatch(name.lower()):
        return f"the function {name.lower()} is not allowed"
    return None


def _called(tokens: list[Token]) -> Iterator[str]:
    for name, following in pairwise(tokens):
        if following.token_type == TokenType.L_PAREN:
            yield name.text


def _split(tokens: list[Token]) -> list[list[Token]]:
    statements: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    return [statement for statement in statements if statement]


def _first_word(code: str) -> str:
    word = _FIRST.search(_LEADING.sub("", code, count=1))
    return word[0].upper() if word else ""

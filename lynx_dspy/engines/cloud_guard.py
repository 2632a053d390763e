"""What the read-only guard adds for warehouses and lakes, where a query can reach far outside.

The third wall is the engine's own word on the program, asked before it runs: BigQuery's dry run
names the statement's type, Snowflake's and Spark's EXPLAIN the operations of its plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lynx_dspy.engines import guard
from lynx_dspy.values import Outcome, Status

_FUNCTIONS = {
    "bigquery": re.compile(
        r"external_query|external_object_transform|session_user|keys\..+|aead\..+|"
        r"deterministic_.+|(?:ml|ai|obj|net\.http).*\..+|appends|changes|vector_search|search"
    ),
    "snowflake": re.compile(
        r"system\$.+|result_scan|last_query_id|get_(?:presigned|stage|absolute|relative)\w*|"
        r"build_(?:scoped|stage)\w*|to_file|fl_\w+|ai_\w+|complete|infer_schema|"
        r"cortex\w*|validate\w*|query_history\w*|login_history\w*|copy_history|task_\w+|"
        r"encrypt\w*|decrypt\w*|snowflake\..+|finetune|embed_text\w*|current_transaction"
    ),
    "spark": re.compile(
        r"(?:try_)?reflect|java_method|ai_\w+|(?:try_)?secret|list_secrets|http_request|"
        r"input_file_\w+|remote_query|vector_search|xpath\w*|from_avro|to_avro|from_protobuf|"
        r"to_protobuf|python_worker_logs|read_\w+|cloud_files\w*|event_log|session_window_state"
    ),
}
"""Functions that reach files, other services, keys, or what other people ran."""

_NAMESPACES = {
    "bigquery": frozenset({"safe", "net", "hll_count", "kll_quantiles"}),
    "snowflake": frozenset({"information_schema"}),
    "spark": frozenset({"builtin", "system"}),
}
"""Whose functions are the engine's own; any other dotted call is somebody's code."""

_HARMLESS = {"net": frozenset({"host", "reg_domain", "public_suffix"})}

_FORMATS = re.compile(
    r"csv|json|orc|parquet|text|xml|avro|delta|iceberg|hudi|binaryfile|image|jdbc|libsvm|noop|"
    r"kafka|socket|rate|hive|protobuf|console|memory|excel|mongodb?|redis|cassandra|bigquery",
    re.I,
)
"""Spark's data sources: `format.`path`` reads a file as a table."""

_PATH = re.compile(r"[/\\:]|^\.+$")
_TEXTS = frozenset({TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER})
_STATE = frozenset({"nextval"})
_FLOWS = frozenset({"->>", "procedure"})
"""Snowflake chains statements with `->>`, and a WITH may hold a procedure to call."""


def refusal(code: str, dialect: str) -> Outcome | None:
    """The outcome of a program that must not reach the engine; None if it may."""
    refused = guard.refusal(code, dialect)
    if refused is not None:
        return refused
    reason = check(code, dialect)
    return Outcome(Status.BLOCKED, error=reason) if reason else None


def check(code: str, dialect: str) -> str | None:
    """None if nothing in `code` reaches outside the tables, else one line that says what does.

    >>> check("SELECT * FROM parquet.`/etc/x`", "spark")
    'reading the file /etc/x is not allowed; name a table'
    """
    try:
        tokens = sqlglot.tokenize(code, read=dialect)
    except SqlglotError:
        return _by_words(code, dialect)
    return next(_token_reasons(tokens, dialect), None) or _tree_reason(code, dialect)


def bare(code: str, dialect: str) -> str:
    """The single statement of `code` without the semicolons and comments that end it.

    >>> bare("SELECT 1 ; -- done", "spark")
    'SELECT 1'
    """
    try:
        tokens = sqlglot.tokenize(code, read=dialect)
    except SqlglotError:
        return code
    kept = [token for token in tokens if token.token_type != TokenType.SEMICOLON]
    return code[: kept[-1].end + 1] if kept else ""


def _token_reasons(tokens: list[Token], dialect: str) -> Iterator[str]:
    """Judged by words, so it holds where sqlglot cannot read the program."""
    for place, _ in enumerate(tokens[:-1]):
        if tokens[place + 1].token_type == TokenType.L_PAREN:
            reason = _call_reason(_dotted(tokens, place), dialect)
            if reason:
                yield reason
    if dialect == "snowflake":
        yield from _outside(tokens)


def _dotted(tokens: list[Token], last: int) -> tuple[str, ...]:
    """The name that ends at `last`, folded: `net`, `host`."""
    parts = [tokens[last].text.casefold()]
    while last >= 2 and tokens[last - 1].token_type == TokenType.DOT:
        last -= 2
        parts.insert(0, tokens[last].text.casefold())
    return tuple(part for name in parts for part in name.split("."))


def _call_reason(name: tuple[str, ...], dialect: str) -> str | None:
    pattern = _FUNCTIONS[dialect]
    if pattern.fullmatch(".".join(name)) or pattern.fullmatch(name[-1]):
        return f"the function {'.'.join(name)} is not allowed"
    if len(name) > 1 and not _is_own(name, dialect):
        return f"the function {'.'.join(name)} is not the engine's own, so it is not allowed"
    return None


def _is_own(name: tuple[str, ...], dialect: str) -> bool:
    space = name[-2]
    harmless = _HARMLESS.get(space)
    if harmless is not None and name[-1] not in harmless:
        return name[-1].startswith(("ip", "safe_ip", "ipv4"))
    return space in _NAMESPACES[dialect]


def _outside(tokens: list[Token]) -> Iterator[str]:
    for before, token in pairwise(tokens):
        if token.token_type == TokenType.PARAMETER or token.text.startswith("@"):
            yield "reading a stage is not allowed; name a table"
        if token.text.casefold() in _FLOWS and token.token_type not in _TEXTS:
            yield f"{token.text} runs further statements, so it is not allowed"
        dotted = before.token_type == TokenType.DOT
        if dotted and token.text.casefold() in _STATE:
            yield f"{token.text} changes a sequence, so it is not allowed"


def _tree_reason(code: str, dialect: str) -> str | None:
    """Tables that are files, and names made at run time."""
    try:
        tree = sqlglot.parse_one(code, read=dialect)
    except (SqlglotError, RecursionError):
        return None
    for table in tree.find_all(exp.Table):
        reason = _table_reason(table, dialect)
        if reason:
            return reason
    return None


def _table_reason(table: exp.Table, dialect: str) -> str | None:
    if isinstance(table.this, exp.Literal | exp.Parameter):
        return "a table's name must stand in the program as a name"
    if dialect != "spark":
        return None
    parts = [part.name for part in table.parts]
    if any(map(_PATH.search, parts)) or (len(parts) == 2 and _FORMATS.fullmatch(parts[0])):
        return f"reading the file {parts[-1]} is not allowed; name a table"
    return None


def _by_words(code: str, dialect: str) -> str | None:
    """Text whose quotes do not close: no engine can run it, unless sqlglot reads quotes wrongly."""
    words = re.findall(r"[\w$.]+(?=\s*\()", code)
    reasons = (_call_reason(tuple(word.casefold().split(".")), dialect) for word in words)
    return next(filter(None, reasons), None)

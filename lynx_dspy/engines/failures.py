"""From an engine's error message to a status, a failure class and one clean line (paper, III-C)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lynx_dspy.values import FailureClass, Limits, Outcome, Status

Verdict = Status | FailureClass
Table = tuple[tuple[str, Verdict], ...]

_GONE = Status.UNAVAILABLE
_SYNTAX, _SCHEMA = FailureClass.SYNTAX, FailureClass.SCHEMA

_SQLITE: Table = (
    (r"not authorized|prohibited|readonly database|access to .* is", Status.BLOCKED),
    (r"only execute one statement", Status.BLOCKED),
    (r"^interrupted$", Status.TIMEOUT),
    (r"database (table |schema )?is locked|disk I/O error|disk is full", Status.UNAVAILABLE),
    (r"unable to open database|disk image is malformed", Status.UNAVAILABLE),
    (r"malformed database schema|not a database|unsupported file format", Status.UNAVAILABLE),
    (r"syntax error|incomplete input|unrecognized token|no such function", FailureClass.SYNTAX),
    (r"wrong number of arguments|clause should come|stack overflow", FailureClass.SYNTAX),
    (r"no tables specified|no such (collation|window)|unknown join type", FailureClass.SYNTAX),
    (r"null character|surrogates|Expression tree is too large", FailureClass.SYNTAX),
    (r"no such (table|column|index|module)|ambiguous column", FailureClass.SCHEMA),
    (r"cannot join using column|unknown database", FailureClass.SCHEMA),
    (r"", FailureClass.SEMANTIC),
)

_DUCKDB: Table = (
    (r"^Permission Error|Cannot execute statement of type", Status.BLOCKED),
    (r"^INTERRUPT Error", Status.TIMEOUT),
    (r"^(IO|Fatal|Serialization|Connection) Error|has been invalidated", Status.UNAVAILABLE),
    (r"^Parser Error|surrogates|null character|max.* depth", FailureClass.SYNTAX),
    (r"Function with name .* does not exist|is not an aggregate function", FailureClass.SYNTAX),
    (r"^Catalog Error", FailureClass.SCHEMA),
    (r"^Binder Error: (Referenced|Ambiguous|Duplicate alias)", FailureClass.SCHEMA),
    (r"^Binder Error: .*(not found|does not (exist|have a column))", FailureClass.SCHEMA),
    (r"", FailureClass.SEMANTIC),
)

_POSTGRES: Table = (
    (r"^\[(25006|42501|42P11)\]|can only be used to specify a query", Status.BLOCKED),
    (r"cannot insert multiple commands|DECLARE .* must not", Status.BLOCKED),
    (r"^\[57014\]", Status.TIMEOUT),
    (r"^\[53400\]", FailureClass.SEMANTIC),
    (r"^\[(08|53|55|57|58|F0|XX|40)\w+\]", Status.UNAVAILABLE),
    (r"network error|connection is closed|server closed|can't create a connection", _GONE),
    (r"^\[(42601|42602|42622|42883|42P18|54001|54023)\]", FailureClass.SYNTAX),
    (r"^\[(42P01|42703|42702|42704|42712|42P09|42725|42P02|3F000)\]", FailureClass.SCHEMA),
    (r"", FailureClass.SEMANTIC),
)
"""By SQLSTATE: postgresql.org/docs, errcodes-appendix."""

_MYSQL: Table = (
    (r"^\[(1044|1227|1290|1792|1345|1410)\]", Status.BLOCKED),
    (r"^\[(1317|1969|3024)\]", Status.TIMEOUT),
    (r"^\[(2\d\d\d|1040|1053|1077|1079|1152|1153|1159|1205|1213|1021|1037|1927)\]", _GONE),
    (r"^\[(1064|1065|1149|1305|1370|1128|1582|1583|1248|1630)\]", FailureClass.SYNTAX),
    (r"^\[(1054|1142|1143|1146|1052|1109|1051|1049|1066|1060|1356)\]", FailureClass.SCHEMA),
    (r"", FailureClass.SEMANTIC),
)
"""By error number: mariadb.com/kb, MariaDB error codes. An account with few rights is told of an
unknown table or function that it may not use it (1142, 1370)."""

_OTHER: Table = (
    (r"read.?only|permission|privilege|not authorized|denied", Status.BLOCKED),
    (r"cancel|interrupt|time.?out|timed out", Status.TIMEOUT),
    (r"connection|network|socket|server (closed|has gone)|unable to open", Status.UNAVAILABLE),
    (r"syntax|parse|unrecognized token|no such function|function .*(not|unknown)", _SYNTAX),
    (r"(no such|unknown|invalid|ambiguous|unresolved) (table|column|object|name|ident)", _SCHEMA),
    (r"(table|column|relation|object|identifier)\b.*(not (found|exist)|does not|invalid)", _SCHEMA),
    (r"", FailureClass.SEMANTIC),
)
"""By the words that most engines use; for those that no table of their own is kept for."""

TABLES: Mapping[str, Table] = {
    "sqlite": _SQLITE,
    "duckdb": _DUCKDB,
    "postgres": _POSTGRES,
    "mysql": _MYSQL,
}
"""Dialect -> (pattern of the raw message, what it means); the first that matches holds."""

_LONGEST = 400
_DECORATION = re.compile(
    r"^\[\w*\] |^(?:\w+ )*?(?:\w+ Error): |"
    r"\s*(?:LINE \d+:|Possible solutions:|See also|Stack Trace).*",
    re.S,
)


def failed(dialect: str, message: str, seconds: float = 0.0) -> Outcome:
    """The outcome of a program whose run ended with `message`.

    >>> failed("sqlite", "no such column: x").failure_class.value
    'schema'
    """
    verdict = next(
        v for pattern, v in TABLES.get(dialect, _OTHER) if re.search(pattern, message, re.I | re.S)
    )
    line = one_line(message)
    if isinstance(verdict, FailureClass):
        return Outcome(Status.ERROR, error=line, failure_class=verdict, seconds=seconds)
    return Outcome(verdict, error=line, seconds=seconds)


def timed_out(limit: float, seconds: float) -> Outcome:
    """The outcome of a program that was interrupted."""
    error = f"stopped after {limit:g} s: the query takes too long"
    return Outcome(Status.TIMEOUT, error=error, seconds=seconds)


def died(expired: bool, limits: Limits, seconds: float) -> Outcome:
    """The outcome of a program that took its process with it."""
    if expired:
        return timed_out(limits.timeout_seconds, seconds)
    error = "the engine broke off: the query takes more memory than it may"
    return Outcome(Status.ERROR, error=error, failure_class=FailureClass.SEMANTIC, seconds=seconds)


def one_line(message: str) -> str:
    r"""A message without the engine's banner, source excerpt and advice.

    >>> one_line('Parser Error: syntax error at or near "FORM"\n\nLINE 1: select 1 FORM t')
    'syntax error at or near "FORM"'
    """
    line = " ".join(_DECORATION.sub("", message).split()) or " ".join(message.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"

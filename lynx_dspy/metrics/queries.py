"""What the rules need to know about a query's text, not its result."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import Token

_SPLIT_OPERATOR = re.compile(r"""('(?:[^']|'')*'|"[^"]*")|([<>!]) =""")


def as_is(sql: str) -> str:
    """The query unchanged: what most rules run."""
    return sql


def strip_distinct(sql: str, dialect: str = "sqlite") -> str:
    """The query without DISTINCT, as official Spider runs gold and prediction by default.

    This acts on the queries, not on the results: a rule about results cannot undo a DISTINCT. A
    query that cannot be tokenised stays as it is, and so does `IS DISTINCT FROM`.

    >>> strip_distinct("SELECT count(DISTINCT a), 'distinct' FROM t")
    "SELECT count( a), 'distinct' FROM t"
    """
    from sqlglot import TokenType

    tokens = _tokens(sql, dialect)
    kept, position = "", 0
    for index, token in enumerate(tokens):
        comparison = [t.token_type for t in tokens[index + 1 : index + 2]] == [TokenType.FROM]
        if token.token_type is TokenType.DISTINCT and not comparison:
            kept += sql[position : token.start]
            position = token.end + 1
    return kept + sql[position:]


def join_operators(sql: str) -> str:
    """`> =`, `< =` and `! =` written together, as official Spider repairs them.

    >>> join_operators("SELECT '> =' FROM t WHERE a > = 2")
    "SELECT '> =' FROM t WHERE a >= 2"
    """
    return _SPLIT_OPERATOR.sub(lambda match: match[1] or match[2] + "=", sql)


def spider_form(sql: str) -> str:
    """What official Spider runs: operators joined, DISTINCT dropped."""
    return strip_distinct(join_operators(sql))


def never_ordered(sql: str) -> bool:
    """For rules that ignore the order of rows."""
    return False


def mentions_order(sql: str) -> bool:
    """Whether "order by" occurs anywhere in the query: Spider's test for ordered results.

    >>> mentions_order("SELECT a FROM t ORDER BY a")
    True
    """
    return "order by" in sql.lower()


def orders_result(sql: str, dialect: str = "sqlite") -> bool:
    """Whether the outermost query sorts its rows; ORDER BY inside a subquery does not.

    >>> orders_result("SELECT a FROM (SELECT a FROM t ORDER BY a)")
    False
    """
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return sqlglot.parse_one(sql, dialect=dialect).args.get("order") is not None
    except SqlglotError:
        return mentions_order(sql)


def one_line(sql: str, dialect: str = "sqlite") -> str:
    """The query on one line without comments, for formats that hold one query a line.

    A line break inside a literal becomes a blank, since such formats cannot hold it.

    >>> one_line("SELECT a -- why\\nFROM  t;")
    'SELECT a FROM t'
    """
    tokens = _tokens(sql, dialect)
    line, end = "", -1
    for token in tokens:
        line += " " if line and token.start > end + 1 else ""
        line += sql[token.start : token.end + 1]
        end = token.end
    return " ".join((line or sql).replace("\t", " ").splitlines()).strip().rstrip("; ")


def _tokens(sql: str, dialect: str) -> Sequence[Token]:
    from sqlglot import tokenize
    from sqlglot.errors import SqlglotError

    try:
        return tokenize(sql, read=dialect)
    except SqlglotError:
        return []

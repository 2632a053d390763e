"""Where in a program a problem is: line and column, counted from 1, and the clause."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from lynx_dspy.engines.problems import Problem
from lynx_dspy.values import Finding

_CLAUSES: dict[str, str] = {
    "expressions": "SELECT",
    "from_": "FROM",
    "laterals": "FROM",
    "joins": "JOIN",
    "where": "WHERE",
    "group": "GROUP BY",
    "having": "HAVING",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
}


def located(item: Problem, code: str) -> Finding:
    """The finding with its place, as far as the tree still knows it."""
    found = item.finding
    start = _start(item.node) if item.node is not None else item.start
    clause = clause_name(item.node) if item.node is not None else ""
    if start is None or not 0 <= start < len(code):
        return replace(found, clause=clause) if clause else found
    line, column = line_and_column(code, start)
    return replace(found, line=line, column=column, clause=clause)


def line_and_column(code: str, start: int) -> tuple[int, int]:
    """Both from 1.

    >>> line_and_column("SELECT a\\nFROM t", 14)
    (2, 6)
    """
    return code.count("\n", 0, start) + 1, start - code.rfind("\n", 0, start)


def clause_name(node: exp.Expr) -> str:
    """The clause of the innermost query that holds the node, with the name of its CTE."""
    clause, child, above = "", node, node.parent
    while above is not None:
        if not clause and isinstance(above, exp.Query) and child.arg_key in _CLAUSES:
            clause = _CLAUSES[child.arg_key]
        if isinstance(above, exp.CTE):
            return f"{clause} of {above.alias}" if clause else above.alias
        child, above = above, above.parent
    return clause


def _start(node: exp.Expr) -> int | None:
    """The first character of a node: the least start of the tokens in it."""
    starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
    return min(starts) if starts else None

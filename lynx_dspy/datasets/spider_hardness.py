"""Spider's hardness of a question, from its parsed gold query (`evaluation.py` of Spider).

It counts clauses, nested queries and extras. Quirks of the official counting are kept, since
published figures by hardness depend on them: a NOT in WHERE and each AND or OR in HAVING count as
aggregations.
"""

from __future__ import annotations

from typing import Any

Parsed = dict[str, Any]

_LIKE = 9
"""Number of LIKE among the operators of the parsed form."""


def hardness(sql: Parsed) -> str:
    """`easy`, `medium`, `hard` or `extra`."""
    clauses, nested, extras = _clauses(sql), _nested(sql), _extras(sql)
    if nested == 0:
        if clauses <= 1 and extras == 0:
            return "easy"
        if (clauses <= 1 and extras <= 2) or (clauses <= 2 and extras < 2):
            return "medium"
        if (clauses <= 2 and extras > 2) or (clauses == 3 and extras <= 2):
            return "hard"
    return "hard" if nested == 1 and clauses <= 1 and extras == 0 else "extra"


def _conditions(sql: Parsed) -> list[list[Any]]:
    """Condition units of FROM, WHERE and HAVING; the words between them left out."""
    return [*sql["from"]["conds"][::2], *sql["where"][::2], *sql["having"][::2]]


def _clauses(sql: Parsed) -> int:
    words: list[str] = [*sql["from"]["conds"][1::2], *sql["where"][1::2], *sql["having"][1::2]]
    joins: int = max(0, len(sql["from"]["table_units"]) - 1)
    present: int = sum(bool(sql[name]) for name in ("where", "groupBy", "orderBy"))
    limited: bool = sql["limit"] is not None
    likes: int = sum(unit[1] == _LIKE for unit in _conditions(sql))
    return present + limited + joins + words.count("or") + likes


def _nested(sql: Parsed) -> int:
    inside = sum(isinstance(value, dict) for unit in _conditions(sql) for value in unit[3:5])
    return inside + sum(sql[name] is not None for name in ("intersect", "except", "union"))


def _extras(sql: Parsed) -> int:
    order = sql["orderBy"][1] if sql["orderBy"] else []
    sorted_by = [operand for unit in order for operand in unit[1:3] if operand]
    counted = [*sql["select"][1], *sql["where"][::2], *sql["groupBy"], *sorted_by, *sql["having"]]
    aggregations: int = sum(unit[0] != 0 for unit in counted)
    several: int = sum(len(part) > 1 for part in (sql["select"][1], sql["where"], sql["groupBy"]))
    return several + (aggregations > 1)

"""Local edits: what a repair changed apart from its failure is put back (paper, III-C).

A change that another one needs stays: without it the check would find more to complain of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from lynx_dspy.engines.mend import written
from lynx_dspy.engines.static import check
from lynx_dspy.modules.clauses import ARGUMENTS, ctes, edits, places, query
from lynx_dspy.modules.delta import failing, normalised_code
from lynx_dspy.values import Attempt, FailureClass, Schema, Status

_BESIDE: dict[str, frozenset[str]] = {
    "SELECT": frozenset({"SELECT", "FROM", "GROUP BY", "HAVING"}),
    "FROM": frozenset({"FROM", "WHERE"}),
    "WHERE": frozenset({"WHERE", "FROM", "HAVING"}),
    "GROUP BY": frozenset({"GROUP BY", "SELECT", "FROM"}),
    "HAVING": frozenset({"HAVING", "GROUP BY", "WHERE"}),
    "ORDER BY": frozenset({"ORDER BY", "LIMIT"}),
    "LIMIT": frozenset({"LIMIT", "ORDER BY"}),
}
"""Clause in which something is meant wrongly -> the clauses that may have to change for it."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A repair after the check of its locality.

    `reverted` are the clauses that were put back; `refusal` says why the repair is no edit of the
    failing part, empty if it is one.
    """

    code: str
    reverted: tuple[str, ...] = ()
    refusal: str = ""


def touched(attempt: Attempt, schema: Schema) -> frozenset[str] | None:
    """The clauses that the attempt's failure touches; None where that cannot be told.

    A wrong name may need another join, a wrong meaning the clauses beside it.
    """
    tree = query(attempt.code, schema.dialect)
    failure = attempt.failure_class or FailureClass.SEMANTIC
    if not isinstance(tree, exp.Select):
        return None
    found = _located(attempt, schema.dialect)
    if not found and attempt.outcome.status is Status.EMPTY:
        found = {"WHERE"}
    if not found:
        return None
    if failure is FailureClass.SCHEMA:
        return frozenset({*found, "FROM"})
    if failure is FailureClass.SEMANTIC:
        beside = {name for clause in found for name in _BESIDE.get(clause, {clause})}
        return frozenset({*beside, *(f"WITH {cte.alias}" for cte in ctes(tree))})
    return frozenset(found)


def _located(attempt: Attempt, dialect: str) -> set[str]:
    """Clauses that hold a name of a finding, or that a finding without a name is about."""
    failed = failing(attempt, dialect)
    own = [f for f in attempt.findings if f.failure_class is attempt.failure_class]
    names = {failed.name, *(f.name for f in own)}
    found = {place.clause for name in names for place in places(name, attempt.code, dialect)}
    named = {failed.clause, *(f.clause for f in own if not f.name)}
    return {*found, *(clause for clause in named if clause in ARGUMENTS)}


def localised(before: str, after: str, allowed: frozenset[str] | None, schema: Schema) -> Edit:
    """`after` with its changes outside `allowed` put back; as it is where nothing can be told."""
    old, new = query(before, schema.dialect), query(after, schema.dialect)
    if allowed is None or not isinstance(old, exp.Select) or new is None:
        return Edit(after)
    where = ", ".join(sorted(allowed))
    if not isinstance(new, exp.Select):
        return Edit(after, refusal=f"it is a new query; keep the old one and change only {where}")
    changed = [edit.clause for edit in edits(before, after, schema.dialect)]
    free = [clause for clause in changed if clause not in allowed]
    code, reverted = _put_back(after, new, old, free, schema)
    told = ", ".join(reverted)
    if reverted and normalised_code(code) == normalised_code(written(old, schema.dialect)):
        reason = f"it changes {told}, which the failure does not touch, and leaves {where} as it is"
        return Edit(code, reverted, reason)
    return Edit(code, reverted)


def _put_back(
    after: str, new: exp.Select, old: exp.Select, free: Sequence[str], schema: Schema
) -> tuple[str, tuple[str, ...]]:
    """The program with as many of the `free` clauses put back as it can do without."""
    worth = len(check(after, schema)) if free else 0
    for group in (list(free), *([clause] for clause in free)) if free else ():
        tree = new.copy()
        for clause in group:
            _restore(tree, old, clause)
        code = written(tree, schema.dialect)
        if code and len(check(code, schema)) <= worth:
            rest = [clause for clause in free if clause not in group]
            code, more = _put_back(code, tree, old, rest, schema)
            return code, (*group, *more)
    return after, ()


def _restore(tree: exp.Select, old: exp.Select, clause: str) -> None:
    """Give `tree` the clause as `old` has it."""
    if clause.startswith("WITH "):
        _restore_cte(tree, old, clause.removeprefix("WITH "))
        return
    for argument in ARGUMENTS[clause]:
        value = old.args.get(argument)
        nodes = [node.copy() for node in value] if isinstance(value, list) else None
        tree.set(argument, nodes if nodes is not None else value.copy() if value else None)


def _restore_cte(tree: exp.Select, old: exp.Select, name: str) -> None:
    kept = [cte for cte in ctes(tree) if cte.alias != name]
    former = [cte.copy() for cte in ctes(old) if cte.alias == name]
    order = [cte.alias for cte in ctes(old)]
    both = sorted([*kept, *former], key=lambda c: order.index(c.alias) if c.alias in order else 99)
    with_ = tree.args.get("with_")
    recursive = bool(with_ and with_.args.get("recursive"))
    tree.set("with_", exp.With(expressions=both, recursive=recursive) if both else None)

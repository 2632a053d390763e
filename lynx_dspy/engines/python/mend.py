"""Repairs of a Python program with one sensible outcome, made without a model."""

from __future__ import annotations

from lynx_dspy.engines.mend import Mend
from lynx_dspy.engines.python.check import problems
from lynx_dspy.engines.python.problems import Patch, Problem, patched
from lynx_dspy.lm.extract_python import extract_python, parses
from lynx_dspy.values import FailureClass, Schema

_ROUNDS = 6


def mend(code: str, schema: Schema) -> Mend:
    """`code` with all repairs that have one sensible outcome; unchanged if there are none.

    Never raises, asks no model and runs nothing. A change stays only if the check then finds less.
    """
    changes: list[str] = []
    if not parses(code):
        bare = extract_python(code).code
        if bare and parses(bare):
            code = bare
            changes.append("taken out of the text around it")
    for _ in range(_ROUNDS):
        found = problems(code, schema)
        patches = _apart(found)
        better = patched(code, patches) if patches else code
        if not patches or _badness(problems(better, schema)) >= _badness(found):
            break
        code = better
        changes += [patch.note for patch in patches]
    return Mend(code, tuple(dict.fromkeys(changes)))


def _badness(found: list[Problem]) -> int:
    """What is against a program: a name that is not there hides the columns taken from it."""
    return sum(1 if p.finding.failure_class is FailureClass.SCHEMA else 20 for p in found)


def _apart(found: list[Problem]) -> list[Patch]:
    """The patches of the problems, without those that overlap an earlier one."""
    kept: list[Patch] = []
    for problem in found:
        patch = problem.patch
        if patch and not any(_overlap(patch, other) for other in kept):
            kept.append(patch)
    return kept


def _overlap(one: Patch, other: Patch) -> bool:
    a, b = one.span, other.span
    begin = max((a.line, a.column), (b.line, b.column))
    end = min((a.end_line, a.end_column), (b.end_line, b.end_column))
    return begin < end or (a == b and one.text == other.text)

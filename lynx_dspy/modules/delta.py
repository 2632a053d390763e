"""The delta of two attempts: of their code by clauses, of their errors by class, object, place.

Decided in Python, at no token (paper, III-B: constructive progression or stagnation).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from lynx_dspy.modules.clauses import code_delta, places
from lynx_dspy.values import Attempt, FailureClass, Finding, Status


class Change(StrEnum):
    """What a new attempt did to the failure, decided without a model."""

    FIRST = "first"
    PROGRESS = "progress"
    STAGNATION = "stagnation"
    REGRESSION = "regression"
    CYCLE = "cycle"


@dataclass(frozen=True, slots=True)
class Failing:
    """What fails in a program: class, object (a name; empty where unknown) and place.

    `clause` and `item` are the part of the program that holds the object, `line` counts from 1 and
    is 0 where unknown; `candidates` are names that could be meant.
    """

    failure_class: str
    name: str = ""
    clause: str = ""
    item: str = ""
    line: int = 0
    candidates: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """In words, for a person or a model: "schema `nme` in SELECT"."""
        name = f" `{self.name}`" if self.name else ""
        return f"{self.failure_class}{name}{f' in {self.clause}' if self.clause else ''}"


_SEVERITY = {FailureClass.SYNTAX: 0, FailureClass.SCHEMA: 1, FailureClass.SEMANTIC: 2}
_LITERAL = re.compile(r"'[^']*'|\b\d+\b")
_SPACE = re.compile(r"\s+")
_MOST_LINES = 4

_OBJECT = re.compile(
    r"""(?:no\ such\ (?:column|table|function)|ambiguous\ column\ name):\ *"?([\w.]+)"""
    r"""|misuse\ of\ \w+(?:\ function)?:?\ *(\w+)"""
    r"""|(?:to\ function|has\ no\ function|with\ name)\ "?(\w+)"""
    r"""|(?:near|column|name|table)\ "([^"]+)" """,
    re.I | re.X,
)
"""What the messages of the engines and of the static check name, as far as they name anything."""


def normalised_code(code: str) -> str:
    """The program without case, blanks and a final semicolon: equal texts are equal programs."""
    return _SPACE.sub(" ", code.strip().rstrip(";")).strip().casefold()


def normalised_error(attempt: Attempt) -> str:
    """Status, class and message without positions and literals: equal texts are equal failures."""
    outcome = attempt.outcome
    message = _LITERAL.sub("?", outcome.error.casefold())
    return f"{outcome.status}|{attempt.failure_class or ''}|{_SPACE.sub(' ', message)}"


def read_change(attempts: Sequence[Attempt]) -> Change:
    """Progression or stagnation of the latest attempt against those before it."""
    current = attempts[-1]
    if len(attempts) == 1:
        return Change.FIRST
    codes = [normalised_code(a.code) for a in attempts]
    if codes[-1] in codes[:-1]:
        return Change.CYCLE
    previous = attempts[-2]
    before, after = _stage_reached(previous), _stage_reached(current)
    if after != before:
        return Change.PROGRESS if after > before else Change.REGRESSION
    same = normalised_error(previous) == normalised_error(current)
    return Change.STAGNATION if same else Change.PROGRESS


def _stage_reached(attempt: Attempt) -> int:
    """How far a program came: parsed, resolved, run, gave rows."""
    if attempt.outcome.status is Status.OK:
        return 5
    if attempt.outcome.status is Status.EMPTY:
        return 4
    if attempt.outcome.status in (Status.BLOCKED, Status.NO_PROGRAM):
        return -1
    return _SEVERITY.get(attempt.failure_class or FailureClass.SEMANTIC, 2)


def failing(attempt: Attempt, dialect: str) -> Failing:
    """What fails in the attempt, and where: the first finding's name, else the message's."""
    failure = attempt.failure_class or FailureClass.SEMANTIC
    finding = _finding(attempt)
    name = finding.name if finding else ""
    name = name or _named(attempt.outcome.error)
    found = places(name, attempt.code, dialect) or places(_last(name), attempt.code, dialect)
    candidates = finding.candidates if finding else ()
    if found:
        first = found[0]
        return Failing(failure, name, first.clause, first.item, first.line, candidates)
    clause = finding.clause if finding else ""
    return Failing(failure, name, clause, "", finding.line if finding else 0, candidates)


def _finding(attempt: Attempt) -> Finding | None:
    """The finding that tells most of the failure: of its class, named before unnamed."""
    own = [f for f in attempt.findings if f.failure_class is attempt.failure_class]
    return next((f for f in own if f.name), own[0] if own else None)


def _named(message: str) -> str:
    match = _OBJECT.search(message)
    return next((g for g in match.groups() if g), "") if match else ""


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def failure_text(attempt: Attempt) -> str:
    """What is wrong with an attempt: its error or status, the findings, the signals."""
    outcome = attempt.outcome
    lines = [outcome.error or str(outcome.status)] if not outcome.ran else []
    if outcome.status is Status.EMPTY:
        lines = ["the query returned no rows"]
    lines += [f.message for f in attempt.findings if f.message not in lines]
    signals = [text for text in attempt.signals if text not in lines]
    return "\n".join([*lines[:_MOST_LINES], *signals[:_MOST_LINES]]) or "it is doubted"


def error_delta(previous: Attempt, current: Attempt, dialect: str) -> str:
    """What became of the failure: gone or still there, and what fails now."""
    before, after = failing(previous, dialect), failing(current, dialect)
    same = normalised_error(previous) == normalised_error(current)
    if same and before.text == after.text:
        return f"{before.text} is still there"
    return f"{before.text} is gone, now {after.text}"


_VERDICTS = {
    Change.FIRST: "Correct this first.",
    Change.PROGRESS: "Previous fix: Worked. Correct what is left.",
    Change.REGRESSION: "Previous fix: Failed. Undo it and correct the earlier failure otherwise.",
    Change.STAGNATION: "Previous fix: Failed, the same failure stays.",
    Change.CYCLE: "Previous fix: Failed, this program was tried before.",
}


def describe(change: Change, previous: Attempt | None, current: Attempt, dialect: str) -> str:
    """The delta in words: whether the fix worked, what was edited, what became of the failure."""
    if previous is None:
        return _VERDICTS[change]
    edit = code_delta(previous.code, current.code, dialect) or "nothing"
    return (
        f"{_VERDICTS[change]} Edited: {edit}. Failure: {error_delta(previous, current, dialect)}."
    )

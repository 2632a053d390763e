"""Critic: delta-guided memory management (paper, Algorithm 2)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import dspy

from lynx_dspy import config
from lynx_dspy.modules import plain
from lynx_dspy.modules.stage import Stage
from lynx_dspy.signatures import DiagnoseDelta, ReflectHistory
from lynx_dspy.tokens import clip, estimate
from lynx_dspy.values import Attempt, FailureClass, Status


class Reflect(Stage):
    """`critic.reflect`."""

    stage_name = "critic.reflect"
    asks = ReflectHistory
    stand_in = staticmethod(plain.history_as_summary)
    says = "condensing the failure history"
    needs = ("history",)


class Diagnose(Stage):
    """`critic.diagnose`."""

    stage_name = "critic.diagnose"
    asks = DiagnoseDelta
    stand_in = staticmethod(plain.delta_as_suggestion)
    says = "comparing the last two attempts"


class Change(StrEnum):
    """What a new attempt did to the failure, decided without a model."""

    FIRST = "first"
    PROGRESS = "progress"
    STAGNATION = "stagnation"
    REGRESSION = "regression"
    CYCLE = "cycle"


@dataclass(frozen=True, slots=True)
class Memory:
    """H_t: the condensed past, the latest failure, and the fixes that worked."""

    summary: str = ""
    latest: str = ""
    patterns: tuple[str, ...] = ()
    stagnant: int = 0

    @property
    def text(self) -> str:
        """H_t as a prompt shows it; never over `history_tokens`."""
        return clip("\n".join(t for t in (self.summary, self.latest) if t), _budget())


@dataclass(frozen=True, slots=True)
class Criticism:
    """What the Critic says of the latest attempt."""

    memory: Memory
    change: Change
    delta: str
    suggestion: str


class Critic(dspy.Module):
    """H_t = Reflect(H_{t-1}) ⊕ (Code_t, Error_t), and advice from the delta of two attempts."""

    def __init__(self) -> None:
        super().__init__()
        self.reflect = Reflect()
        self.diagnose = Diagnose()

    def forward(self, memory: Memory, attempts: Sequence[Attempt]) -> Criticism:
        """`attempts` are all so far, the latest last; it is the one that failed."""
        current, previous = attempts[-1], attempts[-2] if len(attempts) > 1 else None

        # Delta of code and of error: constructive progression or stagnation
        change = read_change(attempts)
        delta = describe(change, previous, current)
        stagnant = 0 if change in (Change.FIRST, Change.PROGRESS) else memory.stagnant + 1

        # H_t = Reflect(H_{t-1}) ⊕ (Code_t, Error_t)
        summary = self.condensed(memory)
        patterns = memory.patterns
        if change is Change.PROGRESS and previous is not None:
            patterns = (*patterns, fix_pattern(previous, current))

        # Advice
        suggestion = delta
        if previous is not None:
            reply = self.diagnose(
                summary=summary,
                previous=render_attempt(previous),
                current=render_attempt(current),
                delta=delta,
            )
            suggestion = reply.suggestion or delta
        return Criticism(
            Memory(summary, render_attempt(current), patterns, stagnant), change, delta, suggestion
        )

    def condensed(self, memory: Memory) -> str:
        """Reflect(H_{t-1}): a history that fits half its budget stays as it is."""
        history = "\n".join(t for t in (memory.summary, memory.latest) if t)
        if estimate(history) <= _budget() // 2:
            return history
        return clip(self.reflect(history=history).summary or history, _budget() // 2)


def _budget() -> int:
    return config.current().history_tokens


_SEVERITY = {FailureClass.SYNTAX: 0, FailureClass.SCHEMA: 1, FailureClass.SEMANTIC: 2}
_LITERAL = re.compile(r"'[^']*'|\b\d+\b")
_SPACE = re.compile(r"\s+")


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


def failure_text(attempt: Attempt) -> str:
    """What is wrong with an attempt: its error or status, then the findings of the static check."""
    outcome = attempt.outcome
    lines = [outcome.error or ("the query returned no rows" if outcome.ran else outcome.status)]
    lines += [f.message for f in attempt.findings if f.message not in lines]
    return "\n".join(lines[:4])


def render_attempt(attempt: Attempt) -> str:
    """One attempt with its failure, for the history."""
    return f"{attempt.code.strip()}\n-- {failure_text(attempt)}"


def code_delta(before: str, after: str) -> str:
    """The words that one program drops and the other adds.

    >>> code_delta("SELECT a FROM t", "SELECT b FROM t")
    '-a +b'
    """
    old, new = before.split(), after.split()
    words: list[str] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            words += [f"-{w}" for w in old[a:b]] + [f"+{w}" for w in new[c:d]]
    return " ".join(words[:40])


_ADVICE = {
    Change.FIRST: "Correct this first.",
    Change.PROGRESS: "Previous fix: Worked. Correct what is left.",
    Change.REGRESSION: "Previous fix: Failed. Undo it and correct the earlier failure otherwise.",
    Change.STAGNATION: "Previous fix: Failed, the same failure stays. Use another table, another "
    "join path, or drop the failing clause.",
    Change.CYCLE: "Previous fix: Failed, this program was tried before. Write it in another way.",
}


def describe(change: Change, previous: Attempt | None, current: Attempt) -> str:
    """The delta in words: what was edited, what became of the failure, what that asks for."""
    if previous is None:
        return _ADVICE[change]
    edit = code_delta(previous.code, current.code) or "nothing"
    return f"{_ADVICE[change]} Edited: {edit}."


def fix_pattern(previous: Attempt, current: Attempt) -> str:
    """A validated fix: the failure that went away, and the edit that did it."""
    return f"{failure_text(previous).splitlines()[0]} => {code_delta(previous.code, current.code)}"

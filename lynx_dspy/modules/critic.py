"""Critic: delta-guided memory management (paper, Algorithm 2)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import dspy

from lynx_dspy import config
from lynx_dspy.modules import plain
from lynx_dspy.modules.delta import Change, describe, failure_text, read_change
from lynx_dspy.modules.patterns import Fix, fix_of
from lynx_dspy.modules.stage import Stage
from lynx_dspy.modules.strategies import Strategy, next_strategy
from lynx_dspy.signatures import DiagnoseDelta, ReflectHistory
from lynx_dspy.tokens import clip, estimate
from lynx_dspy.values import Attempt, Schema


class Reflect(Stage):
    """`critic.reflect`."""

    stage_name = "critic.reflect"
    asks = ReflectHistory
    stand_in = staticmethod(plain.no_summary)
    says = "condensing the failure history"
    needs = ("history",)


class Diagnose(Stage):
    """`critic.diagnose`."""

    stage_name = "critic.diagnose"
    asks = DiagnoseDelta
    stand_in = staticmethod(plain.delta_as_suggestion)
    says = "comparing the last two attempts"


@dataclass(frozen=True, slots=True)
class Memory:
    """H_t: the condensed past, the latest failure, the fixes that worked, the strategies tried."""

    summary: str = ""
    latest: str = ""
    patterns: tuple[Fix, ...] = ()
    stagnant: int = 0
    strategies: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """H_t as a prompt shows it; never over `history_tokens`."""
        return bounded("\n".join(t for t in (self.summary, self.latest) if t), _budget())


@dataclass(frozen=True, slots=True)
class Criticism:
    """What the Critic says of the latest attempt; `strategy` is set where edits stopped helping."""

    memory: Memory
    change: Change
    delta: str
    suggestion: str
    strategy: Strategy | None = None


class Critic(dspy.Module):
    """H_t = Reflect(H_{t-1}) ⊕ (Code_t, Error_t), and advice from the delta of two attempts."""

    def __init__(self) -> None:
        super().__init__()
        self.reflect = Reflect()
        self.diagnose = Diagnose()

    def forward(
        self, memory: Memory, attempts: Sequence[Attempt], schema: Schema = plain.NO_SCHEMA
    ) -> Criticism:
        """`attempts` are all so far, the latest last; it is the one that failed."""
        current, previous = attempts[-1], attempts[-2] if len(attempts) > 1 else None

        # Delta of code and of error: constructive progression or stagnation
        change = read_change(attempts)
        delta = describe(change, previous, current, schema.dialect)
        stagnant = 0 if change in (Change.FIRST, Change.PROGRESS) else memory.stagnant + 1

        # H_t = Reflect(H_{t-1}) ⊕ (Code_t, Error_t)
        summary = self.condensed(memory)
        latest = render_attempt(current, _budget() - _budget() // 2)
        patterns = memory.patterns
        if change is Change.PROGRESS and previous is not None:
            patterns = (*patterns, fix_of(previous, current, schema.dialect))

        # Stagnation asks for a strategy that was not tried
        strategy, tried = None, memory.strategies
        if change in (Change.STAGNATION, Change.CYCLE):
            strategy = next_strategy(attempts, schema, tried)
            tried = (*tried, strategy.name)

        # Advice
        suggestion = delta
        if previous is not None:
            reply = self.diagnose(
                summary=summary,
                previous=render_attempt(previous, config.current().program_tokens),
                current=render_attempt(current, config.current().program_tokens),
                delta=delta,
                strategy=strategy.order if strategy else "",
            )
            suggestion = advice(change, reply.suggestion or delta, strategy)
        memory = Memory(summary, latest, patterns, stagnant, tried)
        return Criticism(memory, change, delta, suggestion, strategy)

    def condensed(self, memory: Memory) -> str:
        """Reflect(H_{t-1}): a history that fits half its budget stays as it is.

        Where no model condenses it, the past decays: attempts become a line each, the oldest lines
        are dropped.
        """
        history = "\n".join(t for t in (memory.summary, memory.latest) if t)
        half = _budget() // 2
        if estimate(history) <= half:
            return history
        summary = self.reflect(history=bounded(history, 2 * _budget())).summary
        return bounded(summary, half) if summary else decayed(memory, half)

    def settled(self, memory: Memory, attempts: Sequence[Attempt], schema: Schema) -> Memory:
        """The memory of a loop that ended with a program that stands: its last fix is validated."""
        if len(attempts) < 2:
            return memory
        fix = fix_of(attempts[-2], attempts[-1], schema.dialect)
        return replace(memory, patterns=(*memory.patterns, fix))


def _budget() -> int:
    return config.current().history_tokens


def bounded(text: str, budget: int) -> str:
    """`text` cut to `budget` estimated tokens, for certain: a line of digits clips too long."""
    cut = clip(text, budget)
    while estimate(cut) > budget:
        cut = cut[: len(cut) // 2]
    return cut


_LESSON_TOKENS = 40


def decayed(memory: Memory, budget: int) -> str:
    """The past within a budget, the newest kept: the latest attempt becomes a line of lessons."""
    code, _, failure = memory.latest.rpartition("\n-- ")
    lesson = f"{bounded(' '.join(code.split()), _LESSON_TOKENS)} -- "
    lesson += bounded(" ".join(failure.split()), _LESSON_TOKENS)
    lines = [line for line in (*memory.summary.splitlines(), lesson) if line.strip()]
    kept: list[str] = []
    for line in reversed(lines):
        if estimate("\n".join([line, *kept])) > budget:
            break
        kept.insert(0, line)
    return "\n".join(kept)


def render_attempt(attempt: Attempt, budget: int | None = None) -> str:
    """One attempt with its failure; within a budget the program is cut before the failure is."""
    code, failure = attempt.code.strip(), failure_text(attempt)
    if budget is not None:
        failure = bounded(failure, budget // 3)
        code = bounded(code, max(budget - estimate(failure) - 4, 0))
    return f"{code}\n-- {failure}"


_ADVICE_TOKENS = 150
_CLAIM = re.compile(r"^\W*previous fix\W*(?:worked|failed)?\W*", re.I)


def advice(change: Change, wording: str, strategy: Strategy | None) -> str:
    """The paper's form: previous fix Worked or Failed, then the model's suggestion.

    Whether it worked is known here, whatever the model says of it; a strategy is always said.

    >>> advice(Change.STAGNATION, "Previous fix: Worked. Use y.", None)
    'Previous fix: Failed. Use y.'
    """
    worked = "Worked" if change is Change.PROGRESS else "Failed"
    order = strategy.order if strategy and strategy.order not in wording else ""
    told = bounded(_CLAIM.sub("", wording, count=1).strip(), _ADVICE_TOKENS)
    return " ".join(part for part in (f"Previous fix: {worked}.", order, told) if part)

"""What a compile may cost and has cost, counted from the records of finished questions.

Counts are those that the program asked for, cache hits included, and minutes are those that the
questions took: a compile that was interrupted counts what one without interruption would.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from lynx_dspy.optimize import journal
from lynx_dspy.optimize.records import PREDICTIONS, UNAVAILABLE, Record


@dataclass(frozen=True, slots=True)
class Spent:
    """Language model calls, their tokens, and seconds of asking."""

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.seconds + other.seconds,
        )

    def times(self, factor: float) -> Spent:
        """As many times as much, rounded."""
        return Spent(round(self.calls * factor), round(self.tokens * factor), self.seconds * factor)


@dataclass(frozen=True, slots=True)
class Budget:
    """Most that a search may spend; None is no limit."""

    lm_calls: int | None = None
    tokens: int | None = None
    minutes: float | None = None

    def allows(self, spent: Spent) -> bool:
        """Whether another question may be asked."""
        return (
            (self.lm_calls is None or spent.calls < self.lm_calls)
            and (self.tokens is None or spent.tokens < self.tokens)
            and (self.minutes is None or spent.seconds < self.minutes * 60)
        )


class BudgetSpent(Exception):
    """Raised between two questions when the budget allows no more."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a compile is. `questions` is the most that it will ask; `best` is by `leader`.

    `seconds_left` is an estimate from the questions that this call asked; None before the first.
    """

    phase: str
    done: int
    questions: int
    best: float | None
    leader: str
    spent: Spent
    seconds_left: float | None


Watch = Callable[[Progress], None]


class Meter:
    """Counts each question once, tells of the progress, and ends what costs too much."""

    def __init__(self, budget: Budget, watch: Watch | None = None) -> None:
        self.budget = budget
        self.reserve = Spent()
        """Kept back for what must still follow."""
        self.best: float | None = None
        self.leader = ""
        self.phase = ""
        self.planned = 0
        self.ended = False
        """Whether the budget ended anything."""
        self._watch = watch or (lambda progress: None)
        self._counted: dict[tuple[str, str], Spent] = {}
        self._began = time.monotonic()
        self._asked = 0

    @property
    def spent(self) -> Spent:
        """Everything so far."""
        return sum(self._counted.values(), Spent())

    def look(self, folder: Path, ids: Collection[str], asked: int) -> None:
        """Count the questions of a run; `asked` says how many of them this call asked.

        Raises `BudgetSpent` when the budget less the reserve is used up.
        """
        wanted = set(ids)
        for line in journal.lines(folder / PREDICTIONS):
            record = cast(Record, line)
            if record["id"] in wanted and record["status"] != UNAVAILABLE:
                self._counted[str(folder), record["id"]] = cost(record)
        self._asked += asked
        self._end_if_spent()

    def add(self, place: str, id: str, spent: Spent) -> None:
        """Count what is no question, such as a call that writes instructions; once a place and id.

        Raises `BudgetSpent` as `look` does.
        """
        self._counted[place, id] = spent
        self._end_if_spent()

    def lead(self, name: str, value: float) -> None:
        """Note the best candidate so far, and tell of it."""
        self.leader, self.best = name, value
        self._tell()

    def _end_if_spent(self) -> None:
        self._tell()
        if not self.budget.allows(self.spent + self.reserve):
            self.ended = True
            raise BudgetSpent

    def _tell(self) -> None:
        done = len(self._counted)
        each = (time.monotonic() - self._began) / self._asked if self._asked else None
        left = each * max(0, self.planned - done) if each is not None else None
        self._watch(
            Progress(
                self.phase,
                done,
                max(self.planned, done),
                self.best,
                self.leader,
                self.spent,
                left,
            )
        )


def cost(record: Record) -> Spent:
    """What one question cost."""
    usage = record["usage"]
    return Spent(usage["calls"], usage["total_tokens"], record["seconds"])


def mean(spent: Spent, n: int) -> Spent:
    """What one of `n` questions cost."""
    return replace(spent.times(1 / n)) if n else Spent()

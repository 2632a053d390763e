"""What the warehouses share: programs that are refused, asked about, run within bounds.

A program meets three walls: the guard, the server's own word on it (`_ask`, before anything runs),
and what the login may do, which the owner of the warehouse decides.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import replace

from lynx_dspy.engines.base import Database
from lynx_dspy.engines.bounded import Run, bounded
from lynx_dspy.engines.cloud_guard import refusal
from lynx_dspy.values import FailureClass, Finding, Limits, Outcome, Status

FRESH_SECONDS = 600.0
"""So long a warehouse counts as unchanged: asking takes a request, some of which cost money."""

ASK_SECONDS = 30.0
"""What the server gets to say what it holds against a program."""

ANSWER_SECONDS = 60.0
"""So long a good answer holds: a program is asked about by the check, then when it runs."""

_NOTHING = Outcome(Status.OK)
_MOST_ANSWERS = 64


class CloudDatabase(Database):
    """A database behind a client library: BigQuery, Snowflake or Spark."""

    def __init__(self) -> None:
        self._fine: dict[str, float] = {}
        self._seen: tuple[float, str] | None = None

    def execute(self, code: str, limits: Limits | None = None) -> Outcome:
        refused = refusal(code, self.dialect)
        if refused is not None:
            return refused
        return self._execute(code, limits or Limits())

    def dry_run(self, code: str) -> tuple[Finding, ...]:
        """The server's own word: errors, and what the program would cost beyond its cap."""
        if refusal(code, self.dialect) is not None:
            return ()
        outcome = bounded(lambda run: self._answer(code), ASK_SECONDS)
        if outcome.status is Status.BLOCKED:
            return (Finding(FailureClass.SEMANTIC, outcome.error),)
        if outcome.failure_class is not None:
            return (Finding(outcome.failure_class, outcome.error),)
        return ()

    def fingerprint(self) -> str:
        now = time.monotonic()
        if self._seen is None or now - self._seen[0] > FRESH_SECONDS:
            self._seen = (now, self._stamp())
        return self._seen[1]

    def _execute(self, code: str, limits: Limits) -> Outcome:
        """Ask, then run, both within the time of `limits`."""

        def work(run: Run) -> Outcome:
            answer = self._answer(code)
            if answer is not _NOTHING or run.expired.is_set():
                return answer
            return self._run(code, limits, run)

        started = time.perf_counter()
        outcome = bounded(work, limits.timeout_seconds)
        return replace(outcome, seconds=time.perf_counter() - started)

    def _answer(self, code: str) -> Outcome:
        """`_NOTHING` if the server has nothing against a program, now or a moment ago."""
        if time.monotonic() - self._fine.get(code, -ANSWER_SECONDS) < ANSWER_SECONDS:
            return _NOTHING
        outcome = self._ask(code)
        if outcome is not None:
            return outcome
        if len(self._fine) >= _MOST_ANSWERS:
            self._fine = {}
        self._fine[code] = time.monotonic()
        return _NOTHING

    @abstractmethod
    def _ask(self, code: str) -> Outcome | None:
        """What the server holds against a program, without running it; None if nothing."""

    @abstractmethod
    def _run(self, code: str, limits: Limits, run: Run) -> Outcome:
        """Run a program that nothing is held against, and set `run.cancel` to what stops it."""

    @abstractmethod
    def _stamp(self) -> str:
        """A text that changes with the tables. Raises `DatabaseError`."""

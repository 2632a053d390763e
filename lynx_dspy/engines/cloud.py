"""What the warehouses share: refused or bounded runs, and a fingerprint asked for now and then.

A program meets three walls: the guard, the server's own word on it (`_run` asks before it runs
anything), and what the login may do, which the owner of the warehouse decides.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import replace

from lynx_dspy.engines.base import Database
from lynx_dspy.engines.bounded import Run, bounded
from lynx_dspy.engines.cloud_guard import refusal
from lynx_dspy.values import Limits, Outcome

FRESH_SECONDS = 600.0
"""So long a warehouse counts as unchanged: asking takes a request, some of which cost money."""


class CloudDatabase(Database):
    """A database behind a client library; BigQuery, Snowflake or Spark."""

    _seen: tuple[float, str] | None = None

    def execute(self, code: str, limits: Limits | None = None) -> Outcome:
        refused = refusal(code, self.dialect)
        if refused is not None:
            return refused
        limits = limits or Limits()
        started = time.perf_counter()
        outcome = bounded(lambda run: self._run(code, limits, run), limits.timeout_seconds)
        return replace(outcome, seconds=time.perf_counter() - started)

    def fingerprint(self) -> str:
        now = time.monotonic()
        if self._seen is None or now - self._seen[0] > FRESH_SECONDS:
            self._seen = (now, self._stamp())
        return self._seen[1]

    @abstractmethod
    def _run(self, code: str, limits: Limits, run: Run) -> Outcome:
        """Run a program that the guard let pass: ask the server first, then run, then collect."""

    @abstractmethod
    def _stamp(self) -> str:
        """A text that changes with the tables. Raises `DatabaseError`."""

"""Running untrusted programs in processes that can be killed: the same for every engine here."""

from __future__ import annotations

import time
from pathlib import Path

from lynx_dspy.engines.base import Database
from lynx_dspy.engines.failures import died, one_line
from lynx_dspy.engines.guard import refusal
from lynx_dspy.engines.worker import Pool, WorkerDied, WorkerError
from lynx_dspy.values import Limits, Outcome, Status

_GRACE_SECONDS = 0.5
"""What a worker gets to report its own timeout before it is killed."""


class PooledDatabase(Database):
    """A database whose programs run in `_pool`; `_files` are the files that must be there."""

    path: Path
    _pool: Pool
    _files: tuple[Path, ...]

    def execute(self, code: str, limits: Limits | None = None) -> Outcome:
        refused = refusal(code, self.dialect)
        if refused:
            return refused
        limits = limits or Limits()
        gone = next((file for file in self._files if not file.exists()), None)
        if gone:
            return Outcome(Status.UNAVAILABLE, error=f"{gone} is no longer there")
        started = time.perf_counter()
        try:
            patience = limits.timeout_seconds + _GRACE_SECONDS
            answer: Outcome = self._pool.ask(("execute", code, limits), patience)
            return answer
        except WorkerDied as death:
            return died(death.expired, limits, time.perf_counter() - started)
        except WorkerError as error:
            return Outcome(Status.UNAVAILABLE, error=one_line(str(error)))

"""DuckDB, read-only on three levels: how the file is opened, its locked settings, and the guard.

Values come as int, float, str, bytes, None, bool, Decimal, date, time, datetime or timedelta; lists
as tuples, structs and maps as tuples of (key, value), UUIDs as text.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lynx_dspy.engines.base import Database
from lynx_dspy.engines.duckdb_schema import introspect
from lynx_dspy.engines.duckdb_worker import Setup
from lynx_dspy.engines.failures import one_line, timed_out
from lynx_dspy.engines.guard import refusal
from lynx_dspy.engines.locate import fingerprint
from lynx_dspy.engines.worker import Worker, WorkerDied, WorkerError
from lynx_dspy.errors import DatabaseError
from lynx_dspy.values import FailureClass, Limits, Outcome, Row, Schema, Status

_MODULE = "lynx_dspy.engines.duckdb_worker"
_GRACE_SECONDS = 0.5
_OPEN_SECONDS = 60.0
_QUERY_SECONDS = 120.0
_HAS_TABLES = (
    "SELECT 1 FROM duckdb_tables() UNION ALL SELECT 1 FROM duckdb_views() WHERE NOT internal"
)


class DuckDBDatabase(Database):
    """One DuckDB file, held by a process of its own (see `duckdb_worker` for why)."""

    dialect = "duckdb"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"duckdb:///{path}"
        self.name = path.stem
        self._scratch = tempfile.TemporaryDirectory(prefix="lynx-")
        self._open(Setup(str(path), (), str(Path(self._scratch.name) / "spill")))

    def introspect(self) -> Schema:
        return introspect(self.query, self.name)

    def execute(self, code: str, limits: Limits | None = None) -> Outcome:
        refused = refusal(code, self.dialect)
        if refused:
            return refused
        limits = limits or Limits()
        started = time.perf_counter()
        try:
            self._require_files()
            answer: Outcome = self._live().ask(
                ("execute", code, limits), limits.timeout_seconds + _GRACE_SECONDS
            )
            return answer
        except WorkerDied as death:
            return _died(death, limits, time.perf_counter() - started)
        except (WorkerError, DatabaseError) as error:
            return Outcome(Status.UNAVAILABLE, error=one_line(str(error)))

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        try:
            rows: list[Row] = self._live().ask(("query", sql, tuple(parameters)), _QUERY_SECONDS)
        except (WorkerError, WorkerDied) as error:
            message = f"{self.path}: {one_line(str(error))} (in {one_line(sql)})"
            raise DatabaseError(message) from error
        return rows

    def fingerprint(self) -> str:
        return fingerprint((self.path, self.path.with_name(self.path.name + ".wal")))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._worker.close()
            self._scratch.cleanup()

    def _open(self, setup: Setup) -> None:
        self._setup = setup
        self._lock = threading.Lock()
        self._closed = False
        try:
            self._worker = Worker(_MODULE, setup, _OPEN_SECONDS)
            empty = not self.query(f"{_HAS_TABLES} LIMIT 1")
        except (WorkerError, WorkerDied) as error:
            self._scratch.cleanup()
            raise _unreadable(self.path, str(error)) from error
        if empty:
            self.close()
            raise DatabaseError(f"{self.path} holds no tables. Load data into it, or name another.")

    def _live(self) -> Worker:
        """The process, started anew if the last program took it down. Raises `WorkerError`."""
        with self._lock:
            if self._closed:
                raise DatabaseError(f"{self.path} was closed; connect again.")
            if not self._worker.alive:
                self._worker.close()
                self._worker = Worker(_MODULE, self._setup, _OPEN_SECONDS)
            return self._worker

    def _require_files(self) -> None:
        if not self.path.exists():
            raise DatabaseError(f"{self.path} is no longer there.")


def _died(death: WorkerDied, limits: Limits, seconds: float) -> Outcome:
    if death.expired:
        return timed_out(limits.timeout_seconds, seconds)
    error = "the engine broke off: the query takes more memory than it may"
    return Outcome(Status.ERROR, error=error, failure_class=FailureClass.SEMANTIC, seconds=seconds)


def _unreadable(path: Path, message: str) -> DatabaseError:
    line = one_line(message)
    if "lock" in line.lower():
        return DatabaseError(
            f"{path} is locked by another program that writes to it. "
            "Close it there, or open a copy."
        )
    return DatabaseError(f"{path} cannot be read as DuckDB: {line}")

"""DuckDB, read-only on three levels: how the file is opened, its locked settings, and the guard.

Values come as int, float, str, bytes, None, bool, Decimal, date, time, datetime or timedelta; lists
as tuples, structs and maps as tuples of (key, value), UUIDs as text.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lynx_dspy.engines.duckdb_schema import introspect
from lynx_dspy.engines.duckdb_worker import Setup
from lynx_dspy.engines.failures import one_line
from lynx_dspy.engines.locate import fingerprint
from lynx_dspy.engines.pooled import PooledDatabase
from lynx_dspy.engines.worker import Pool, WorkerDied, WorkerError
from lynx_dspy.errors import DatabaseError
from lynx_dspy.values import Row, Schema

_MODULE = "lynx_dspy.engines.duckdb_worker"
_QUERY_SECONDS = 120.0
_HAS_TABLES = (
    "SELECT 1 FROM duckdb_tables() UNION ALL SELECT 1 FROM duckdb_views() WHERE NOT internal"
)


class DuckDBDatabase(PooledDatabase):
    """One DuckDB file, held by a process of its own (see `duckdb_worker` for why)."""

    dialect = "duckdb"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"duckdb:///{path}"
        self.name = path.stem
        self._files = (path,)
        self._scratch = tempfile.TemporaryDirectory(prefix="lynx-")
        self._open(Setup(str(path), (), str(Path(self._scratch.name) / "spill")))

    def introspect(self) -> Schema:
        return introspect(self.query, self.name)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        try:
            rows: list[Row] = self._pool.ask(("query", sql, tuple(parameters)), _QUERY_SECONDS)
        except (WorkerError, WorkerDied) as error:
            message = f"{self.path}: {one_line(str(error))} (in {one_line(sql)})"
            raise DatabaseError(message) from error
        return rows

    def fingerprint(self) -> str:
        return fingerprint((self.path, self.path.with_name(self.path.name + ".wal")))

    def close(self) -> None:
        self._pool.close()
        self._scratch.cleanup()

    def _open(self, setup: Setup) -> None:
        self._pool = Pool(_MODULE, setup)
        try:
            empty = not self._pool.ask(("query", f"{_HAS_TABLES} LIMIT 1", ()), _QUERY_SECONDS)
        except (WorkerError, WorkerDied) as error:
            self.close()
            raise _unreadable(self.path, str(error)) from error
        if empty:
            self.close()
            raise DatabaseError(f"{self.path} holds no tables. Load data into it, or name another.")


def _unreadable(path: Path, message: str) -> DatabaseError:
    line = one_line(message)
    if "set lock on file" in line:
        return DatabaseError(
            f"{path} is locked by another program that writes to it. "
            "Close it there, or open a copy."
        )
    return DatabaseError(f"{path} cannot be read as DuckDB: {line}")

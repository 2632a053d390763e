"""The process in which DuckDB runs programs; `duckdb.py` starts it and talks to it.

Why a process: DuckDB 2.0.1 obeys neither `interrupt()` nor `memory_limit` inside one call of a
scalar function. `SELECT range(1000000000)` took 83 s and 20 GB after an interrupt at 1 s. Only
the operating system's limits and a kill from outside hold there, and neither may hit the
caller. The process gets no environment to speak of, so programs cannot read keys from it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import duckdb

from lynx_dspy.engines.failures import failed, timed_out
from lynx_dspy.engines.limits import collect, deadline
from lynx_dspy.engines.serve import Services, serve
from lynx_dspy.values import Limits, Outcome, Row, Status

_BATCH = 64
_RUNS = (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI)
"""MULTI is what DuckDB makes of one PIVOT whose values it has to look up."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What to open: a DuckDB file, the only other files it may read, and a folder to spill to."""

    path: str
    allowed_paths: tuple[str, ...]
    scratch: str


def open_locked(setup: Setup) -> duckdb.DuckDBPyConnection:
    """A read-only connection that can reach nothing but its own files. Raises `duckdb.Error`."""
    connection = duckdb.connect(
        setup.path,
        read_only=True,
        config={
            "memory_limit": "1GB",
            "temp_directory": setup.scratch,
            "max_temp_directory_size": "4GB",
            "allow_persistent_secrets": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "python_enable_replacements": "false",
        },
    )
    connection.execute("SET allowed_paths = ?", [list(setup.allowed_paths)])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def execute(connection: duckdb.DuckDBPyConnection, code: str, limits: Limits) -> Outcome:
    """Run one untrusted query."""
    started = time.perf_counter()
    with deadline(limits.timeout_seconds, connection.interrupt) as expired:
        try:
            statements = connection.extract_statements(code)
            if [s.type for s in statements if s.type not in _RUNS] or len(statements) != 1:
                return Outcome(Status.BLOCKED, error="exactly one query may run")
            cursor = connection.execute(code)
            columns = tuple(str(column[0]) for column in cursor.description or ())
            rows, truncated = collect(_rows(cursor, len(columns)), limits)
        except (duckdb.Error, MemoryError, ValueError, OverflowError) as error:
            seconds = time.perf_counter() - started
            if expired.is_set():
                return timed_out(limits.timeout_seconds, seconds)
            return failed("duckdb", str(error) or type(error).__name__, seconds)
    status = Status.OK if rows else Status.EMPTY
    return Outcome(status, columns, rows, truncated, seconds=time.perf_counter() - started)


def query(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[Any]) -> list[Row]:
    """Run one trusted query. Raises `duckdb.Error`."""
    return connection.execute(sql, list(parameters)).fetchall()


def _rows(cursor: duckdb.DuckDBPyConnection, width: int) -> Iterator[Row]:
    while width and (batch := cursor.fetchmany(_BATCH)):
        yield from batch


def _prepare(setup: Setup) -> Services:
    connection = open_locked(setup)
    return {"execute": partial(execute, connection), "query": partial(query, connection)}


if __name__ == "__main__":
    serve(_prepare, (duckdb.Error, MemoryError, ValueError))

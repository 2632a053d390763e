"""The process in which SQLite runs programs; `sqlite.py` starts it and talks to it.

Why a process: SQLite can be interrupted between its steps only. One `instr` over two values of some
megabytes works for hours, and a row of 50 such values took 2.4 GB (measured). A kill from
outside and the operating system's limit on memory hold there too.
"""

from __future__ import annotations

import re
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

from lynx_dspy.engines.failures import failed, one_line, timed_out
from lynx_dspy.engines.limits import collect, deadline
from lynx_dspy.engines.serve import Services, serve
from lynx_dspy.engines.sqlite_file import open_file
from lynx_dspy.values import Limits, Outcome, Status

_LONGEST_VALUE = 16_000_000
_ENGINE_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: _LONGEST_VALUE,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
}
_FORBIDDEN = re.compile(r"load_extension|readfile|writefile|edit|fts\d_tokenizer|eval|fsdir", re.I)
RAISED = (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError)
"""What the driver raises for a program; ValueError: characters that no database text can hold."""


def execute(path: Path, code: str, limits: Limits) -> Outcome:
    """Run one untrusted query on a connection of its own, which sees the file as it now is."""
    started = time.perf_counter()
    try:
        with closing(open_file(path)) as connection:
            return run(connection, code, limits, started)
    except sqlite3.Error as error:
        seconds = time.perf_counter() - started
        return Outcome(Status.UNAVAILABLE, error=one_line(str(error)), seconds=seconds)


def run(connection: sqlite3.Connection, code: str, limits: Limits, started: float) -> Outcome:
    """Run a program under the authorizer and the clock."""
    _touch_virtual_tables(connection)
    connection.set_authorizer(_authorize)
    for kind, most in _ENGINE_LIMITS.items():
        connection.setlimit(kind, most)
    with deadline(limits.timeout_seconds, connection.interrupt) as expired:
        try:
            cursor = connection.execute(code)
            rows, truncated = collect(cursor, limits)
            columns = tuple(str(column[0]) for column in cursor.description or ())
        except RAISED as error:
            seconds = time.perf_counter() - started
            if expired.is_set():
                return timed_out(limits.timeout_seconds, seconds)
            return failed("sqlite", str(error) or type(error).__name__, seconds)
    status = Status.OK if rows else Status.EMPTY
    return Outcome(status, columns, rows, truncated, seconds=time.perf_counter() - started)


def _touch_virtual_tables(connection: sqlite3.Connection) -> None:
    """When first touched, FTS5 declares its columns by an update of `sqlite_master`, and R-tree
    prepares its writes: the authorizer would refuse both."""
    sql = "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%'"
    for (name,) in connection.execute(sql).fetchall():
        with suppress(sqlite3.Error):
            connection.execute("SELECT 1 FROM pragma_table_info(?)", (name,)).fetchone()


def _authorize(
    action: int, first: str | None, second: str | None, schema: str | None, source: str | None
) -> int:
    """Reads, harmless functions and recursion, and what FTS5 asks for by itself: `data_version`."""
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_READ:
        hidden = (first or "").startswith("pragma_")
        return sqlite3.SQLITE_DENY if hidden else sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and not _FORBIDDEN.fullmatch(second or ""):
        return sqlite3.SQLITE_OK
    by_itself = (action, first) == (sqlite3.SQLITE_PRAGMA, "data_version")
    return sqlite3.SQLITE_OK if by_itself else sqlite3.SQLITE_DENY


def _prepare(path: Path) -> Services:
    return {"execute": lambda code, limits: execute(path, code, limits)}


if __name__ == "__main__":
    serve(_prepare, (sqlite3.Error,))

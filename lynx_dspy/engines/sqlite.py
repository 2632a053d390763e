"""SQLite, read-only on three levels: how the file is opened, the authorizer, and the guard.

Values come as int, float, str, bytes or None. Text that is not UTF-8 is decoded with
replacement signs, as real files hold such text.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lynx_dspy.engines.base import Database
from lynx_dspy.engines.failures import failed, one_line, timed_out
from lynx_dspy.engines.guard import refusal
from lynx_dspy.engines.limits import collect, deadline
from lynx_dspy.engines.locate import fingerprint, read_head
from lynx_dspy.engines.sqlite_schema import introspect
from lynx_dspy.errors import DatabaseError
from lynx_dspy.values import Limits, Outcome, Row, Schema, Status

_BUSY_SECONDS = 0.5
_OPEN_SECONDS = 3.0
_LONGEST_VALUE = 16_000_000
"""Bytes of one value. SQLite interrupts between its steps only, so a call must not work long."""

_ENGINE_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: _LONGEST_VALUE,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
}
_FORBIDDEN = re.compile(r"load_extension|readfile|writefile|edit|fts\d_tokenizer|eval|fsdir", re.I)
_RAISED = (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError)
"""What the driver raises for a program; ValueError: characters that no database text can hold."""


class SQLiteDatabase(Database):
    """One SQLite file. Each program runs on a connection of its own, so threads never share one."""

    dialect = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"
        self.name = path.stem
        self._lock = threading.Lock()
        self._closed = False
        try:
            self._trusted = _open(path)
            self._require_tables()
        except sqlite3.Error as error:
            raise _unreadable(path, error) from error

    def introspect(self) -> Schema:
        with self._lock:
            try:
                return introspect(self._trusted, self.name)
            except sqlite3.Error as error:
                raise _unreadable(self.path, error) from error

    def execute(self, code: str, limits: Limits | None = None) -> Outcome:
        refused = refusal(code, self.dialect)
        if refused:
            return refused
        limits = limits or Limits()
        started = time.perf_counter()
        unavailable = self._unavailable()
        if unavailable:
            return Outcome(Status.UNAVAILABLE, error=unavailable)
        try:
            with closing(_open(self.path)) as connection:
                return _run(connection, code, limits, started)
        except sqlite3.Error as error:
            message = one_line(str(error))
            return Outcome(Status.UNAVAILABLE, error=message, seconds=time.perf_counter() - started)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        with self._lock:
            try:
                return self._trusted.execute(sql, tuple(parameters)).fetchall()
            except _RAISED as error:
                line = one_line(str(error))
                raise DatabaseError(f"{self.path}: {line} (in {one_line(sql)})") from error

    def fingerprint(self) -> str:
        return fingerprint((self.path, _beside(self.path, "-wal")))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._trusted.close()

    def _unavailable(self) -> str:
        if self._closed:
            return f"{self.path} was closed; connect again"
        return "" if self.path.is_file() else f"{self.path} is no longer there"

    def _require_tables(self) -> None:
        sql = "SELECT 1 FROM sqlite_master WHERE type IN ('table', 'view') LIMIT 1"
        if not self._trusted.execute(sql).fetchone():
            self._trusted.close()
            raise DatabaseError(f"{self.path} holds no tables. Load data into it, or name another.")


def _run(connection: sqlite3.Connection, code: str, limits: Limits, started: float) -> Outcome:
    """Run a program under the authorizer and the clock."""
    connection.set_authorizer(_authorize)
    for kind, most in _ENGINE_LIMITS.items():
        connection.setlimit(kind, most)
    with deadline(limits.timeout_seconds, connection.interrupt) as expired:
        try:
            cursor = connection.execute(code)
            rows, truncated = collect(cursor, limits)
            columns = tuple(str(column[0]) for column in cursor.description or ())
        except _RAISED as error:
            seconds = time.perf_counter() - started
            if expired.is_set():
                return timed_out(limits.timeout_seconds, seconds)
            return failed("sqlite", str(error) or type(error).__name__, seconds)
    status = Status.OK if rows else Status.EMPTY
    return Outcome(status, columns, rows, truncated, seconds=time.perf_counter() - started)


def _authorize(
    action: int, first: str | None, second: str | None, schema: str | None, source: str | None
) -> int:
    """Reads, harmless functions and recursion.

    Two exceptions are what SQLite asks for by itself when a virtual table is first touched: FTS5
    reads `data_version`, and declaring its columns counts as an update of `sqlite_master`. A
    real one fails all the same: that table cannot be modified, nor can the file.
    """
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_READ:
        hidden = (first or "").startswith("pragma_")
        return sqlite3.SQLITE_DENY if hidden else sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and not _FORBIDDEN.fullmatch(second or ""):
        return sqlite3.SQLITE_OK
    by_itself = (
        (sqlite3.SQLITE_PRAGMA, "data_version"),
        (sqlite3.SQLITE_UPDATE, "sqlite_master"),
    )
    return sqlite3.SQLITE_OK if (action, first) in by_itself else sqlite3.SQLITE_DENY


def _open(path: Path) -> sqlite3.Connection:
    """A connection that leaves no trace on disk.

    A WAL database that nobody has open is read as immutable: `mode=ro` alone would leave `-wal` and
    `-shm` files beside it (measured with SQLite 3.40), and fails in a folder that is read-only.
    """
    if _is_idle_wal(path):
        return _connect(path, "mode=ro&immutable=1")
    try:
        return _connect(path, "mode=ro")
    except sqlite3.OperationalError as error:
        if "unable to open" not in str(error) or _beside(path, "-journal").exists():
            raise
    return _connect(path, "mode=ro&immutable=1")


def _connect(path: Path, options: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?{options}",
        uri=True,
        timeout=_BUSY_SECONDS,
        check_same_thread=False,
        isolation_level=None,
    )
    connection.text_factory = _decode
    try:
        with deadline(_OPEN_SECONDS, connection.interrupt):
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _is_idle_wal(path: Path) -> bool:
    """WAL mode by the file header (bytes 18 and 19 are 2), and no log with content beside it."""
    try:
        log = _beside(path, "-wal")
        return read_head(path)[18:20] == b"\2\2" and not (log.exists() and log.stat().st_size)
    except (DatabaseError, OSError):
        return False


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _unreadable(path: Path, error: sqlite3.Error) -> DatabaseError:
    message = one_line(str(error))
    if "locked" in message or "busy" in message:
        return DatabaseError(
            f"{path} is locked by another program ({message}). Close it there, or open a copy."
        )
    if "readonly" in message:
        return DatabaseError(
            f"{path} was left in the middle of a write (a hot journal lies beside it). "
            "Open it once with sqlite3 to recover it."
        )
    return DatabaseError(f"{path} cannot be read as SQLite: {message}. Use an intact copy.")

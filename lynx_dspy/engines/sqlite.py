"""SQLite, read-only on three levels: how the file is opened, the authorizer, and the guard.

Values come as int, float, str, bytes or None. Text that is not UTF-8 is decoded with
replacement signs, as real files hold such text.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lynx_dspy.engines.failures import one_line
from lynx_dspy.engines.locate import fingerprint
from lynx_dspy.engines.pooled import PooledDatabase
from lynx_dspy.engines.sqlite_file import beside, open_file
from lynx_dspy.engines.sqlite_schema import introspect
from lynx_dspy.engines.worker import Pool
from lynx_dspy.errors import DatabaseError
from lynx_dspy.values import Row, Schema

_MODULE = "lynx_dspy.engines.sqlite_worker"


class SQLiteDatabase(PooledDatabase):
    """One SQLite file. Our own queries share one connection; each program gets a fresh one."""

    dialect = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"
        self.name = path.stem
        self._lock = threading.Lock()
        self._files = (path,)
        self._pool = Pool(_MODULE, path)
        try:
            self._trusted = open_file(path)
            self._require_tables()
        except sqlite3.Error as error:
            raise _unreadable(path, error) from error

    def introspect(self) -> Schema:
        with self._lock:
            try:
                return introspect(self._trusted, self.name)
            except sqlite3.Error as error:
                raise _unreadable(self.path, error) from error

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        with self._lock:
            try:
                return self._trusted.execute(sql, tuple(parameters)).fetchall()
            except (sqlite3.Error, ValueError) as error:
                line = one_line(str(error))
                raise DatabaseError(f"{self.path}: {line} (in {one_line(sql)})") from error

    def fingerprint(self) -> str:
        return fingerprint((self.path, beside(self.path, "-wal")))

    def close(self) -> None:
        with self._lock:
            self._trusted.close()
        self._pool.close()

    def _require_tables(self) -> None:
        sql = "SELECT 1 FROM sqlite_master WHERE type IN ('table', 'view') LIMIT 1"
        if not self._trusted.execute(sql).fetchone():
            self._trusted.close()
            raise DatabaseError(f"{self.path} holds no tables. Load data into it, or name another.")


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

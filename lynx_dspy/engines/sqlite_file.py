"""How a SQLite file is opened so that no trace of it is left on disk."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from lynx_dspy.engines.limits import deadline
from lynx_dspy.engines.locate import read_head
from lynx_dspy.errors import DatabaseError

_BUSY_SECONDS = 0.5
_OPEN_SECONDS = 3.0


def open_file(path: Path) -> sqlite3.Connection:
    """A connection that leaves no trace on disk.

    A WAL database that nobody has open is read as immutable: `mode=ro` alone would leave `-wal` and
    `-shm` files beside it (measured with SQLite 3.40), and fails in a folder that is read-only.
    """
    if _is_idle_wal(path):
        return _connect(path, "mode=ro&immutable=1")
    try:
        return _connect(path, "mode=ro")
    except sqlite3.OperationalError as error:
        if "unable to open" not in str(error) or beside(path, "-journal").exists():
            raise
    return _connect(path, "mode=ro&immutable=1")


def _connect(path: Path, options: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?{options}",
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
        log = beside(path, "-wal")
        return read_head(path)[18:20] == b"\2\2" and not (log.exists() and log.stat().st_size)
    except (DatabaseError, OSError):
        return False


def beside(path: Path, ending: str) -> Path:
    """The file that SQLite keeps next to the database: `-wal`, `-shm` or `-journal`."""
    return path.with_name(path.name + ending)

"""Value indexes as files of the user's cache: one for each database, made anew when it changes.

A file that is damaged, half written or of another revision is as good as none. Only the user may
read them, since they hold cell values; the ones used longest ago go first.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from lynx_dspy.lm.models import home
from lynx_dspy.progress import report

_REVISION = "2"
_MOST_FILES = 32
_MOST_BYTES = 1_000_000_000
_TABLES = """
CREATE TABLE about (fingerprint TEXT, revision TEXT);
CREATE TABLE places (
    id INTEGER PRIMARY KEY, folded TEXT, owner TEXT, field TEXT, value TEXT, key TEXT
);
CREATE TABLE words (word TEXT, place INTEGER, PRIMARY KEY (word, place)) WITHOUT ROWID;
CREATE INDEX places_by_text ON places (folded);
CREATE INDEX places_by_key ON places (key);
CREATE TABLE pieces (piece TEXT, key TEXT, PRIMARY KEY (piece, key)) WITHOUT ROWID;
CREATE TABLE styles (owner TEXT, field TEXT, style TEXT, PRIMARY KEY (owner, field)) WITHOUT ROWID;
CREATE TABLE texts (
    word TEXT, owner TEXT, field TEXT, PRIMARY KEY (word, owner, field)
) WITHOUT ROWID;
"""


def folder() -> Path:
    """Where value indexes are kept; it may be deleted at any time."""
    return home() / "values"


def in_memory() -> sqlite3.Connection:
    """An empty index."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.executescript(_TABLES)
    return connection


def digest(*texts: str) -> str:
    """A short hash of texts in their order."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def opened(url: str, fingerprint: str) -> sqlite3.Connection | None:
    """The index kept for this state of the database; None if there is no sound one."""
    path = folder() / f"{digest(url)}.sqlite"
    if not path.is_file():
        return None
    try:
        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False)
        try:
            if _fits(connection, fingerprint):
                with suppress(OSError):
                    os.utime(path)
                return connection
        except sqlite3.Error:
            connection.close()
            raise
        connection.close()
    except sqlite3.Error as error:
        report("generator.schema", f"the value index {path.name} is damaged ({error}): made anew")
    return None


def _fits(connection: sqlite3.Connection, fingerprint: str) -> bool:
    about = connection.execute("SELECT fingerprint, revision FROM about").fetchone()
    if about != (fingerprint, _REVISION):
        return False
    if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise sqlite3.DatabaseError("its check failed")
    return True


def keep(index: sqlite3.Connection, url: str, fingerprint: str) -> None:
    """Write an index that was made in memory to the cache; a cache that cannot be written is none.

    Readers see the old file or the whole new one.
    """
    path = folder() / f"{digest(url)}.sqlite"
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        folder().mkdir(parents=True, exist_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600))
        index.execute("DELETE FROM about")
        index.execute("INSERT INTO about VALUES (?, ?)", (fingerprint, _REVISION))
        index.commit()
        with closing(sqlite3.connect(part)) as file:
            index.backup(file)
        os.replace(part, path)
        for old in _surplus():
            old.unlink(missing_ok=True)
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        report("generator.schema", f"the value index cannot be kept: {error}")


def _surplus() -> Iterator[Path]:
    """The files beyond what the cache may hold, used longest ago."""
    found = [(path, path.stat()) for path in folder().glob("*.sqlite")]
    size = 0
    for n, (path, stat) in enumerate(sorted(found, key=lambda item: -item[1].st_mtime)):
        size += stat.st_size
        if n >= _MOST_FILES or size > _MOST_BYTES:
            yield path

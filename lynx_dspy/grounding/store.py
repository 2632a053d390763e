"""What documents cost to read and to embed, kept by content hash in one SQLite file.

Two processes may use it at once: each write is one transaction, and what both make is the same. A
file that is damaged is made anew, a folder that cannot be written is done without: a cache is never
a reason to fail.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

import numpy as np

from lynx_dspy.grounding.embedding import Vectors
from lynx_dspy.lm.models import home
from lynx_dspy.progress import report
from lynx_dspy.values import Passage

Result = TypeVar("Result")

_TABLES = """
CREATE TABLE IF NOT EXISTS vectors (
  embedder TEXT, passage BLOB, vector BLOB, PRIMARY KEY (embedder, passage)
);
CREATE TABLE IF NOT EXISTS files (file TEXT PRIMARY KEY, passages TEXT);
"""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_WAIT_SECONDS = 60
_ASKED_AT_ONCE = 500


def folder() -> Path:
    """Where everything about documents is kept; it may be deleted at any time."""
    return home() / "documents"


def vectors(embedder: str, passages: Sequence[bytes], width: int) -> dict[bytes, Vectors]:
    """The sound vectors, each of shape (width,), that are kept for passages of these hashes."""
    return _using(lambda db: dict(_sound(db, embedder, passages, width))) or {}


def keep_vectors(embedder: str, made: Mapping[bytes, Vectors]) -> None:
    """Keep the vectors of these passages."""
    rows = [(embedder, key, vector.tobytes()) for key, vector in made.items()]
    _using(lambda db: db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows))


def passages(file: str) -> list[tuple[str, str]] | None:
    """The (heading, text) pairs kept for a file of this hash; None if there are none."""
    query = "SELECT passages FROM files WHERE file = ?"
    row = _using(lambda db: db.execute(query, (file,)).fetchone())
    if row is None:
        return None
    with suppress(ValueError):
        return [(heading, text) for heading, text in json.loads(row[0])]
    return None


def keep_passages(file: str, made: Sequence[Passage]) -> None:
    """Keep the passages of the file of this hash."""
    row = (file, json.dumps([(p.heading, p.text) for p in made], ensure_ascii=True))
    _using(lambda db: db.execute("INSERT OR REPLACE INTO files VALUES (?, ?)", row))


def _sound(
    db: sqlite3.Connection, embedder: str, passages: Sequence[bytes], width: int
) -> Iterator[tuple[bytes, Vectors]]:
    wanted = list(dict.fromkeys(passages))
    for start in range(0, len(wanted), _ASKED_AT_ONCE):
        keys = wanted[start : start + _ASKED_AT_ONCE]
        marks = ", ".join("?" * len(keys))
        query = f"SELECT passage, vector FROM vectors WHERE embedder = ? AND passage IN ({marks})"
        for key, blob in db.execute(query, (embedder, *keys)):
            if len(blob) == 4 * width:
                vector = np.frombuffer(blob, dtype=np.float32)
                if abs(float(vector @ vector) - 1) < 0.05:
                    yield key, vector


def _using(do: Callable[[sqlite3.Connection], Result]) -> Result | None:
    """What `do` gives on the store, None where there can be none."""
    path = folder() / "store.sqlite"
    try:
        return _done(path, do)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in _DAMAGED:
            return None
    except OSError:
        return None
    report("documents", f"the cache {path} was damaged and is made anew")
    with suppress(OSError, sqlite3.Error):
        for part in (path, path.with_name(f"{path.name}-journal")):
            part.unlink(missing_ok=True)
        return _done(path, do)
    return None


def _done(path: Path, do: Callable[[sqlite3.Connection], Result]) -> Result:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, timeout=_WAIT_SECONDS)) as db:
        db.executescript(_TABLES)
        with db:
            return do(db)

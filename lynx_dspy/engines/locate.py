"""From what a user typed to an engine and a path: magic bytes first, endings second."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lynx_dspy.errors import DatabaseError, UnknownName
from lynx_dspy.paths import expanded

TABLE_ENDINGS = (".csv", ".tsv", ".parquet")
DATABASE_ENDINGS = (".sqlite", ".sqlite3", ".db", ".duckdb", ".ddb")

_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+):(?://(?:/(?=.))?)?(?P<rest>.*)", re.I | re.S)
_KNOWN = (
    f"Known: a SQLite or DuckDB file, a {', '.join(TABLE_ENDINGS)} file, or a folder of such files"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a database is (`path`, absolute) and which engine reads it (`kind`)."""

    kind: str
    path: Path


def locate(url: str | Path, schemes: tuple[str, ...]) -> Place:
    """The engine and the path that `url` means. Raises `DatabaseError` or `UnknownName`.

    Three slashes begin a relative path and four an absolute one, as in SQLAlchemy.
    """
    scheme, path = _split(url, schemes)
    kind = _kind(path)
    if scheme and scheme != kind:
        raise DatabaseError(
            f"{path} is not a {scheme} database; it looks like {kind}. Use {kind}:///{path}."
        )
    return Place(kind, path.absolute())


def fingerprint(paths: Iterable[Path]) -> str:
    """A hash over place, size and time of change of the files that exist among `paths`."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            stat = path.stat()
        except OSError:
            continue
        digest.update(os.fsencode(path.resolve()))
        digest.update(f"\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:32]


def _split(url: str | Path, schemes: tuple[str, ...]) -> tuple[str, Path]:
    text = str(url)
    if not text.strip() or "\0" in text:
        raise DatabaseError(f"No database at {text!r}. {_KNOWN}.")
    match = _URL.fullmatch(text)
    if isinstance(url, Path) or not match or _exists(Path(text)):
        return "", expanded(text)
    scheme = match["scheme"].lower()
    if scheme not in schemes:
        raise UnknownName("database scheme", scheme, schemes)
    return scheme, expanded(match["rest"])


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise DatabaseError(f"Cannot look at {path}: {error.strerror}.") from error


def _kind(path: Path) -> str:
    if not _exists(path):
        raise DatabaseError(f"No database at {path}: there is no such file or folder. {_KNOWN}.")
    if path.is_dir():
        return "files"
    if not path.is_file():
        raise DatabaseError(f"{path} is neither a file nor a folder. {_KNOWN}.")
    head = read_head(path)
    if not head:
        raise DatabaseError(f"{path} is empty (0 bytes), so it holds no tables. {_KNOWN}.")
    if head.startswith(b"SQLite format 3\0"):
        return "sqlite"
    if head[8:12] == b"DUCK":
        return "duckdb"
    return _by_ending(path, head)


def _by_ending(path: Path, head: bytes) -> str:
    ending = path.suffix.lower()
    if ending == ".parquet" and not head.startswith(b"PAR1"):
        raise DatabaseError(f"{path} is not a Parquet file: it does not begin with PAR1.")
    if ending in TABLE_ENDINGS:
        return "files"
    if ending == ".sql" or re.match(rb"\s*(--|create\b|pragma\b|begin\b)", head, re.I):
        raise DatabaseError(
            f"{path} is an SQL script, not a database. "
            f"Load it first: sqlite3 x.sqlite < {path.name}"
        )
    raise DatabaseError(f"{path} is not a database: its first bytes are {head[:12]!r}. {_KNOWN}.")


def read_head(path: Path) -> bytes:
    """The first bytes of a file. Raises `DatabaseError` if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(64)
    except OSError as error:
        raise DatabaseError(
            f"Cannot read {path}: {error.strerror}. Check its permissions."
        ) from error

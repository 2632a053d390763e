"""SQLite in the conformance suite."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from conformance.kit import STANDARD, Adapter, Value

import lynx_dspy as lynx
from lynx_dspy.engines.base import Database
from lynx_dspy.engines.sqlite import SQLiteDatabase
from lynx_dspy.values import Limits, Outcome

_FILE = "a file in this process has no server"
_TYPES = "SQLite has no such type"


class SQLite(Adapter):
    name = "sqlite"
    dialect = "sqlite"
    lacks: ClassVar = {
        "decimals": _TYPES,
        "booleans": _TYPES,
        "dates": _TYPES,
        "timestamps": _TYPES,
        "zoned timestamps": _TYPES,
        "arrays": _TYPES,
        "comments": "SQLite stores none",
        "partitions": "SQLite has none",
        "reconnect": _FILE,
        "unavailable": _FILE,
        "server cancel": _FILE,
        "secrets": "a file has no password",
        "privileges": "a file has no accounts",
        "explain": "the static check compiles with the engine in process",
    }
    values: ClassVar = STANDARD | {
        "floats": Value("SELECT 0.1, -1e300", (0.1, -1e300)),
        "json": Value("""SELECT json('{"a": [1, null]}')""", ('{"a":[1,null]}',)),
        "blobs": Value("SELECT x'00ff10'", (b"\x00\xff\x10",)),
    }
    endless = (
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"
    )
    thousands = (
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 50000) "
        "SELECT i FROM n"
    )
    long_text = "SELECT replace(hex(zeroblob(500000)), '0', 'x')"
    decimal = "REAL"

    def start(self, folder: Path) -> None:
        self._path = folder / "shop.sqlite"

    def load(self, statements: Sequence[str]) -> None:
        connection = sqlite3.connect(self._path)
        with connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()

    def connect(self) -> Database:
        return lynx.connect(self._path)

    def digest(self) -> str:
        return hashlib.sha256(self._path.read_bytes()).hexdigest()

    def stop(self) -> None:
        self._path.unlink(missing_ok=True)

    def unguarded(self, database: Database, code: str, limits: Limits) -> Outcome:
        assert isinstance(database, SQLiteDatabase)
        outcome: Outcome = database._pool.ask(("execute", code, limits), 10.0)
        return outcome

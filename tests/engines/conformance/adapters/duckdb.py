"""DuckDB in the conformance suite."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import ClassVar

import duckdb
from conformance.kit import STANDARD, Adapter, Value

import lynx_dspy as lynx
from lynx_dspy.engines.base import Database
from lynx_dspy.engines.duckdb import DuckDBDatabase
from lynx_dspy.values import Limits, Outcome

_FILE = "a file in this process has no server"


class DuckDB(Adapter):
    name = "duckdb"
    dialect = "duckdb"
    lacks: ClassVar = {
        "zoned timestamps": "its extension for time zones is not loaded: programs load none",
        "partitions": "DuckDB has none",
        "reconnect": _FILE,
        "unavailable": _FILE,
        "server cancel": _FILE,
        "secrets": "a file has no password",
        "privileges": "a file has no accounts",
        "explain": "the static check compiles with the engine in process",
    }
    values: ClassVar = STANDARD | {
        "floats": Value("SELECT 0.1::DOUBLE, -1e300", (0.1, -1e300)),
        "decimals": Value(
            "SELECT 12345678901234567890.12::DECIMAL(30, 2)", (Decimal("12345678901234567890.12"),)
        ),
        "booleans": Value("SELECT TRUE, FALSE", (True, False)),
        "dates": Value("SELECT DATE '2024-02-29'", (dt.date(2024, 2, 29),)),
        "timestamps": Value(
            "SELECT TIMESTAMP '2024-02-29 23:59:59.123456'",
            (dt.datetime(2024, 2, 29, 23, 59, 59, 123456),),
        ),
        "arrays": Value("SELECT [1, NULL, 3], [['a'], []]", ((1, None, 3), (("a",), ()))),
        "json": Value("""SELECT '{"a": [1, null]}'::JSON""", ('{"a": [1, null]}',)),
        "blobs": Value(r"SELECT '\x00\xFF\x10'::BLOB", (b"\x00\xff\x10",)),
    }
    endless = (
        "SELECT COUNT(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = 7"
    )
    thousands = "SELECT range + 1 AS i FROM range(50000)"
    long_text = "SELECT repeat('x', 1000000)"

    def start(self, folder: Path) -> None:
        self._path = folder / "shop.duckdb"

    def load(self, statements: Sequence[str]) -> None:
        with duckdb.connect(str(self._path)) as connection:
            for statement in statements:
                connection.execute(statement)

    def connect(self) -> Database:
        return lynx.connect(self._path)

    def digest(self) -> str:
        return hashlib.sha256(self._path.read_bytes()).hexdigest()

    def stop(self) -> None:
        self._path.unlink(missing_ok=True)

    def comments(self) -> Sequence[str]:
        return (
            "COMMENT ON TABLE orders IS 'one row an order'",
            "COMMENT ON COLUMN orders.amount IS 'in euros'",
        )

    def unguarded(self, database: Database, code: str, limits: Limits) -> Outcome:
        assert isinstance(database, DuckDBDatabase)
        outcome: Outcome = database._pool.ask(("execute", code, limits), 10.0)
        return outcome

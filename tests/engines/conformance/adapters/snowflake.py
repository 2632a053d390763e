"""Snowflake in the conformance suite: a connector that runs programs in DuckDB."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import ClassVar

from conformance.adapters.warehouse import FAKED, contents
from conformance.kit import STANDARD, Adapter, Value
from fakes.snowflake_driver import Account

from lynx_dspy.engines.base import Database
from lynx_dspy.engines.snowflake import SnowflakeDatabase
from lynx_dspy.values import Limits, Outcome


class Snowflake(Adapter):
    name = "snowflake"
    dialect = "snowflake"
    lacks: ClassVar = FAKED | {
        "json": "the suite's connector has no VARIANT; OBJECT and ARRAY are in its own tests",
        "introspection": "names are stored in upper case; in its own tests",
    }
    judges_plans = False
    orders = "SHOP_DB.PUBLIC.ORDERS"
    values: ClassVar = STANDARD | {
        "floats": Value("SELECT 0.1::FLOAT, -1e300::FLOAT", (0.1, -1e300)),
        "decimals": Value(
            "SELECT '12345678901234567890.12'::NUMBER(30, 2)", (Decimal("12345678901234567890.12"),)
        ),
        "booleans": Value("SELECT TRUE, FALSE", (True, False)),
        "dates": Value("SELECT DATE '2024-02-29'", (dt.date(2024, 2, 29),)),
        "timestamps": Value(
            "SELECT '2024-02-29 23:59:59.123456'::TIMESTAMP_NTZ",
            (dt.datetime(2024, 2, 29, 23, 59, 59, 123456),),
        ),
        "zoned timestamps": Value(
            "SELECT '2024-03-31 03:30:00+02'::TIMESTAMP_TZ",
            (dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC),),
        ),
        "arrays": Value("SELECT [1, NULL, 3]", ((1, None, 3),)),
        "blobs": Value("SELECT raw FROM blobs", (b"\x00\xff\x10",)),
    }
    endless = (
        "SELECT COUNT(*) FROM TABLE(GENERATOR(ROWCOUNT => 100000000)) a, "
        "TABLE(GENERATOR(ROWCOUNT => 100000000)) b WHERE RANDOM() = 1"
    )
    thousands = (
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 50000) "
        "SELECT i FROM n ORDER BY i"
    )
    long_text = "SELECT REPEAT('x', 1000000)"

    def start(self, folder: Path) -> None:
        self._account = Account()
        self._account.cursor().execute(r"CREATE TABLE blobs AS SELECT '\x00\xFF\x10'::BLOB AS RAW")

    def load(self, statements: Sequence[str]) -> None:
        self._account.load(statements)

    def connect(self) -> Database:
        given = {"SNOWFLAKE_USER": "reader", "SNOWFLAKE_PASSWORD": "lynx"}
        before = {name: os.environ.get(name) for name in given}
        os.environ.update(given)
        try:
            return SnowflakeDatabase("//acme/SHOP_DB/PUBLIC", self._account.driver())
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    def digest(self) -> str:
        return contents(self._account.duckdb)

    def busy(self) -> int:
        return self._account.running

    def stop(self) -> None:
        for query in self._account.queries.values():
            query.cancel()

    def unguarded(self, database: Database, code: str, limits: Limits) -> Outcome:
        return database._execute(code, limits)  # type: ignore[attr-defined]

    def literal(self, text: str) -> str:
        return super().literal(text.replace("\\", "\\\\"))

    def comments(self) -> Sequence[str]:
        return (
            "COMMENT ON TABLE orders IS 'one row an order'",
            "COMMENT ON COLUMN orders.amount IS 'in euros'",
        )

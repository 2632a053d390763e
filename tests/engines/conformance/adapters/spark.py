"""Spark in the conformance suite: a session of this machine, with its own catalogue."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
from collections.abc import Sequence
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from conformance.kit import CITIES, ORDERS, STANDARD, Adapter, Unavailable, Value

from lynx_dspy.engines.base import Database
from lynx_dspy.values import Limits, Outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SESSION = "a session of this process"


class Spark(Adapter):
    name = "spark"
    dialect = "spark"
    lacks: ClassVar = {
        "reconnect": _SESSION,
        "unavailable": _SESSION,
        "secrets": "a session has no password; a token is read from the environment alone",
        "privileges": _SESSION,
        "introspection": "open-source Spark keeps no keys; in its own tests",
        "partitions": "a table says by what it is partitioned; in its own tests",
        "fingerprint": "of a catalogue, its table names; of a folder, its files: in its own tests",
        "json": "Spark reads it from text; nested values are in its own tests",
    }
    judges_plans = False
    values: ClassVar = STANDARD | {
        "text": Value(r"SELECT 'it\'s', '', '  x '", ("it's", "", "  x ")),
        "floats": Value("SELECT CAST(0.1 AS DOUBLE), -1e300", (0.1, -1e300)),
        "decimals": Value(
            "SELECT CAST('12345678901234567890.12' AS DECIMAL(30, 2))",
            (Decimal("12345678901234567890.12"),),
        ),
        "booleans": Value("SELECT TRUE, FALSE", (True, False)),
        "dates": Value("SELECT DATE '2024-02-29'", (dt.date(2024, 2, 29),)),
        "timestamps": Value(
            "SELECT TIMESTAMP_NTZ '2024-02-29 23:59:59.123456'",
            (dt.datetime(2024, 2, 29, 23, 59, 59, 123456),),
        ),
        "zoned timestamps": Value(
            "SELECT TIMESTAMP '2024-03-31 03:30:00+02:00'",
            (dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC),),
        ),
        "arrays": Value(
            "SELECT ARRAY(1, NULL, 3), ARRAY(ARRAY('a'), ARRAY())", ((1, None, 3), (("a",), ()))
        ),
        "blobs": Value("SELECT X'00FF10'", (b"\x00\xff\x10",)),
    }
    endless = (
        "SELECT COUNT(*) FROM RANGE(100000000) AS a CROSS JOIN RANGE(100000000) AS b "
        "WHERE a.id + b.id = -7"
    )
    thousands = "SELECT CAST(id + 1 AS INT) AS i FROM RANGE(0, 50000, 1, 1)"
    long_text = "SELECT REPEAT('x', 1000000)"
    text = "STRING"

    def start(self, folder: Path) -> None:
        if find_spec("pyspark") is None:
            raise Unavailable("pyspark is not installed: lynx-dspy[spark]")
        if not os.environ.get("LYNX_TEST_SPARK"):
            raise Unavailable("Spark takes long to start: set LYNX_TEST_SPARK=1")
        from pyspark.sql import SparkSession

        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        self._folder = folder / "warehouse"
        self._folder.mkdir()
        settings = {
            "spark.sql.warehouse.dir": str(self._folder),
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "1",
            "spark.ui.showConsoleProgress": "false",
        }
        builder = SparkSession.builder.master("local[2]")
        for name, value in settings.items():
            builder = builder.config(name, value)
        self._session: SparkSession = builder.getOrCreate()

    def load(self, statements: Sequence[str]) -> None:
        for statement in statements:
            self._session.sql(statement)

    def connect(self) -> Database:
        from lynx_dspy.engines.spark import SparkDatabase

        return SparkDatabase("", self._session)

    def digest(self) -> str:
        files = sorted(path for path in self._folder.rglob("*") if path.is_file())
        held = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
        names = [tuple(row) for row in self._session.sql("SHOW TABLES").collect()]
        return repr((names, held))

    def busy(self) -> int:
        return len(self._session.sparkContext.statusTracker().getActiveJobsIds())

    def stop(self) -> None:
        self._session.stop()

    def unguarded(self, database: Database, code: str, limits: Limits) -> Outcome:
        return database._execute(code, limits)  # type: ignore[attr-defined]

    def shop(self) -> Sequence[str]:
        """The names that Spark's catalogue refuses are those of a view of the session."""
        orders = ", ".join(f"({i}, {c}, {a}, DATE '{d}')" for i, c, a, d in ORDERS)
        cities = ", ".join(
            f"({i}, {self.literal(n)}, {'NULL' if s is None else s})" for i, n, s in CITIES
        )
        return (
            "CREATE TABLE customers (id INT, name STRING) USING parquet",
            "CREATE TABLE orders (id INT, customer_id INT, amount DECIMAL(10, 2) "
            "COMMENT 'in euros', placed_on DATE) USING parquet COMMENT 'one row an order'",
            "INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bo')",
            f"INSERT INTO orders VALUES {orders}",
            "ANALYZE TABLE customers COMPUTE STATISTICS",
            "ANALYZE TABLE orders COMPUTE STATISTICS",
            "CREATE TEMPORARY VIEW `größe 城` AS SELECT * FROM VALUES "
            f"{cities} AS t(id, `Name des Orts`, `ÉTENDUE`)",
            "CREATE VIEW totals AS SELECT customer_id, SUM(amount) AS total FROM orders "
            "GROUP BY customer_id",
        )

    def literal(self, text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

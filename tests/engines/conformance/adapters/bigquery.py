"""BigQuery in the conformance suite: Google's client, and a server that runs programs in DuckDB."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import sqlglot
from conformance.adapters.warehouse import FAKED, contents, sequence_of
from conformance.kit import STANDARD, Adapter, Unavailable, Value

from lynx_dspy.engines.base import Database
from lynx_dspy.values import Limits, Outcome


class BigQuery(Adapter):
    name = "bigquery"
    dialect = "bigquery"
    lacks: ClassVar = FAKED | {
        "duplicate column names": "BigQuery refuses them",
        "comments": "the server of the suite keeps none; descriptions are in its own tests",
        "json": "the server of the suite has no JSON; nested values are in its own tests",
        "introspection": "the server of the suite keeps no keys; in its own tests",
    }
    judges_plans = False
    orders = "`shop-project.shop.orders`"
    values: ClassVar = (
        STANDARD
        | {name: Value(sequence_of(value.sql), value.row) for name, value in STANDARD.items()}
        | {
            "text": Value(r"SELECT 'it\'s' AS a, '' AS b, '  x ' AS c", ("it's", "", "  x ")),
            "floats": Value(
                "SELECT CAST(0.1 AS FLOAT64) AS a, CAST(-1e300 AS FLOAT64) AS b", (0.1, -1e300)
            ),
            "decimals": Value(
                "SELECT CAST('12345678901234567890.12' AS NUMERIC(30, 2)) AS a",
                (Decimal("12345678901234567890.12"),),
            ),
            "booleans": Value("SELECT TRUE AS a, FALSE AS b", (True, False)),
            "dates": Value("SELECT DATE '2024-02-29' AS a", (dt.date(2024, 2, 29),)),
            "timestamps": Value(
                "SELECT DATETIME '2024-02-29 23:59:59.123456' AS a",
                (dt.datetime(2024, 2, 29, 23, 59, 59, 123456),),
            ),
            "zoned timestamps": Value(
                "SELECT TIMESTAMP '2024-03-31 03:30:00+02' AS a",
                (dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC),),
            ),
            "arrays": Value("SELECT [1, 2, 3] AS a, ['a'] AS b", ((1, 2, 3), ("a",))),
            "blobs": Value(r"SELECT b'\x00\xff\x10' AS a", (b"\x00\xff\x10",)),
        }
    )
    endless = (
        "SELECT COUNT(*) AS n FROM UNNEST(GENERATE_ARRAY(1, 100000)) AS a, "
        "UNNEST(GENERATE_ARRAY(1, 100000)) AS b, UNNEST(GENERATE_ARRAY(1, 1000)) AS c "
        "WHERE a * b + c = -1"
    )
    thousands = "SELECT n FROM UNNEST(GENERATE_ARRAY(1, 50000)) AS n ORDER BY n"
    long_text = "SELECT REPEAT('x', 1000000) AS a"

    def start(self, folder: Path) -> None:
        if find_spec("google.cloud.bigquery") is None:
            raise Unavailable("google-cloud-bigquery is not installed: lynx-dspy[bigquery]")
        from fakes.bigquery_server import BigQueryServer

        self._server = BigQueryServer()

    def load(self, statements: Sequence[str]) -> None:
        for statement in statements:
            self._server.duckdb.execute(sqlglot.transpile(statement, "duckdb", "duckdb")[0])

    def connect(self) -> Database:
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import bigquery

        from lynx_dspy.engines.bigquery import BigQueryDatabase

        client = bigquery.Client(
            "shop-project",
            AnonymousCredentials(),
            client_options={"api_endpoint": self._server.url},
        )
        return BigQueryDatabase("//shop-project/shop", client)

    def digest(self) -> str:
        return contents(self._server.duckdb)

    def busy(self) -> int:
        return self._server.running

    def stop(self) -> None:
        self._server.close()

    def unguarded(self, database: Database, code: str, limits: Limits) -> Outcome:
        return database._execute(code, limits)  # type: ignore[attr-defined]

    def shop(self) -> Sequence[str]:
        """In DuckDB's spelling, which the server keeps it in."""
        return [statement.replace("`", '"') for statement in super().shop()]

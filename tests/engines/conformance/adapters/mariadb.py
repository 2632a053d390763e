"""MariaDB in the conformance suite."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import ClassVar

from conformance.adapters.server import Server
from conformance.kit import STANDARD, Value

from bench.services import MariaDB as Service


class MariaDB(Server):
    name = "mariadb"
    dialect = "mysql"
    service = Service
    lacks: ClassVar = {
        "booleans": "MariaDB stores them as the numbers 1 and 0",
        "zoned timestamps": "MariaDB stores no zone",
        "arrays": "MariaDB has no such type",
    }
    values: ClassVar = STANDARD | {
        "floats": Value("SELECT 0.1e0, -1e300", (0.1, -1e300)),
        "decimals": Value(
            "SELECT CAST('12345678901234567890.12' AS DECIMAL(30, 2))",
            (Decimal("12345678901234567890.12"),),
        ),
        "dates": Value("SELECT DATE '2024-02-29'", (dt.date(2024, 2, 29),)),
        "timestamps": Value(
            "SELECT TIMESTAMP '2024-02-29 23:59:59.123456'",
            (dt.datetime(2024, 2, 29, 23, 59, 59, 123456),),
        ),
        "json": Value("""SELECT JSON_EXTRACT('{"a": [1, null]}', '$.a')""", ("[1, null]",)),
        "blobs": Value("SELECT x'00ff10'", (b"\x00\xff\x10",)),
    }
    endless = "SELECT COUNT(*) FROM numbers a, numbers b, numbers c WHERE a.seq + b.seq + c.seq = 7"
    thousands = "SELECT seq FROM numbers"
    long_text = "SELECT REPEAT('x', 1000000)"
    working = (
        "SELECT COUNT(*) FROM information_schema.processlist "
        "WHERE command = 'Query' AND user = 'lynx_reader'"
    )
    stored = (
        "SELECT table_schema, table_name, table_type FROM information_schema.tables ORDER BY 1, 2",
        "SELECT user, host FROM mysql.global_priv ORDER BY 1, 2",
        "SELECT next_not_cached_value FROM tickets",
    )

    def comments(self) -> Sequence[str]:
        return (
            "ALTER TABLE orders COMMENT 'one row an order'",
            "ALTER TABLE orders MODIFY amount DECIMAL(10, 2) COMMENT 'in euros'",
            "CREATE SEQUENCE tickets",
            "CREATE TABLE numbers (seq integer PRIMARY KEY) AS SELECT seq FROM seq_1_to_50000",
            "CREATE TABLE visits (day date NOT NULL, city text) PARTITION BY RANGE (YEAR(day)) "
            "(PARTITION p2024 VALUES LESS THAN (2025), PARTITION p2025 VALUES LESS THAN (2026))",
            "INSERT INTO visits VALUES ('2024-05-01', 'Rome'), ('2025-05-01', 'Oslo')",
            "CREATE TABLE salaries (id integer PRIMARY KEY, amount decimal(10, 2))",
            "REVOKE SELECT, SHOW VIEW ON shop.* FROM lynx_reader@127.0.0.1",
            "GRANT SELECT, INSERT ON shop.tickets TO lynx_reader@127.0.0.1",
            *(
                f"GRANT SELECT, SHOW VIEW ON shop.{self.quoted(table)} TO lynx_reader@127.0.0.1"
                for table in ("customers", "orders", "größe 城", "totals", "visits", "numbers")
            ),
        )

    def literal(self, text: str) -> str:
        return super().literal(text.replace("\\", "\\\\"))

"""PostgreSQL in the conformance suite."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import ClassVar

from conformance.adapters.server import Server
from conformance.kit import STANDARD, Value

from bench.services import Postgres as Service


class Postgres(Server):
    name = "postgres"
    dialect = "postgres"
    service = Service
    values: ClassVar = STANDARD | {
        "floats": Value("SELECT 0.1::float8, -1e300::float8", (0.1, -1e300)),
        "decimals": Value(
            "SELECT 12345678901234567890.12::numeric(30, 2)", (Decimal("12345678901234567890.12"),)
        ),
        "booleans": Value("SELECT TRUE, FALSE", (True, False)),
        "dates": Value("SELECT DATE '2024-02-29'", (dt.date(2024, 2, 29),)),
        "timestamps": Value(
            "SELECT TIMESTAMP '2024-02-29 23:59:59.123456'",
            (dt.datetime(2024, 2, 29, 23, 59, 59, 123456),),
        ),
        "zoned timestamps": Value(
            "SELECT TIMESTAMPTZ '2024-03-31 03:30:00+02'",
            (dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC),),
        ),
        "arrays": Value("SELECT ARRAY[1, NULL, 3], ARRAY['a', 'b']", ((1, None, 3), ("a", "b"))),
        "json": Value("""SELECT '{"a": [1, null]}'::jsonb""", ('{"a": [1, null]}',)),
        "blobs": Value(r"SELECT '\x00ff10'::bytea", (b"\x00\xff\x10",)),
    }
    endless = (
        "SELECT COUNT(*) FROM generate_series(1, 100000) a, generate_series(1, 10000000) b "
        "WHERE a + b = 7"
    )
    thousands = "SELECT i::int FROM generate_series(1, 50000) AS i"
    long_text = "SELECT repeat('x', 1000000)"
    working = (
        "SELECT COUNT(*) FROM pg_stat_activity WHERE state = 'active' AND usename = 'lynx_reader'"
    )
    stored = (
        "SELECT relname::text FROM pg_class ORDER BY 1",
        "SELECT rolname::text, rolsuper FROM pg_roles ORDER BY 1",
        "SELECT last_value, is_called FROM tickets",
        "SELECT COUNT(*) FROM pg_largeobject_metadata",
        "SELECT datname::text FROM pg_database ORDER BY 1",
    )

    def comments(self) -> Sequence[str]:
        return (
            "COMMENT ON TABLE orders IS 'one row an order'",
            "COMMENT ON COLUMN orders.amount IS 'in euros'",
            "CREATE SEQUENCE tickets",
            "GRANT USAGE, UPDATE ON SEQUENCE tickets TO lynx_reader",
            "CREATE TABLE visits (day date NOT NULL, city text) PARTITION BY RANGE (day)",
            "CREATE TABLE visits_2024 PARTITION OF visits "
            "FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')",
            "CREATE TABLE visits_2025 PARTITION OF visits "
            "FOR VALUES FROM ('2025-01-01') TO ('2026-01-01')",
            "INSERT INTO visits VALUES ('2024-05-01', 'Rome'), ('2025-05-01', 'Oslo')",
            "CREATE TABLE salaries (id integer PRIMARY KEY, amount numeric)",
            "REVOKE pg_read_all_data FROM lynx_reader",
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO lynx_reader",
            "REVOKE SELECT ON salaries FROM lynx_reader",
        )

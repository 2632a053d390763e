"""The engines that the suite runs on: one line each."""

from __future__ import annotations

from conformance.adapters.bigquery import BigQuery
from conformance.adapters.duckdb import DuckDB
from conformance.adapters.mariadb import MariaDB
from conformance.adapters.postgres import Postgres
from conformance.adapters.snowflake import Snowflake
from conformance.adapters.spark import Spark
from conformance.adapters.sqlite import SQLite
from conformance.kit import Adapter

ADAPTERS: tuple[type[Adapter], ...] = (
    *(SQLite, DuckDB, Postgres, MariaDB),
    *(BigQuery, Snowflake, Spark),
)

"""A small shop: the schema that the static tests share, and rows to run mended programs on."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from lynx_dspy.values import Column, ForeignKey, Schema, Table

DATA = Path(__file__).parents[2] / "../shared/data"

_ORDERS = Table(
    "orders",
    (
        Column("id", "INTEGER"),
        Column("customer_id", "INTEGER"),
        Column("order_date", "DATE"),
        Column("shipped_at", "TIMESTAMP"),
        Column("total_cents", "INTEGER"),
        Column("status", "TEXT", samples=("'Paid'", "'Open'"), distinct=2),
    ),
    primary_key=("id",),
)
_CUSTOMER = Table(
    "customer",
    (Column("id", "INTEGER"), Column("first_name", "TEXT"), Column("city_id", "INTEGER")),
    primary_key=("id",),
)
_CITY = Table("city", (Column("id", "INTEGER"), Column("city_name", "TEXT")), primary_key=("id",))
_KEYS = (
    ForeignKey("orders", ("customer_id",), "customer", ("id",)),
    ForeignKey("customer", ("city_id",), "city", ("id",)),
)


def shop(dialect: str = "sqlite") -> Schema:
    """orders -> customer -> city."""
    return Schema(dialect, (_ORDERS, _CUSTOMER, _CITY), _KEYS)


def rows(code: str) -> list[tuple[Any, ...]]:
    """What a program gives on the shop in SQLite."""
    with sqlite3.connect(":memory:") as connection:
        connection.executescript(
            """
            CREATE TABLE orders (id, customer_id, order_date, shipped_at, total_cents, status);
            CREATE TABLE customer (id, first_name, city_id);
            CREATE TABLE city (id, city_name);
            INSERT INTO orders VALUES
              (1, 1, '2024-03-05', '2024-03-07 12:00:00', 500, 'Paid'),
              (2, 1, '2023-11-30', NULL, 700, 'Open'),
              (3, 2, '2024-01-15', '2024-01-16 00:00:00', 900, 'Paid');
            INSERT INTO customer VALUES (1, 'Ann', 1), (2, 'Bob', 2);
            INSERT INTO city VALUES (1, 'Rome'), (2, 'Oslo');
            """
        )
        return connection.execute(code).fetchall()


def introspected(path: str | Path) -> Schema:
    """Tables, columns and declared keys of a SQLite file."""
    connection = sqlite3.connect(path)
    names = [
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
    ]
    tables, keys = [], []
    for name in names:
        info = connection.execute(f'PRAGMA table_info("{name}")').fetchall()
        columns = tuple(Column(row[1], row[2]) for row in info)
        primary = tuple(row[1] for row in info if row[5])
        tables.append(Table(name, columns, primary_key=primary))
        for row in connection.execute(f'PRAGMA foreign_key_list("{name}")').fetchall():
            keys.append(ForeignKey(name, (row[3],), row[2], (row[4] or row[3],)))
    connection.close()
    return Schema("sqlite", tuple(tables), tuple(keys))

"""Addresses keep their secrets, and any database that SQLAlchemy reaches can be asked."""

import sqlite3
from pathlib import Path

import pytest

import lynx_dspy as lynx
from lynx_dspy.engines.server_address import address
from lynx_dspy.errors import DatabaseError, LynxError, UnknownName
from lynx_dspy.values import FailureClass, ForeignKey, Limits, Status

_ENDLESS = (
    "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);"
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id REFERENCES customers (id));"
            "CREATE VIEW firsts AS SELECT MIN(id) AS id FROM orders;"
            "INSERT INTO customers VALUES (1, 'Ada'); INSERT INTO orders VALUES (7, 1), (8, 1);"
        )
    connection.close()
    return f"sqlite+pysqlite:///{path}"


def test_any_url_of_sqlalchemy_opens(url: str) -> None:
    with lynx.connect(url) as database:
        schema = database.introspect()
        assert database.dialect == schema.dialect == "sqlite"
        assert {t.name: t.is_view for t in schema.tables} == {
            "customers": False, "orders": False, "firsts": True,
        }  # fmt: skip
        assert ForeignKey("orders", ("customer_id",), "customers", ("id",)) in schema.foreign_keys
        assert database.execute("SELECT id, id FROM orders").rows == ((7, 7), (8, 8))
        assert database.query("SELECT name FROM customers WHERE id IN (?, ?)", (1, 2)) == [("Ada",)]


def test_a_database_without_a_cancel_is_stopped_with_its_process(url: str) -> None:
    with lynx.connect(url) as database:
        assert database.execute("SELECT 1").rows == ((1,),)
        outcome = database.execute(_ENDLESS, Limits(timeout_seconds=0.3))
        assert outcome.status is Status.TIMEOUT
        assert database.execute("SELECT amuont FROM orders").failure_class is FailureClass.SCHEMA
        assert database.execute("DELETE FROM orders").status is Status.BLOCKED
        assert database.execute("SELECT COUNT(*) FROM orders").rows == ((2,),)


def test_what_is_shown_of_an_address_has_no_secret() -> None:
    told = address("postgresql://me:s%40cret@host:5/db?sslmode=require&sslpassword=hidden")
    assert told.shown == "postgresql://me@host:5/db?sslmode=require"
    assert "cret" not in repr(told) and "hidden" not in repr(told)
    assert told.clean("login s@cret, s%40cret, hidden") == "login ***, ***, ***"
    assert (told.dialect, told.name) == ("postgres", "db")


@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        ("postgresql://h:x/db", DatabaseError, "cannot be read"),
        ("bogus://h/db", UnknownName, "bogus"),
        ("postgresql+psycopg2://h/db", DatabaseError, "pip install"),
    ],
)
def test_an_address_that_does_not_do_says_why(given: str, kind: type[LynxError], says: str) -> None:
    with pytest.raises(kind, match=says) as error:
        address(given)
    assert "\n" not in str(error.value)

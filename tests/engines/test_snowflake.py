"""Snowflake against a connector that runs programs in DuckDB, with the connector's own errors."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from fakes.snowflake_driver import Account, settle

from lynx_dspy.engines.snowflake import SnowflakeDatabase
from lynx_dspy.engines.static import check, has_errors
from lynx_dspy.errors import DatabaseError, LynxError
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.values import FailureClass, ForeignKey, Limits, Status

ENDLESS = (
    "SELECT COUNT(*) FROM TABLE(GENERATOR(ROWCOUNT => 100000000)) a, "
    "TABLE(GENERATOR(ROWCOUNT => 100000000)) b WHERE RANDOM() = 1"
)
SHOP = (
    "CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(40) NOT NULL, joined DATE)",
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, amount DECIMAL(10, 2), "
    "at TIMESTAMPTZ, FOREIGN KEY (customer_id) REFERENCES customers (id))",
    "INSERT INTO customers VALUES (1, 'Ada', '2024-01-05'), (2, 'Bo', NULL)",
    "INSERT INTO orders VALUES (1, 1, 12.50, '2024-03-31 03:30:00+02'), (2, 2, 7.25, NULL)",
    "COMMENT ON TABLE orders IS 'one row an order'",
    "COMMENT ON COLUMN orders.amount IS 'in euros'",
    "CREATE VIEW totals AS SELECT customer_id, SUM(amount) AS total FROM orders GROUP BY 1",
)


@pytest.fixture(scope="module")
def account() -> Account:
    made = Account()
    made.load(SHOP)
    made.cursor().execute(r"CREATE TABLE blobs AS SELECT '\x00\xFF'::BLOB AS RAW")
    return made


@pytest.fixture
def db(account: Account, monkeypatch: pytest.MonkeyPatch) -> Iterator[SnowflakeDatabase]:
    account.sizes.clear()
    monkeypatch.setenv("SNOWFLAKE_USER", "reader")
    monkeypatch.setenv("SNOWFLAKE_PRIVATE_KEY_PATH", "key.p8")
    monkeypatch.delenv("SNOWFLAKE_PASSWORD", raising=False)
    with SnowflakeDatabase("//acme/SHOP_DB/PUBLIC?max_scan=1TB", account.driver()) as database:
        yield database


def test_values_come_as_python_values(db: SnowflakeDatabase) -> None:
    outcome = db.execute("SELECT amount, at, customer_id FROM SHOP_DB.PUBLIC.ORDERS ORDER BY id")
    assert outcome.columns == ("AMOUNT", "AT", "CUSTOMER_ID")
    at = dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC)
    assert outcome.rows == ((Decimal("12.50"), at, 1), (Decimal("7.25"), None, 2))
    assert outcome.rows[0][1].utcoffset() == dt.timedelta()
    (row,) = db.execute("SELECT [1, NULL, 3] AS a, OBJECT_CONSTRUCT('k', [1]) AS o").rows
    assert row == ((1, None, 3), (("k", (1,)),))
    (row,) = db.execute("SELECT raw, 3 AS n, 1.5::FLOAT AS f FROM blobs").rows
    assert row == (b"\x00\xff", 3, 1.5)


def test_two_columns_of_one_name_survive(db: SnowflakeDatabase) -> None:
    assert db.execute("SELECT id, id FROM customers ORDER BY id").rows == ((1, 1), (2, 2))


def test_explain_comes_first_and_the_query_runs_by_its_id(
    db: SnowflakeDatabase, account: Account
) -> None:
    before = len(account.statements)
    code = "SELECT COUNT(*) AS n FROM customers"
    assert db.execute(f"{code}; -- all").rows == ((2,),)
    assert account.statements[before:] == [f"EXPLAIN USING JSON {code}", code]


def test_above_the_cap_nothing_runs_and_both_figures_are_told(
    db: SnowflakeDatabase, account: Account
) -> None:
    account.sizes["CUSTOMERS"] = 5 * 10**12
    runs = len(account.queries)
    outcome = db.execute("SELECT name FROM customers")
    assert outcome.status is Status.BLOCKED
    assert "5 TB and may scan 1 TB" in outcome.error
    assert len(account.queries) == runs
    (finding,) = db.dry_run("SELECT name FROM customers")
    assert "5 TB" in finding.message


@pytest.mark.parametrize(
    "code",
    [
        "INSERT INTO customers VALUES (9, 'Eve', NULL)",
        "CREATE TABLE stolen AS SELECT * FROM customers",
        "DELETE FROM customers",
        "DROP TABLE customers",
        "SELECT 1; DROP TABLE customers",
    ],
)
def test_past_the_guard_the_plan_still_stops_what_is_no_query(
    db: SnowflakeDatabase, account: Account, code: str
) -> None:
    runs = len(account.queries)
    assert db._execute(code, Limits()).status in (Status.BLOCKED, Status.ERROR)
    assert len(account.queries) == runs


def test_a_runaway_query_is_cancelled_by_its_id(db: SnowflakeDatabase, account: Account) -> None:
    started = time.perf_counter()
    outcome = db.execute(ENDLESS, Limits(timeout_seconds=0.5))
    assert outcome.status is Status.TIMEOUT
    assert time.perf_counter() - started < 2.5
    assert settle(account) == 0
    assert account.cancelled[-1] in account.queries
    assert db.execute("SELECT 1 AS a").rows == ((1,),)


def test_rows_are_fetched_up_to_the_cap(db: SnowflakeDatabase) -> None:
    many = "SELECT a.id FROM customers a, customers b, customers c, customers d"
    outcome = db.execute(many, Limits(max_rows=7))
    assert (len(outcome.rows), outcome.truncated) == (7, True)
    assert len(db.execute(many, Limits(max_rows=16)).rows) == 16


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("SELECT nope FROM orders", FailureClass.SCHEMA),
        ("SELECT * FROM nope", FailureClass.SCHEMA),
        ("SELECT id FROM orders JOIN customers ON TRUE", FailureClass.SCHEMA),
        ("SELECT no_such_function(1)", FailureClass.SYNTAX),
        ("SELECT CAST(name AS INTEGER) FROM customers", FailureClass.SEMANTIC),
    ],
)
def test_errors_are_classified(db: SnowflakeDatabase, code: str, expected: FailureClass) -> None:
    outcome = db.execute(code)
    assert outcome.failure_class is expected, outcome
    assert "\n" not in outcome.error


def test_a_server_that_is_down_is_unavailable(db: SnowflakeDatabase, account: Account) -> None:
    account.down = True
    try:
        assert db.execute("SELECT 41 AS a").status is Status.UNAVAILABLE
        with pytest.raises(DatabaseError, match="the network is down"):
            db.query("SELECT 1")
        with pytest.raises(DatabaseError, match="could not connect"):
            SnowflakeDatabase("//acme/SHOP_DB", account.driver())
    finally:
        account.down = False


def test_the_schema_has_keys_comments_counts_and_full_names(db: SnowflakeDatabase) -> None:
    found = abstract(db)
    orders = found.table("ORDERS")
    assert orders is not None
    assert orders.parts == ("SHOP_DB", "PUBLIC", "ORDERS")
    assert (orders.primary_key, orders.row_count) == (("ID",), 2)
    assert orders.description == "one row an order"
    amount = orders.column("amount")
    assert amount is not None
    assert (amount.type, amount.description) == ("NUMBER(10, 2)", "in euros")
    customers = found.table("CUSTOMERS")
    assert customers is not None
    assert [c.nullable for c in customers.columns] == [False, False, True]
    assert customers.columns[1].samples == ("'Ada'", "'Bo'")
    assert found.foreign_keys[0] == ForeignKey("ORDERS", ("CUSTOMER_ID",), "CUSTOMERS", ("ID",))
    totals = found.table("TOTALS")
    assert totals is not None and totals.is_view
    assert not has_errors(check("SELECT o.amount FROM SHOP_DB.PUBLIC.ORDERS AS o", found))
    assert check('SELECT "amount" FROM SHOP_DB.PUBLIC.ORDERS', found)


def test_other_queries_of_this_package_are_capped(db: SnowflakeDatabase, account: Account) -> None:
    sql = "SELECT COUNT(DISTINCT id) FROM customers WHERE name IN (?, ?)"
    assert db.query(sql, ("Ada", "100%?")) == [(1,)]
    account.sizes["CUSTOMERS"] = 10**12
    with pytest.raises(DatabaseError, match="sample_scan is 1 GB"):
        db.query(sql, ("Ada", "x"))
    assert len(db.query('SELECT "ID" FROM "SHOP_DB"."PUBLIC"."CUSTOMERS" LIMIT 2')) == 2


def test_the_session_is_tagged_limited_and_logged_in_with_a_key(
    db: SnowflakeDatabase, account: Account
) -> None:
    login = account.logins[-1]
    assert login["private_key_file"] == "key.p8"
    assert login["authenticator"] == "SNOWFLAKE_JWT"
    assert "password" not in login
    session = login["session_parameters"]
    assert session["QUERY_TAG"] == "lynx"
    assert session["STATEMENT_TIMEOUT_IN_SECONDS"] == 300
    assert session["MULTI_STATEMENT_COUNT"] == 1


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"PASSWORD": "pw"}, {"password": "pw"}),
        ({"TOKEN": "t", "PASSWORD": "pw"}, {"authenticator": "oauth", "token": "t"}),
        ({"PRIVATE_KEY_PATH": "k", "PRIVATE_KEY_PASSPHRASE": "p"}, {"private_key_file_pwd": "p"}),
        ({"AUTHENTICATOR": "externalbrowser"}, {"authenticator": "externalbrowser"}),
    ],
)
def test_who_logs_in_is_read_from_the_environment(
    account: Account,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    expected: dict[str, Any],
) -> None:
    for name in ("PASSWORD", "TOKEN", "PRIVATE_KEY_PATH", "AUTHENTICATOR"):
        monkeypatch.delenv(f"SNOWFLAKE_{name}", raising=False)
    for name, value in {"USER": "u", **environment}.items():
        monkeypatch.setenv(f"SNOWFLAKE_{name}", value)
    with SnowflakeDatabase("//acme/SHOP_DB?warehouse=WH&role=R", account.driver()) as database:
        assert not set(environment.values()) & set(database.url.split("/"))
    login = account.logins[-1]
    assert expected.items() <= login.items()
    assert (login["warehouse"], login["role"], login["user"]) == ("WH", "R", "u")


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("//acme", "names no database"),
        ("//acme/db?password=x", "environment"),
        ("//u:secret@acme/db", "No user or password"),
        ("//acme/db?warehuose=x", "Did you mean 'warehouse'"),
        ("//acme/db", "SNOWFLAKE_USER"),
    ],
)
def test_a_wrong_address_says_what_is_wrong(
    account: Account, monkeypatch: pytest.MonkeyPatch, address: str, says: str
) -> None:
    monkeypatch.delenv("SNOWFLAKE_USER", raising=False)
    with pytest.raises(LynxError, match=says) as error:
        SnowflakeDatabase(address, account.driver())
    assert "secret" not in str(error.value)


def test_the_fingerprint_changes_with_the_tables(account: Account, db: SnowflakeDatabase) -> None:
    with SnowflakeDatabase("//acme/SHOP_DB/PUBLIC", account.driver()) as same:
        assert same.fingerprint() == db.fingerprint()
    account.load(["CREATE TABLE late (id INTEGER)"])
    with SnowflakeDatabase("//acme/SHOP_DB/PUBLIC", account.driver()) as later:
        assert later.fingerprint() != db.fingerprint()
    account.load(["DROP TABLE late"])

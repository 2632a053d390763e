"""The static check finds what is wrong, says what could be meant, and spares right programs."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynx_dspy.engines.static import check, has_errors
from lynx_dspy.values import Column, FailureClass, Schema, Table

_spec = importlib.util.spec_from_file_location("shop", Path(__file__).with_name("shop.py"))
assert _spec and _spec.loader
kit = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(kit)

SYNTAX, SCHEMA, SEMANTIC = FailureClass.SYNTAX, FailureClass.SCHEMA, FailureClass.SEMANTIC


@pytest.mark.parametrize(
    ("code", "failure", "name", "candidate"),
    [
        ("SELECT id FROM order_s", SCHEMA, "order_s", "orders"),
        ("SELECT o.total FROM orders o", SCHEMA, "o.total", "total_cents"),
        ("SELECT o.first_name FROM orders o JOIN customer c ON o.customer_id = c.id",
         SCHEMA, "o.first_name", "c.first_name"),
        ("SELECT x.first_name FROM customer c", SCHEMA, "x.first_name", "c.first_name"),
        ("SELECT id FROM orders JOIN customer ON orders.customer_id = customer.id",
         SCHEMA, "id", "orders.id"),
        ('SELECT "first_nam" FROM customer', SCHEMA, "first_nam", "first_name"),
        ("SELECT EXTRACT(YEAR FROM order_date) FROM orders", SYNTAX, "", ""),
        ("SELECT TO_CHAR(order_date, 'YYYY') FROM orders", SYNTAX, "TO_CHAR", ""),
        ("SELECT id FROM orders WHERE COUNT(*) > 1 GROUP BY id", SYNTAX, "COUNT(*)", ""),
        ("SELECT id FROM WHERE", SYNTAX, "", ""),
        ("DROP TABLE orders", SYNTAX, "DROP", ""),
        ("SELECT 1; SELECT 2", SYNTAX, "", ""),
        ("", SYNTAX, "", ""),
    ],
)  # fmt: skip
def test_errors(code: str, failure: FailureClass, name: str, candidate: str) -> None:
    found = check(code, kit.shop())
    assert has_errors(found)
    assert found[0].failure_class is failure
    assert found[0].name == name
    assert found[0].message
    if candidate:
        assert found[0].candidates[0] == candidate


def test_a_message_tells_a_model_what_there_is() -> None:
    message = check("SELECT o.total FROM orders o", kit.shop())[0].message
    assert "no column total in orders" in message
    assert "orders has: id, customer_id" in message
    assert "nearest: total_cents" in message


def test_a_column_of_another_table_comes_with_its_join() -> None:
    found = check("SELECT first_name FROM orders", kit.shop())
    join = "JOIN customer ON orders.customer_id = customer.id"
    assert found[0].candidates == (f"customer.first_name ({join})",)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("SELECT id FROM orders WHERE status = 'Shipped'", "status never is 'Shipped'"),
        ("SELECT id FROM orders WHERE status = 'paid'", "it holds: 'Paid'"),
        ("SELECT o.id FROM orders o, customer c", "joined without a condition"),
        ("SELECT status, COUNT(*) FROM orders", "not in GROUP BY"),
        ("SELECT id FROM orders WHERE total_cents = 'many'", "compared with the text"),
        ("SELECT id FROM orders WHERE shipped_at = NULL", "IS NULL"),
        ("SELECT COUNT(*) FROM orders WHERE STRFTIME('%Y', order_date) = 2024", "misreads"),
        ("SELECT shipped_at - order_date FROM orders", "JULIANDAY"),
    ],
)
def test_doubts_are_semantic(code: str, text: str) -> None:
    found = check(code, kit.shop())
    assert not has_errors(found)
    assert any(text in finding.message for finding in found)


@pytest.mark.parametrize(
    "code",
    [
        "SELECT rowid FROM orders",
        'SELECT id FROM customer WHERE first_name = "Ann"',
        "WITH t(a) AS (SELECT id FROM orders) SELECT T.A FROM t",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3) SELECT i FROM n",
        "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM customer WHERE id = o.customer_id)",
        "SELECT id AS x FROM orders WHERE x > 1 ORDER BY X",
        "SELECT * FROM (SELECT o.*, 1 AS one FROM orders o) s WHERE s.total_cents > one",
        "SELECT id FROM orders UNION SELECT id FROM customer ORDER BY id",
        "SELECT main.orders.id FROM main.orders",
        "SELECT city_id, COUNT(*) FROM customer JOIN city USING (id) GROUP BY city_id, id",
        "SELECT value FROM json_each('[1]')",
    ],
)
def test_right_programs_are_clean(code: str) -> None:
    assert check(code, kit.shop()) == ()


def test_duckdb_has_its_own_word() -> None:
    schema = kit.shop("duckdb")
    assert check("SELECT DATE_TRUNC('month', order_date) FROM orders", schema) == ()
    assert check("SELECT JULIANDAY_X(order_date) FROM orders", schema)[0].name == "JULIANDAY_X"
    assert has_errors(check('SELECT id FROM customer WHERE first_name = "Ann"', schema))


def test_a_dialect_without_an_engine_is_checked_by_names() -> None:
    schema = kit.shop("snowflake")
    assert check("SELECT DATE_TRUNC('month', order_date) FROM orders", schema) == ()
    assert check("SELECT total FROM orders", schema)[0].failure_class is SCHEMA


_WORDS = (
    *("SELECT", "FROM", "WHERE", "(", ")", ",", "*", "orders", "customer", "o", ".", "id", "="),
    *("'", '"', ";", "JOIN", "ON", "GROUP", "BY", "COUNT", "1"),
)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80) | st.lists(st.sampled_from(_WORDS), max_size=14).map(" ".join))
def test_any_text_can_be_checked(code: str) -> None:
    assert isinstance(check(code, kit.shop()), tuple)


def _golds() -> Iterator[tuple[str, str, str]]:
    for split in ("train", "val"):
        for line in (kit.DATA / f"sql_eval/{split}.jsonl").read_text().splitlines():
            row = json.loads(line)
            yield from (("sql_eval", row["db"], gold) for gold in row["gold"])
    for line in (kit.DATA / "spider/dev_gold.sql").read_text().splitlines():
        code, _, name = line.rpartition("\t")
        yield "spider", name.strip(), code


def _file(benchmark: str, name: str, folder: Path) -> Path:
    if benchmark == "spider":
        return next((kit.DATA / f"spider/database/{name}").glob("*.sqlite"))
    path = folder / f"{name}.sqlite"
    if not path.exists():
        with sqlite3.connect(path) as connection:
            connection.executescript((kit.DATA / f"sql_eval/databases/{name}.sql").read_text())
    return path


@pytest.mark.skipif(not kit.DATA.is_dir(), reason="shared data is not at hand")
def test_golds_have_no_errors(tmp_path: Path) -> None:
    schemas = {}
    wrong = []
    for benchmark, name, code in _golds():
        key = (benchmark, name)
        if key not in schemas:
            schemas[key] = kit.introspected(_file(benchmark, name, tmp_path))
        if has_errors(check(code, schemas[key])):
            wrong.append(code)
    assert len(schemas) == 21
    assert wrong == []


def test_a_schema_that_no_engine_can_copy_is_checked_by_names() -> None:
    twice = Table("t", (Column("a", "TEXT"), Column("a", "TEXT")))
    schema = Schema("sqlite", (twice,))
    assert not has_errors(check("SELECT a FROM t", schema))
    assert has_errors(check("SELECT b FROM t", schema))

"""Mends have one outcome: the program then runs, and what was right comes back as it was."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynx_dspy.engines.mend import Mend, mend
from lynx_dspy.engines.static import check, has_errors
from lynx_dspy.values import Column, Schema, Table

_spec = importlib.util.spec_from_file_location("shop", Path(__file__).with_name("shop.py"))
assert _spec and _spec.loader
kit = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(kit)

JOIN = "JOIN customer ON orders.customer_id = customer.id"

NAMES = [
    ("SELECT Total_Cent FROM Order", "SELECT total_cents FROM orders AS \"Order\""),
    ("SELECT firstName FROM customer", "SELECT first_name FROM customer"),
    ("SELECT o.first_name FROM orders o JOIN customer c ON o.customer_id = c.id",
     "SELECT c.first_name FROM orders o JOIN customer c ON o.customer_id = c.id"),
    ("SELECT T9.first_name FROM customer AS T1", "SELECT first_name FROM customer"),
    ("SELECT customer.first_name FROM customer AS c", "SELECT first_name FROM customer"),
    ("SELECT orders.total_cents, customer.first_name FROM orders",
     f"SELECT total_cents, first_name FROM orders {JOIN}"),
    ("SELECT total_cents, city_name FROM orders",
     f"SELECT total_cents, city_name FROM orders {JOIN} JOIN city ON customer.city_id = city.id"),
    ("SELECT c.first_name FROM Customers c JOIN orders o ON o.cust_no = c.customer_no",
     f"SELECT first_name FROM orders {JOIN}"),
    ("SELECT c.city_name FROM orders o JOIN city c ON o.city_id = c.id",
     f"SELECT city_name FROM orders {JOIN} JOIN city ON customer.city_id = city.id"),
    ("SELECT T2.total_cents FROM orders T1 JOIN customer T2 ON T1.customer_id = T2.id",
     "SELECT total_cents FROM orders"),
    ("SELECT customer_id, COUNT(*) AS order_count FROM orders GROUP BY 1 ORDER BY OrderCount DESC",
     "SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY 1 ORDER BY n DESC"),
    ("SELECT id, first_name FROM orders", "SELECT id, first_name FROM customer"),
    ("SELECT COUNT(o.order_id) FROM orders o", "SELECT COUNT(id) FROM orders"),
    ("SELECT id FROM public.orders", "SELECT id FROM orders"),
    ('SELECT "firstname" FROM customer', "SELECT first_name FROM customer"),
    ("SELECT first_name AS group FROM customer", "SELECT first_name FROM customer"),
]  # fmt: skip

CLAUSES = [
    ("SELECT customer_id FROM orders WHERE COUNT(*) > 1 GROUP BY customer_id", [(1,)]),
    ("SELECT id FROM orders WHERE total_cents > AVG(total_cents)", [(3,)]),
    ("SELECT id FROM orders WHERE shipped_at = NULL", [(2,)]),
    ("SELECT COUNT(*) FROM orders WHERE status = 'PAID'", [(2,)]),
    ("SELECT id, FROM orders WHERE (total_cents > 800", [(3,)]),
    ("SELECT id FROM orders LIMIT 1 ORDER BY id DESC WHERE total_cents < 800", [(2,)]),
    ("```sql\nSELECT 1;\n```\nThis gives one.", [(1,)]),
    ("SELECT 1;\n\nThis gives one.", [(1,)]),
    ("The query is: SELECT 1", [(1,)]),
    ("<think>SELECT 0</think>SELECT 1; SELECT 2;", [(2,)]),
]

DIALECTS = [
    ("SELECT EXTRACT(YEAR FROM order_date) FROM orders WHERE id = 1", 2024),
    ("SELECT YEAR(order_date) * 100 + MONTH(order_date) FROM orders WHERE id = 1", 202403),
    ("SELECT DATE_PART('quarter', order_date) FROM orders WHERE id = 2", 4),
    ("SELECT DATE_TRUNC('month', order_date) FROM orders WHERE id = 1", "2024-03-01"),
    ("SELECT DATE_TRUNC('quarter', order_date) FROM orders WHERE id = 2", "2023-10-01"),
    ("SELECT DATE_TRUNC('week', order_date) FROM orders WHERE id = 1", "2024-03-04"),
    ("SELECT order_date - INTERVAL '1 month' FROM orders WHERE id = 1", "2024-02-05"),
    ("SELECT order_date + INTERVAL 2 WEEK FROM orders WHERE id = 1", "2024-03-19"),
    ("SELECT DATE_SUB(order_date, INTERVAL 1 DAY) FROM orders WHERE id = 1", "2024-03-04"),
    ("SELECT DATEADD(month, -1, order_date) FROM orders WHERE id = 1", "2024-02-05"),
    ("SELECT order_date - 5 FROM orders WHERE id = 1", "2024-02-29"),
    ("SELECT DATEDIFF(day, order_date, shipped_at) FROM orders WHERE id = 1", 2),
    ("SELECT DATEDIFF(shipped_at, order_date) FROM orders WHERE id = 1", 2),
    ("SELECT shipped_at - order_date FROM orders WHERE id = 1", 2.5),
    ("SELECT EXTRACT(EPOCH FROM (shipped_at - order_date)) FROM orders WHERE id = 1", 216000.0),
    ("SELECT COUNT(*) FROM orders WHERE shipped_at - order_date > INTERVAL '2 days'", 1),
    ("SELECT TO_CHAR(order_date, 'YYYY-MM') FROM orders WHERE id = 1", "2024-03"),
    ("SELECT DATE_FORMAT(order_date, '%Y/%m') FROM orders WHERE id = 1", "2024/03"),
    ("SELECT MONTHNAME(order_date) FROM orders WHERE id = 1", "March"),
    ("SELECT CAST(order_date AS DATE) FROM orders WHERE id = 1", "2024-03-05"),
    ("SELECT COUNT(*) FROM orders WHERE STRFTIME('%Y', order_date) = 2024", 2),
    ("SELECT STRFTIME(order_date, '%Y') FROM orders WHERE id = 1", "2024"),
    ("SELECT CONCAT(first_name, '-', id) FROM customer WHERE id = 1", "Ann-1"),
    ("SELECT LEFT(first_name, 1) || RIGHT(first_name, 1) FROM customer WHERE id = 1", "An"),
    ("SELECT STRING_AGG(first_name, '+') FROM customer", "Ann+Bob"),
    ("SELECT id FROM customer WHERE first_name ILIKE 'ANN'", 1),
    ("SELECT id::text FROM customer WHERE id = 1", "1"),
    ("SELECT TOP 1 id FROM orders ORDER BY total_cents DESC", 3),
    ("SELECT GREATEST(total_cents, 600) FROM orders WHERE id = 1", 600),
    ("SELECT COUNT(DISTINCT customer_id, status) FROM orders", 3),
    ("SELECT COUNT(shipped_at) / COUNT(*) FROM orders WHERE id < 3", 0.5),
    ("SELECT ROUND(STDDEV(total_cents), 3) FROM orders", 200.0),
    ("SELECT id FROM customer WHERE id = ANY(SELECT customer_id FROM orders) LIMIT 1", 1),
    ("SELECT id FROM orders QUALIFY ROW_NUMBER() OVER (ORDER BY total_cents) = 3", 3),
]


@pytest.mark.parametrize(("broken", "meant"), NAMES)
def test_names(broken: str, meant: str) -> None:
    mended = mend(broken, kit.shop())
    assert mended.changes
    assert kit.rows(mended.code) == kit.rows(meant)


@pytest.mark.parametrize(("broken", "expected"), CLAUSES)
def test_clauses_and_leftovers(broken: str, expected: list[tuple[object, ...]]) -> None:
    assert kit.rows(mend(broken, kit.shop()).code) == expected


@pytest.mark.parametrize(("foreign", "expected"), DIALECTS)
def test_habits_of_other_dialects(foreign: str, expected: object) -> None:
    mended = mend(foreign, kit.shop())
    assert (
        kit.rows(mended.code)[0] == (pytest.approx(expected),)
        if isinstance(expected, float)
        else kit.rows(mended.code)[0] == (expected,)
    )
    assert mended.changes


@pytest.mark.parametrize(
    "code",
    [
        "select  id ,first_name from customer  -- all\n",
        'SELECT id FROM customer WHERE first_name = "Ann"',
        "SELECT status, COUNT(*) FROM orders",
        "SELECT id FROM orders WHERE status = 'Shipped'",
    ],
)
def test_a_program_without_errors_is_left_alone(code: str) -> None:
    assert mend(code, kit.shop()) == Mend(code)


@pytest.mark.parametrize(
    "code",
    [
        "SELECT nonsense FROM orders",
        "SELECT x.a FROM nowhere x",
        "SELECT MEDIAN(total_cents) FROM orders",
        "I cannot answer this.",
        "DROP TABLE orders",
        "",
    ],
)
def test_what_has_no_single_outcome_stays(code: str) -> None:
    assert mend(code, kit.shop()).changes == ()


def test_a_join_is_never_made_a_tautology() -> None:
    mended = mend("SELECT o.id FROM orders o JOIN city c ON o.city_name = c.city_name", kit.shop())
    assert "c.city_name = c.city_name" not in mended.code


def test_duckdb_reads_other_dialects() -> None:
    schema = kit.shop("duckdb")
    for code in (
        'SELECT id FROM customer WHERE first_name = "Ann"',
        "SELECT IFNULL(first_nam, 'x') FROM customer",
        "SELECT TOP 1 id FROM orders",
    ):
        mended = mend(code, schema)
        assert mended.changes
        assert not has_errors(check(mended.code, schema))


_WORDS = (
    *("SELECT", "FROM", "WHERE", "(", ")", ",", "*", "orders", "customer", "Customers", "o", "."),
    *("id", "total", "name", "=", "'", '"', ";", "JOIN", "ON", "GROUP", "BY", "COUNT", "1", "AS"),
    *("INTERVAL", "DATE_TRUNC", "::date", "NULL", "```"),
)


@settings(max_examples=120, deadline=None)
@given(st.text(max_size=60) | st.lists(st.sampled_from(_WORDS), max_size=14).map(" ".join))
def test_any_text_can_be_mended_once(code: str) -> None:
    once = mend(code, kit.shop())
    assert mend(once.code, kit.shop()).code == once.code
    if once.code == code:
        assert once.changes == ()


def test_a_join_condition_never_becomes_a_comparison_with_itself() -> None:
    schema = Schema(
        "sqlite",
        (
            Table("fare", (Column("fare_id", "INTEGER"), Column("cost", "INTEGER"))),
            Table("flight", (Column("flight_id", "INTEGER"), Column("airline", "TEXT"))),
        ),
    )
    code = "SELECT f.cost FROM fare AS f JOIN flight AS g ON f.flight_id = g.flight_id"
    assert "g.flight_id = g.flight_id" not in mend(code, schema).code

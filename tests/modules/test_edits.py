"""What a repair may change, and what is put back."""

from __future__ import annotations

import pytest

from lynx_dspy.modules.edits import localised, touched
from lynx_dspy.values import (
    Attempt,
    Column,
    FailureClass,
    Finding,
    ForeignKey,
    Outcome,
    Schema,
    Status,
    Table,
)

SCHEMA = Schema(
    "sqlite",
    (
        Table(
            "customer", (Column("id", "INTEGER"), Column("name", "TEXT"), Column("city", "TEXT"))
        ),
        Table("orders", (Column("customer_id", "INTEGER"), Column("total", "INTEGER"))),
    ),
    (ForeignKey("orders", ("customer_id",), "customer", ("id",)),),
)


def failed(code: str, error: str, failure: FailureClass, *findings: Finding) -> Attempt:
    outcome = Outcome(Status.ERROR, error=error, failure_class=failure)
    return Attempt(0, code, outcome, failure_class=failure, findings=findings)


def doubted(code: str, clause: str = "") -> Attempt:
    finding = Finding(FailureClass.SEMANTIC, "m", clause=clause)
    rows = Outcome(Status.OK, ("a",), ((1,),))
    return Attempt(0, code, rows, failure_class=FailureClass.SEMANTIC, findings=(finding,))


def repaired(attempt: Attempt, after: str) -> tuple[str, tuple[str, ...], str]:
    edit = localised(attempt.code, after, touched(attempt, SCHEMA), SCHEMA)
    return edit.code, edit.reverted, edit.refusal


def test_a_wrong_name_may_change_where_it_stands_and_the_joins() -> None:
    code = "SELECT name FROM customer WHERE total > 5 ORDER BY name LIMIT 3"
    attempt = failed(code, "no such column: total", FailureClass.SCHEMA)
    assert touched(attempt, SCHEMA) == {"WHERE", "FROM"}


def test_an_unrelated_change_is_put_back() -> None:
    before = "SELECT nme FROM customer WHERE city = 'Oslo'"
    attempt = failed(before, "no such column: nme", FailureClass.SCHEMA)
    after = "SELECT name FROM customer WHERE city = 'Bergen' LIMIT 1"
    code, reverted, refusal = repaired(attempt, after)
    assert code == "SELECT name FROM customer WHERE city = 'Oslo'"
    assert set(reverted) == {"WHERE", "LIMIT"}
    assert not refusal


def test_a_change_that_the_repair_needs_stays() -> None:
    before = "SELECT c.name FROM customers AS c WHERE c.city = 'Oslo' LIMIT 2"
    attempt = failed(before, "no such table: customers", FailureClass.SCHEMA)
    after = "SELECT k.name FROM customer AS k WHERE k.city = 'Oslo' LIMIT 9"
    code, reverted, _ = repaired(attempt, after)
    assert code == "SELECT k.name FROM customer AS k WHERE k.city = 'Oslo' LIMIT 2"
    assert reverted == ("LIMIT",)


def test_an_edit_that_leaves_the_failure_alone_is_refused_with_a_reason() -> None:
    before = "SELECT nme FROM customer"
    attempt = failed(before, "no such column: nme", FailureClass.SCHEMA)
    _, reverted, refusal = repaired(attempt, "SELECT nme FROM customer LIMIT 5")
    assert reverted == ("LIMIT",)
    assert "LIMIT" in refusal
    assert "SELECT" in refusal


def test_another_query_in_place_of_an_edit_is_refused() -> None:
    attempt = failed("SELECT nme FROM customer", "no such column: nme", FailureClass.SCHEMA)
    after = "SELECT name FROM customer UNION SELECT city FROM customer"
    assert repaired(attempt, after)[2]


def test_a_common_table_expression_is_put_back_whole() -> None:
    before = "WITH x AS (SELECT id FROM customer WHERE city = 'Oslo') SELECT idd FROM x"
    attempt = failed(before, "no such column: idd", FailureClass.SCHEMA)
    after = "WITH x AS (SELECT id FROM customer) SELECT id FROM x"
    code, reverted, _ = repaired(attempt, after)
    assert code == before.replace("idd", "id")
    assert reverted == ("WITH x",)


@pytest.mark.parametrize(
    ("clause", "kept", "put_back"),
    [("LIMIT", "LIMIT 5", "'Oslo'"), ("WHERE", "'Bergen'", "LIMIT 3")],
)
def test_a_violated_item_touches_its_clause(clause: str, kept: str, put_back: str) -> None:
    attempt = doubted("SELECT name FROM customer WHERE city = 'Oslo' LIMIT 3", clause)
    code, _, _ = repaired(attempt, "SELECT name FROM customer WHERE city = 'Bergen' LIMIT 5")
    assert kept in code
    assert put_back in code


@pytest.mark.parametrize(
    "attempt",
    [
        doubted("SELECT name FROM customer"),
        failed("SELEC nme", 'near "SELEC": syntax error', FailureClass.SYNTAX),
        failed("", "no program", FailureClass.SYNTAX),
        failed("DROP TABLE customer", "blocked", FailureClass.SYNTAX),
    ],
)
def test_where_the_failure_cannot_be_placed_everything_may_change(attempt: Attempt) -> None:
    assert touched(attempt, SCHEMA) is None
    after = "SELECT city FROM customer LIMIT 1"
    assert repaired(attempt, after) == (after, (), "")


def test_an_unreadable_repair_is_left_as_it_is() -> None:
    attempt = failed("SELECT nme FROM customer", "no such column: nme", FailureClass.SCHEMA)
    for after in ("", "rubbish ((", "SELECT '" + "x" * 100_000):
        assert repaired(attempt, after) == (after, (), "")

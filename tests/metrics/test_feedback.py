import dspy
import pytest

from lynx_dspy.metrics.feedback import as_metric, feedback
from lynx_dspy.values import Column, Schema, Table

SHOP = Schema(
    "sqlite",
    (
        Table("customer", tuple(Column(c, "TEXT") for c in ("id", "name", "city"))),
        Table("orders", tuple(Column(c, "TEXT") for c in ("id", "customer_id", "total"))),
    ),
)
GOLD = "SELECT c.name FROM customer c WHERE c.city = 'Oslo' AND c.id > 3 ORDER BY c.name LIMIT 5"


@pytest.mark.parametrize(
    ("pred", "said"),
    [
        ("SELECT name FROM customer WHERE city = 'Oslo'", "does not use the column `customer.id`"),
        ("SELECT name FROM clients", "The schema has no `clients`"),
        ("SELECT total FROM orders", "does not read the table `customer`"),
        (GOLD.replace("'Oslo'", "'Rome'"), "WHERE lacks `customer.city = 'Oslo'`"),
        (GOLD.replace("ORDER BY c.name", "ORDER BY c.name DESC"), "ORDER BY lacks"),
        (GOLD.replace("LIMIT 5", "LIMIT 6"), "LIMIT lacks `5`. LIMIT should not hold `6`"),
        (GOLD.replace("c.name F", "DISTINCT c.name F"), "DISTINCT is not wanted"),
        ("SELECT ((", "not valid sqlite SQL"),
        (f"SELECT name FROM customer UNION {GOLD}", "A SELECT is expected, not a UNION"),
    ],
)
def test_the_first_difference_is_named(pred: str, said: str) -> None:
    assert said in feedback(GOLD, pred, SHOP)


def test_aliases_and_order_of_conditions_are_no_difference() -> None:
    pred = "SELECT name AS n FROM customer WHERE id > 3 AND city = 'Oslo' ORDER BY name LIMIT 5"
    assert feedback(GOLD, pred, SHOP) == "Names and clauses are as expected."


def test_each_optimizer_gets_the_form_that_it_needs() -> None:
    metric = as_metric(lambda example, pred: 0.5, lambda example, pred: "try again")
    example, pred = dspy.Example(), dspy.Prediction()
    assert metric(example, pred) == 0.5
    assert metric(example, pred, trace=[]) is False
    told = metric(example, pred, None, "generator.formulate", None)
    assert isinstance(told, dspy.Prediction)
    assert (told.score, told.feedback) == (0.5, "try again")


def test_a_clause_without_a_body_is_no_difference_to_trip_over() -> None:
    schema = Schema("sqlite", (Table("t", (Column("a", "TEXT"),)),))
    assert isinstance(
        feedback("SELECT a FROM t GROUP BY a", "SELECT a FROM t GROUP BY", schema), str
    )

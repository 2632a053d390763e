from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.modules.checklist import Asked, Item, checklist, numbered, shown_by
from lynx_dspy.values import Link


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("List the top 5 customers", (Asked.TOP_K, "top 5", 5)),
        (
            "Which three cities have the highest sales?",
            (Asked.TOP_K, "three cities have the highest", 3),
        ),
        (
            "Names of drivers, excluding retired ones",
            (Asked.EXCLUSION, "excluding retired ones", 0),
        ),
        ("Customers who did not order anything", (Asked.EXCLUSION, "not order anything", 0)),
        ("Revenue per month", (Asked.GRAIN, "per month", 0)),
        ("For each region show the orders", (Asked.GRAIN, "For each region show", 0)),
        ("Orders placed in 2024", (Asked.TIME, "in 2024", 2024)),
        ("Orders between 2010 and 2015", (Asked.TIME, "between 2010 and 2015", 0)),
        ("Sales of the last 3 months", (Asked.TIME, "last 3 months", 0)),
        ("Sales since 2020", (Asked.TIME, "since 2020", 0)),
        ("Average salary of staff", (Asked.AGGREGATE, "Average salary of", 0)),
        ("How many players are there", (Asked.AGGREGATE, "How many players are", 0)),
        ("What percentage of users churned", (Asked.UNIT, "percentage of users churned", 0)),
        (
            "Heroes taller than 180 or with more than 3 powers",
            (Asked.FILTER, "more than 3 powers", 0),
        ),
        ('Show the hero called "Abomination"', (Asked.FILTER, '"Abomination"', 0)),
        (
            "Names sorted by age in descending order",
            (Asked.ORDER, "sorted by age in descending order", 0),
        ),
    ],
)
def test_the_words_that_ask(question: str, expected: tuple[Asked, str, int]) -> None:
    found = [(item.asked, item.quote, item.number) for item in checklist(question)]
    assert expected in found


def test_may_is_a_month_only_as_a_name() -> None:
    assert not [i for i in checklist("Which users may log in") if i.asked is Asked.TIME]
    assert [i for i in checklist("Orders in May 2024") if i.asked is Asked.TIME]


def test_stored_values_that_the_question_names_are_filters() -> None:
    links = [Link("oslo", "customer", "city", "Oslo"), Link("o", "t", "c", "Oslo x", "value", 0.3)]
    found = [i.quote for i in checklist("Customers of oslo", links) if i.asked is Asked.FILTER]
    assert found == ["customer.city = 'Oslo'"]


@given(st.text(max_size=300))
def test_any_question_has_a_short_checklist_in_its_own_words(question: str) -> None:
    found = checklist(question)
    flat = " ".join(question.split())
    assert len(found) <= 12
    assert all(item.quote.rstrip("…") in flat for item in found)
    assert numbered(found).count("\n") == max(len(found) - 1, 0)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("SELECT a FROM t ORDER BY b LIMIT 5", True),
        ("SELECT a FROM t", False),
        ("SELECT a FROM t LIMIT 10", False),
        ("SELECT a FROM (SELECT a, RANK() OVER (ORDER BY b) r FROM t) WHERE r < 6", None),
        ("rubbish ((", None),
    ],
)
def test_a_limit_is_read_from_the_program(code: str, expected: bool | None) -> None:
    assert shown_by(code, Item(Asked.TOP_K, "top 5", 5), "sqlite") is expected


def test_a_year_may_be_written_by_its_neighbour() -> None:
    item = Item(Asked.TIME, "in 2024", 2024)
    assert shown_by("SELECT a FROM t WHERE d < '2025-01-01'", item, "sqlite") is None
    assert shown_by("SELECT a FROM t WHERE b = 'x'", item, "sqlite") is False

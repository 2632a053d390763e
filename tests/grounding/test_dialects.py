"""The syntax share holds what is asked for, never more than its budget, and true SQL."""

from __future__ import annotations

import re
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.grounding.dialects import GENERIC, page, syntax_for
from lynx_dspy.tokens import estimate

DIALECTS = ("sqlite", "duckdb", GENERIC)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_entry_has_tags_and_text(dialect: str) -> None:
    entries = page(dialect)
    assert len(entries) >= 10
    assert all(entry.tags and entry.text for entry in entries)
    assert len({entry.title for entry in entries}) == len(entries)


@pytest.mark.parametrize(
    ("need", "title"),
    [
        ("How many orders in the last 3 months?", "Dates"),
        ("What percentage of customers ...", "Division"),
        ("no such function: EXTRACT", "Parts of a date"),
        ("ambiguous column name: id", "Ambiguous columns"),
        (["median"], "Statistics"),
        ("List the songs without a genre", "NULLs"),
    ],
)
def test_a_need_finds_its_entry(need: str | list[str], title: str) -> None:
    assert f"{title}: " in syntax_for("sqlite", need, 300)


def test_nothing_asked_nothing_given() -> None:
    assert syntax_for("sqlite", "", 300) == ""
    assert syntax_for("sqlite", [], 300) == ""


def test_dialects_differ_and_an_unknown_one_gets_the_generic_page() -> None:
    assert "INTERVAL 3 MONTH" in syntax_for("duckdb", "last 3 months", 300)
    assert "DATE('now', '-3 months')" in syntax_for("sqlite", "last 3 months", 300)
    assert page("oracle") == page(GENERIC) == page("../sqlite")


@given(st.sampled_from(DIALECTS), st.text(max_size=200), st.integers(0, 400))
def test_the_budget_holds(dialect: str, need: str, budget: int) -> None:
    given = syntax_for(dialect, need + " last month ratio top count null", budget)
    assert estimate(given) <= budget


def test_sqlite_expressions_run() -> None:
    text = "\n".join(entry.text for entry in page("sqlite"))
    calls = re.findall(
        r"(?:DATE|DATETIME|STRFTIME|CAST|SUBSTR|JULIANDAY)\((?:[^()]|\([^()]*\))*\)", text
    )
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE t (d, x, s, a, b, start, count)")
        for call in calls:
            connection.execute(f"SELECT {call} FROM t")
    assert len(calls) > 12

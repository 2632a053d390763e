"""The syntax share holds what is asked for, never more than its budget, and true SQL."""

from __future__ import annotations

import re
import sqlite3

import duckdb
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.engines.static import check
from lynx_dspy.grounding.dialects import GENERIC, page, syntax_for
from lynx_dspy.tokens import estimate
from lynx_dspy.values import Schema

DIALECTS = (
    "sqlite", "duckdb", "postgres", "bigquery", "snowflake", "mysql", "spark", GENERIC,
)  # fmt: skip


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


_TABLES = """
    CREATE TABLE t (id INTEGER, d DATE, ts TIMESTAMP, s TEXT, g TEXT, x {real}, a INTEGER,
                    b INTEGER, j {json}{more});
    CREATE TABLE u (id INTEGER, name TEXT, t_id INTEGER);
"""


def _query(example: str) -> str:
    return example if re.match(r"(SELECT|WITH)\b", example) else f"SELECT {example} FROM t"


@pytest.mark.parametrize("dialect", [d for d in DIALECTS if d != GENERIC])
def test_every_example_parses(dialect: str) -> None:
    examples = [example for entry in page(dialect) for example in entry.examples]
    assert len(examples) > 30
    for example in examples:
        tree = sqlglot.parse_one(_query(example), read=dialect)
        assert isinstance(tree, sqlglot.exp.Query), example


@pytest.mark.parametrize("dialect", [d for d in DIALECTS if d != GENERIC])
def test_no_example_calls_what_the_dialect_lacks(dialect: str) -> None:
    examples = [example for entry in page(dialect) for example in entry.examples]
    for example in examples:
        found = check(_query(example), Schema(dialect, ()))
        assert not [f.message for f in found if "has no" in f.message], example


def test_sqlite_examples_run() -> None:
    with sqlite3.connect(":memory:") as connection:
        connection.executescript(_TABLES.format(real="REAL", json="TEXT", more=""))
        for entry in page("sqlite"):
            for example in entry.examples:
                connection.execute(_query(example)).fetchall()


def test_duckdb_examples_run() -> None:
    with duckdb.connect() as engine:
        more = ", list INTEGER[], st STRUCT(f INTEGER)"
        engine.execute(_TABLES.format(real="DOUBLE", json="JSON", more=more))
        for entry in page("duckdb"):
            for example in entry.examples:
                engine.execute(_query(example)).fetchall()


@pytest.mark.parametrize(
    ("dialect", "need", "title"),
    [
        ("bigquery", "sessions by event_params page_title", "Key and value parameters"),
        ("bigquery", "No matching signature for operator = for STRING and INT64", "Casts"),
        ("bigquery", "no column in ga_sessions_20170801; wildcard suffix", "Sharded tables"),
        ("snowflake", "invalid identifier 'STN'", "Quoting"),
        ("snowflake", "flatten the repeated array", "Flatten"),
        ("postgres", "column must appear in the GROUP BY clause", "Grouping"),
        ("mysql", "average per month this year", "Parts of a date"),
        ("spark", "explode the array", "Arrays"),
    ],
)
def test_a_failure_finds_its_cure(dialect: str, need: str, title: str) -> None:
    assert f"{title}: " in syntax_for(dialect, need, 250)


def test_examples_are_shown_without_their_marks() -> None:
    text = syntax_for("bigquery", "wildcard table suffix sharded", 300)
    assert "FROM `p.ds.events_*` WHERE" in text
    assert "``" not in text
    assert page("databricks") == page("spark")

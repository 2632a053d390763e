from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynx_dspy.engines.base import Database
from lynx_dspy.errors import UnknownName
from lynx_dspy.grounding.render import render, tokens_raw
from lynx_dspy.grounding.schema import abstract, with_descriptions
from lynx_dspy.grounding.styles import STYLES, table_name
from lynx_dspy.tokens import estimate
from lynx_dspy.values import Column, ForeignKey, Link, Schema, Table

Make = Callable[[str], Database]

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=150)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    columns = st.builds(
        Column,
        name=names,
        type=st.sampled_from(["", "INTEGER", "VARCHAR(20)", "NUMERIC(10, 2)"]),
        description=texts,
        samples=st.lists(st.sampled_from(["'a'", "'it''s  x'", "12.50"]), max_size=4).map(tuple),
    )
    tables = draw(
        st.lists(
            st.builds(
                Table,
                name=names,
                columns=st.lists(columns, min_size=1, max_size=6, unique_by=lambda c: c.name).map(
                    tuple
                ),
                description=texts,
            ),
            min_size=1,
            max_size=6,
            unique_by=lambda t: t.name.casefold(),
        )
    )
    ends = st.sampled_from(tables).map(lambda t: (t.name, (t.columns[0].name,)))
    pairs = draw(st.lists(st.tuples(ends, ends), max_size=4))
    keys = tuple(ForeignKey(*one, *other, inferred=True) for one, other in pairs)
    return Schema("sqlite", tuple(tables), keys)


@given(schemas(), st.integers(0, 400), st.sampled_from(sorted(STYLES)), st.data())
@settings(max_examples=150, deadline=None)
def test_never_over_budget_and_nothing_is_lost_silently(
    schema: Schema, budget: int, style: str, data: st.DataObject
) -> None:
    keep = data.draw(st.lists(st.sampled_from([t.name for t in schema.tables]), max_size=2))
    shown = render(schema, budget, keep=keep, style=style)
    assert shown.tokens == estimate(shown.text) <= budget
    openings = {"ddl": "\nCREATE TABLE {} (", "compact": "\n{}("}
    for table in schema.tables:
        opening = openings[style].format(table_name(table, "sqlite"))
        assert (table.name in shown.left_out) != (opening in f"\n{shown.text}")


@given(schemas(), st.sampled_from(sorted(STYLES)))
@settings(max_examples=50, deadline=None)
def test_a_large_budget_leaves_nothing_out(schema: Schema, style: str) -> None:
    assert render(schema, 100_000, style=style).left_out == ()


SHOP = """
CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, name TEXT, "group" TEXT);
INSERT INTO customers VALUES (1, 'Ann', 'A'), (2, 'Bo', 'B'), (3, 'Cy', 'A');
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, state TEXT, note TEXT);
INSERT INTO orders VALUES (1, 1, 'open', 'x y z'), (2, 2, 'paid', 'r s t'), (3, 2, 'paid', 'u');
CREATE TABLE weather (day TEXT, rain REAL, wind REAL, sun REAL, cloud REAL, station TEXT);
"""


@pytest.fixture
def shop(make: Make) -> Schema:
    about = {
        "customers": {"group": "price group", "": "who buys"},
        "orders": {"state": "paid or not"},
    }
    return with_descriptions(abstract(make(SHOP)), about)


def test_the_ddl_style_is_sql_that_the_engine_accepts(shop: Schema) -> None:
    text = render(shop, 2_000).text
    sqlite3.connect(":memory:").executescript(text)
    assert "\"group\" TEXT -- 'A', 'B'; price group" in text
    assert "-- ~ orders.customer_id = customers.customer_id" in text


def test_the_compact_style_takes_one_line_a_table(shop: Schema) -> None:
    lines = render(shop, 2_000, style="compact").text.splitlines()
    assert lines[0] == (
        "customers(customer_id INTEGER PK, name TEXT: 'Ann', 'Bo', 'Cy', "
        "\"group\" TEXT: 'A', 'B' /* price group */) /* who buys */"
    )
    assert len(lines) == 4


def test_what_is_far_from_the_question_goes_first(shop: Schema) -> None:
    links = [Link("open", "orders", "state", "open"), Link("customers", "customers", "name")]
    whole = render(shop, 2_000, ("customers", "orders"), links)
    tight = render(shop, whole.tokens - 25, ("customers", "orders"), links)
    assert tight.left_out[0] == "weather"
    assert "'open'" in tight.text and "1 more table not shown: weather" in tight.text
    tighter = render(shop, 85, ("customers", "orders"), links)
    for name in ("state", "name", "customer_id", "orders.customer_id = customers.customer_id"):
        assert name in tighter.text
    assert "customers.group" in tighter.left_out


def test_two_thousand_tables_fit_any_budget_fast() -> None:
    columns = tuple(
        Column(f"column_{i}", "VARCHAR(20)", "about", samples=("'x'",)) for i in range(12)
    )
    schema = Schema("sqlite", tuple(Table(f"table_{i}", columns) for i in range(2_000)))
    started = time.process_time()
    shown = render(schema, 1_500, keep=("table_1234",))
    assert time.process_time() - started < 1
    assert shown.tokens <= 1_500 and "CREATE TABLE table_1234 (" in shown.text
    assert "more tables not shown" in shown.text
    assert tokens_raw(schema) > 100_000


def test_a_comment_cannot_end_early() -> None:
    schema = Schema("sqlite", (Table("t", (Column("a", "INT", "x */ DROP\nTABLE t; --"),)),))
    assert "DROP" not in render(schema, 500).text.split("--")[0]
    assert "x * / DROP TABLE t; -- */" in render(schema, 500, style="compact").text


def test_an_unknown_style_is_named(shop: Schema) -> None:
    with pytest.raises(UnknownName, match=r"schema style 'xml'\. Known: ddl, compact"):
        render(shop, 100, style="xml")


def test_many_keys_to_one_column_are_told_in_one_line() -> None:
    players = tuple(Column(f"player_{n}", "INTEGER") for n in range(1, 23))
    tables = (Table("match", players), Table("player", (Column("id", "INTEGER"),)))
    keys = tuple(ForeignKey("match", (c.name,), "player", ("id",)) for c in players)
    text = render(Schema("sqlite", tables, keys), 2_000).text
    joined = [line for line in text.splitlines() if line.startswith("--")]
    assert joined == ["-- match.player_1 = player.id; likewise player_2, player_3, …"]


def test_over_budget_the_join_and_the_linked_column_of_a_wide_table_stay() -> None:
    wide = tuple(Column(f"measure_{n}", "REAL") for n in range(80))
    orders = Table("orders", (Column("customer_id", "INTEGER"), *wide))
    customers = Table("customers", (Column("id", "INTEGER"), Column("name", "TEXT"), *wide))
    keys = (ForeignKey("orders", ("customer_id",), "customers", ("id",)),)
    links = [Link("name", "customers", "name"), Link("m", "orders", "measure_63", confidence=0.5)]
    text = render(Schema("sqlite", (orders, customers), keys), 120, links=links).text
    for part in ("measure_63", "name TEXT", "-- orders.customer_id = customers.id"):
        assert part in text


def test_a_note_is_shown_with_its_table_only() -> None:
    tables = tuple(Table(name, (Column("id", "INTEGER"),)) for name in ("a_2024", "b"))
    schema = Schema("sqlite", tables)
    notes = {"a_2024": "a_2024 stands for 9 tables"}
    assert "-- a_2024 stands for 9 tables" in render(schema, 200, notes=notes).text
    assert "stands for" not in render(schema, 16, keep=("b",), notes=notes).text

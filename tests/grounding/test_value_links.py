from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.engines.base import Database
from lynx_dspy.grounding.identifiers import fold
from lynx_dspy.grounding.linking import link
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.grounding.value_links import Named, other_spellings
from lynx_dspy.grounding.value_places import Place, ValueIndex
from lynx_dspy.grounding.values import WORDS_A_COLUMN, value_index
from lynx_dspy.values import Link

Make = Callable[[str], Database]

SHOP = """
CREATE TABLE city (id INTEGER, name TEXT, opened TEXT, closed INTEGER);
INSERT INTO city VALUES
    (1, 'São Paulo', '3-May-2019', 20190503),
    (2, 'New York', '21-Jun-2020', 20200101);
CREATE TABLE part (code TEXT, price TEXT, discount REAL, kind TEXT);
INSERT INTO part VALUES ('AB-12 34', '1,200', 0.05, 'Battery'), ('AB-12 35', '900', 0.1, 'Lens');
CREATE TABLE review (id INTEGER, body TEXT);
INSERT INTO review VALUES
    (1, 'The parcel came late and the box was soaked, but the refund policy is generous indeed.'),
    (2, 'I would recommend this shop to anybody who looks for batteries at a decent price tag.');
CREATE TABLE journal (title TEXT);
INSERT INTO journal VALUES
    ('IEEE Transactions on Pattern Analysis and Machine Intelligence, Second Series');
"""


@pytest.fixture
def shop(make: Make) -> Database:
    return make(SHOP)


def values(database: Database, question: str, spellings: bool = True) -> dict[str, Link]:
    links = link(question, "", abstract(database), database, spellings=spellings)
    return {f"{x.table}.{x.column}={x.value}": x for x in links if x.value}


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("orders from Sao Paolo", "city.name=São Paulo"),
        ("orders from New-York", "city.name=New York"),
        ("orders from ‘new york’", "city.name=New York"),
        ("New York’s orders", "city.name=New York"),
        ("stock of AB1234", "part.code=AB-12 34"),
        ("what is the price 1200 for", "part.price=1,200"),
        ("how many batteries are there", "part.kind=Battery"),
        ("cities opened on 2019/05/03", "city.opened=3-May-2019"),
        ("cities opened on 3 May 2019", "city.opened=3-May-2019"),
        ("cities opened after 1 July 2020", "city.opened=1-Jul-2020"),
        ("parts with a discount of 5%", "part.discount=0.05"),
        (
            "what is in 'IEEE transactions on pattern analysis and machine intelligence, "
            "second series'",
            "journal.title=IEEE Transactions on Pattern Analysis and Machine Intelligence, "
            "Second Series",
        ),
    ],
)
def test_another_way_of_writing_is_linked_to_the_stored_one(
    shop: Database, question: str, wanted: str
) -> None:
    found = values(shop, question)
    assert wanted in found
    assert found[wanted].confidence >= 0.6
    exact = values(shop, question, spellings=False)
    assert wanted not in exact or exact[wanted].confidence <= found[wanted].confidence


def test_compact_dates_of_a_number_column_are_told(shop: Database) -> None:
    found = values(shop, "cities with closed date 1 Jan 2020")
    assert found["city.closed=20200101"].evidence == "date"


def test_another_number_is_not_a_slip(shop: Database) -> None:
    assert not any("AB-12" in name for name in values(shop, "stock of AB1236"))


def test_a_word_of_the_schema_is_not_taken_for_a_slip(make: Make) -> None:
    database = make(
        "CREATE TABLE t (laptops INTEGER, kind TEXT); INSERT INTO t VALUES (1, 'laptap');"
    )
    assert values(database, "how many of the Laptops") == {}
    assert values(database, "how many of the 'laptop'")


def test_the_column_that_the_question_names_is_preferred(make: Make) -> None:
    script = "".join(
        f"CREATE TABLE t{i} ({name} TEXT); INSERT INTO t{i} VALUES ('volvo');"
        for i, name in enumerate(("maker", "model", "owner"))
    )
    found = values(make(script), "cars of the model volvo")
    assert found["t1.model=volvo"].confidence > found["t0.maker=volvo"].confidence


def test_words_of_long_texts_point_at_their_column(shop: Database) -> None:
    schema = abstract(shop)
    for question, least in (("which talk of the 'refund policy'?", 0.6), ("anything soaked?", 0.3)):
        links = link(question, "", schema, shop, spellings=True)
        (found,) = [x for x in links if x.column == "body"]
        assert (found.table, found.value, found.evidence) == ("review", "", "value")
        assert found.confidence >= least
    assert not [x for x in link("soaked", "", schema, shop) if x.column == "body"]


def test_columns_of_long_texts_are_bounded(make: Make) -> None:
    bodies = (" ".join(f"word{i * 60 + j}" for j in range(60)) for i in range(400))
    rows = ", ".join(f"('{body}')" for body in bodies)
    database = make(f"CREATE TABLE t (body TEXT); INSERT INTO t VALUES {rows};")
    index = value_index(database, abstract(database))
    (held,) = index.connection.execute("SELECT COUNT(*) FROM texts").fetchone()
    assert 0 < held <= WORDS_A_COLUMN
    assert index.connection.execute("SELECT COUNT(*) FROM places").fetchone() == (0,)


@given(st.lists(st.text(max_size=25), max_size=12), st.text(max_size=80))
def test_any_text_gives_links_to_stored_values_only(stored: list[str], text: str) -> None:
    index = ValueIndex()
    index.add(*(Place("t", "c", value) for value in stored))
    nothing = Named(frozenset(), frozenset())
    for found in other_spellings(text, index, nothing):
        assert found.value in stored
        assert 0 < found.confidence <= 1


@given(st.lists(st.text(min_size=1, max_size=25), min_size=1, max_size=12))
def test_a_quoted_value_is_always_linked(stored: list[str]) -> None:
    index = ValueIndex()
    index.add(*(Place("t", "c", value) for value in stored))
    for value in stored:
        assert not fold(value) or value in {p.value for p in index.alike(value)}

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.engines.base import Database
from lynx_dspy.grounding.identifiers import fold
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.grounding.values import VALUES_A_COLUMN, Place, ValueIndex, value_index

SCRIPT = """
CREATE TABLE city (id INTEGER, name TEXT, note TEXT);
INSERT INTO city VALUES (1, 'São Paulo', NULL), (2, 'New York', 'x'), (3, 'New Delhi', '');
CREATE TABLE person (name TEXT, code);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
INSERT INTO person SELECT 'Member ' || i, 'C' || (i % 4) FROM n;
"""


def test_values_are_found_without_case_and_accents(make: Callable[[str], Database]) -> None:
    database = make(SCRIPT)
    index = value_index(database, abstract(database))
    assert index.find("SAO  PAULO") == [Place("city", "name", "São Paulo")]
    assert index.find("c3") == [Place("person", "code", "C3")]
    assert index.find("berlin") == []


def test_a_word_of_a_longer_value_is_found_unless_too_common(
    make: Callable[[str], Database],
) -> None:
    database = make(SCRIPT)
    index = value_index(database, abstract(database))
    assert {p.value for p in index.holding("new")} == {"New York", "New Delhi"}
    assert index.holding("member") == []


def test_an_index_is_bounded_and_kept(make: Callable[[str], Database]) -> None:
    database = make(SCRIPT)
    index = value_index(database, abstract(database))
    assert sum(p.column == "name" for ps in index.exact.values() for p in ps) <= VALUES_A_COLUMN + 3
    assert value_index(database, abstract(database)) is index


@given(st.lists(st.text(max_size=20), max_size=20))
def test_every_value_is_found_by_its_own_text(values: list[str]) -> None:
    index = ValueIndex()
    for value in values:
        index.add(Place("t", "c", value))
    assert all(Place("t", "c", v) in index.find(v) for v in values if fold(v))

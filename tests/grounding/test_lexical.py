from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.grounding import lexical
from lynx_dspy.grounding.lexical import _candidates, _likeness, _vocabulary, by_name
from lynx_dspy.values import Column, Link, Schema, Table

words = st.from_regex(r"\A(trans|cust|ship|pay)?[a-f]{1,4}(er|ing|ment|s)?\Z")


@given(st.lists(words, min_size=1, max_size=12, unique=True), words)
def test_the_index_finds_every_stem_that_is_like_a_word(names: list[str], asked: str) -> None:
    schema = Schema("sqlite", (Table("t", tuple(Column(name, "TEXT") for name in names)),))
    vocabulary = _vocabulary(schema)
    stems = {asked, *lexical._SHORT_STEMS}
    for one in stems:
        like = {have for have in vocabulary.by_stem if _likeness(one, have)}
        assert like <= {*_candidates(one, vocabulary), one}


def test_a_common_word_counts_in_the_tables_that_a_rarer_one_speaks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = tuple(
        Table(f"{subject}s", (Column("status", "TEXT"), Column(f"{subject}_key", "TEXT")))
        for subject in ("order", "invoice", "visit", "parcel", "refund")
    )
    schema = Schema("sqlite", tables)
    question = "status of all parcels"

    def places(links: list[Link]) -> set[tuple[str, str]]:
        return {(link.table, link.column) for link in links if link.column == "status"}

    assert len(places(list(by_name(question, schema, "lexical", 1.0)))) == 5
    monkeypatch.setattr(lexical, "COMMON", 3)
    monkeypatch.setattr(lexical, "_TABLES_AHEAD", 1)
    assert places(list(by_name(question, schema, "lexical", 1.0))) == {("parcels", "status")}

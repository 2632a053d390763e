from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lynx_dspy.grounding import retrieval
from lynx_dspy.grounding.documents import Documents
from lynx_dspy.grounding.retrieval import RANK_CONSTANT, fused, search
from lynx_dspy.progress import listen

TEXTS = {
    "money.md": "Earnings are what is left after costs.",
    "people.md": "A buyer is anyone with an account.",
    "sky.md": "Rain is measured each morning.",
}


def test_meaning_finds_what_words_do_not(topics: Any) -> None:
    query = "client"
    assert Documents.from_texts(TEXTS, embedder=None).retrieve(query) == []
    best = Documents.from_texts(TEXTS, embedder=topics).retrieve(query, k=1)
    assert [p.source for p in best] == ["people.md"]
    assert best[0].score == pytest.approx(1, abs=0.01)


def test_passages_are_encoded_at_the_first_search_and_once(topics: Any) -> None:
    documents = Documents.from_texts(TEXTS, embedder=topics)
    assert topics.texts == []
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(documents.retrieve, ["profit"] * 8))
    assert sorted(topics.texts) == sorted([*TEXTS.values(), *["profit"] * 8])


def test_a_passage_in_two_rankings_beats_the_first_of_one() -> None:
    ranked = fused([[(0, 1), (0, 2)], [(0, 2)]])
    assert ranked == [
        ((0, 2), 1 / (RANK_CONSTANT + 2) + 1 / (RANK_CONSTANT + 1)),
        ((0, 1), 1 / (RANK_CONSTANT + 1)),
    ]


def test_of_very_many_passages_only_those_with_the_words_are_embedded(
    topics: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrieval, "AT_ONCE", 500)
    many = {f"{i}.md": f"Passage number {i}." for i in range(600)}
    documents = Documents.from_texts({**many, **TEXTS}, embedder=topics)
    said: list[str] = []
    with listen(lambda stage, text: said.append(text)):
        best = documents.retrieve("how is rain measured", k=1)
    assert [p.source for p in best] == ["sky.md"]
    assert len(topics.texts) < 100
    assert any("found by their words only; `lynx docs`" in line for line in said)

    assert documents.prepare().kind == "exact"
    before = len(topics.texts)
    assert documents.retrieve("client", k=1)[0].source == "people.md"
    assert len(topics.texts) == before + 1


def test_a_reranker_has_the_last_word(topics: Any) -> None:
    asked: list[str] = []

    def longest(question: str, passages: Sequence[str]) -> list[float]:
        asked.append(question)
        return [float(len(p)) for p in passages]

    documents = Documents.from_texts(TEXTS, embedder=topics, reranker=longest)
    found = documents.retrieve("client", k=3)
    assert asked == ["client"]
    assert [p.source for p in found] == ["money.md", "people.md", "sky.md"]


def test_each_way_finds_its_own(topics: Any) -> None:
    texts = {"words.md": "The rain ledger.", "meaning.md": "A buyer.", "code.md": "See ZX-9."}
    shelves = Documents.from_texts(texts, embedder=topics)._shelves

    def first(query: str, way: retrieval.Way) -> list[str]:
        return [p.source for p in search(shelves, query, 1, topics, "none", [way])]

    assert first("ledger", "keywords") == ["words.md"]
    assert first("purchases of a customer", "meaning") == ["meaning.md"]
    assert first("what is 'zx-9'", "exact") == ["code.md"]
    assert first("purchases of a customer", "exact") == []


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "BAAI/bge-m3", "somebody's own"])
def test_the_embedder_decides_who_orders_unless_the_documents_do(topics: Any, name: str) -> None:
    topics.name = name
    # Words and exact words put sky.md first; the cosine would put money.md there.
    texts = {"sky.md": "Profit, profit: ZX-9 and the rain.", "money.md": "Earnings."}
    orders = {
        order: [
            p.source
            for p in Documents.from_texts(texts, embedder=topics, reranker=order).retrieve(
                "profit ZX-9", 2
            )
        ]
        for order in ("cosine", "none", "default")
    }
    assert orders["cosine"] != orders["none"]
    assert orders["default"] == orders["none" if name == "all-MiniLM-L6-v2" else "cosine"]
    documents = Documents.from_texts(texts, embedder=topics)
    for asked in ("cosine", "none"):
        assert [p.source for p in documents.retrieve("profit ZX-9", 2, asked)] == orders[asked]

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lynx_dspy.grounding.documents import Documents
from lynx_dspy.grounding.retrieval import stored_vectors

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


def test_vectors_are_read_from_the_cache_next_time(topics: Any, cache_folder: Path) -> None:
    texts = list(TEXTS.values())
    made = stored_vectors(texts, topics)
    assert np.array_equal(stored_vectors(texts, topics), made)
    assert topics.texts == texts
    stored_vectors([*texts, "More."], topics)
    assert len(list(cache_folder.rglob("*.npy"))) == 2
    assert not list(cache_folder.rglob("*.tmp"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-5]),
        lambda path: path.write_bytes(b"PK\x03\x04 no array"),
        lambda path: np.save(path, np.full((3, 3), np.nan, dtype=np.float32)),
        lambda path: np.save(path, np.zeros((9, 3), dtype=np.float32)),
        lambda path: np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True),
    ],
)
def test_a_damaged_cache_is_made_anew(topics: Any, cache_folder: Path, damage: Any) -> None:
    texts = list(TEXTS.values())
    made = stored_vectors(texts, topics)
    (path,) = cache_folder.rglob("*.npy")
    damage(path)
    assert np.array_equal(stored_vectors(texts, topics), made)
    assert np.array_equal(np.load(path), made)


def test_a_cache_that_cannot_be_written_is_no_failure(topics: Any, cache_folder: Path) -> None:
    cache_folder.write_text("a file where the folder should be")
    assert stored_vectors(["One."], topics).shape == (1, 3)


def test_of_very_many_passages_only_those_with_the_words_are_embedded(topics: Any) -> None:
    many = {f"{i}.md": f"Passage number {i}." for i in range(3_000)}
    documents = Documents.from_texts({**many, **TEXTS}, embedder=topics)
    best = documents.retrieve("how is rain measured", k=1)
    assert [p.source for p in best] == ["sky.md"]
    assert len(topics.texts) < 100

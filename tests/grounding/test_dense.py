from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lynx_dspy.grounding import dense, store
from lynx_dspy.grounding.embedding import Vectors
from lynx_dspy.progress import listen

TEXTS = ["profit and earnings", "a buyer", "rain"]
WIDTH = 3


def cloud(n: int, width: int = 16, seed: int = 0) -> Vectors:
    vectors = np.random.default_rng(seed).normal(size=(n, width)).astype(np.float32)
    return np.ascontiguousarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def test_a_second_start_embeds_nothing(topics: Any, cache_folder: Path) -> None:
    made = dense.index_of(TEXTS, topics, WIDTH)
    assert topics.texts == sorted(TEXTS, key=len)
    again = dense.index_of(TEXTS, topics, WIDTH)
    assert len(topics.texts) == 3
    assert np.array_equal(again.vectors([0, 1, 2]), made.vectors([0, 1, 2]))
    assert not [f for f in (cache_folder / "documents" / "indexes").iterdir() if f.is_dir()]


def test_only_what_is_new_is_embedded(topics: Any) -> None:
    dense.index_of(TEXTS, topics, WIDTH)
    topics.texts.clear()
    changed = ["weather", *TEXTS[1:], "rain"]
    index = dense.index_of(changed, topics, WIDTH)
    assert topics.texts == ["weather"]
    assert np.array_equal(index.vectors([2]), index.vectors([3]))


def test_another_embedder_has_its_own_vectors(topics: Any) -> None:
    dense.index_of(TEXTS, topics, WIDTH)
    topics.name = "others"
    topics.texts.clear()
    dense.index_of(TEXTS, topics, WIDTH)
    assert len(topics.texts) == 3


def test_what_was_embedded_before_an_interruption_is_kept(
    topics: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dense, "BATCH", 2)

    class Fails(type(topics)):  # type: ignore[misc]
        def encode(self, texts: Sequence[str]) -> Vectors:
            if len(self.texts) >= 2:
                raise KeyboardInterrupt
            return super().encode(texts)

    with pytest.raises(KeyboardInterrupt):
        dense.index_of(TEXTS, Fails(), WIDTH)
    dense.index_of(TEXTS, topics, WIDTH)
    assert topics.texts == ["profit and earnings"]


def _zero_end(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9] + b"\0" * 9)


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        ("indexes/*.faiss", lambda path: path.write_bytes(b"")),
        ("indexes/*.faiss", lambda path: path.write_bytes(path.read_bytes()[:-5])),
        ("indexes/*.faiss", _zero_end),
        ("indexes/*.faiss", lambda path: path.unlink()),
        ("indexes/*.json", lambda path: path.write_text("{")),
        ("indexes/*.json", lambda path: path.write_text("[1]")),
        ("indexes/*.json", lambda path: path.write_text('{"kind": "exact"}')),
    ],
)
def test_a_damaged_index_is_made_anew_from_kept_vectors(
    topics: Any, pattern: str, damage: Callable[[Path], object]
) -> None:
    made = dense.index_of(TEXTS, topics, WIDTH)
    (path,) = store.folder().glob(pattern)
    damage(path)
    said: list[str] = []
    with listen(lambda stage, text: said.append(text)):
        again = dense.index_of(TEXTS, topics, WIDTH)
    assert np.array_equal(again.vectors([0, 1, 2]), made.vectors([0, 1, 2]))
    assert len(topics.texts) == 3
    assert len(said) == 1 and "damaged and is made anew" in said[0]
    assert dense.kept_index(TEXTS, topics, WIDTH) is not None


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"x" * 99])
def test_a_damaged_store_is_made_anew_with_a_word(topics: Any, content: bytes) -> None:
    dense.index_of(TEXTS, topics, WIDTH)
    (store.folder() / "store.sqlite").write_bytes(content)
    said: list[str] = []
    with listen(lambda stage, text: said.append(text)):
        dense.index_of([*TEXTS, "weather"], topics, WIDTH)
    assert len(topics.texts) == 7
    assert any("damaged" in line for line in said)
    assert dense.missing(TEXTS, topics, WIDTH) == 0


def test_a_vector_that_is_no_unit_vector_is_made_anew(topics: Any) -> None:
    bad = np.full(WIDTH, np.nan, dtype=np.float32)
    store.keep_vectors(topics.name, {dense.key("rain"): bad, dense.key("a buyer"): bad[:2]})
    assert dense.missing(TEXTS, topics, WIDTH) == 3


def test_a_cache_that_cannot_be_written_is_no_failure(topics: Any, cache_folder: Path) -> None:
    cache_folder.write_text("a file where the folder should be")
    index = dense.index_of(TEXTS, topics, WIDTH)
    assert index.nearest(topics.encode(["weather"]), 1) == [2]


def test_the_graph_finds_nearly_what_the_exact_search_finds() -> None:
    vectors, asked = cloud(1_500), cloud(20, seed=1)
    exact, graph = dense.build(vectors, "exact"), dense.build(vectors, "hnsw")
    hits = sum(
        len(set(exact.nearest(asked[i : i + 1], 10)) & set(graph.nearest(asked[i : i + 1], 10)))
        for i in range(20)
    )
    assert hits / 200 >= 0.95
    assert np.allclose(graph.vectors([5, 2]), vectors[[5, 2]])


def test_large_collections_get_a_graph_that_is_kept(
    topics: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dense, "EXACT_UP_TO", 2)
    assert dense.index_of(TEXTS, topics, WIDTH).kind == "hnsw"
    held = dense.kept_index(TEXTS, topics, WIDTH)
    assert held is not None and held.kind == "hnsw"
    assert held.nearest(topics.encode(["weather"]), 1) == [2]


def test_the_oldest_indexes_go_first(topics: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "_MOST_KEPT", 2)
    for text in ("a", "b", "c"):
        dense.index_of([text], topics, WIDTH)
    assert len(list((store.folder() / "indexes").iterdir())) == 4
    assert dense.kept_index(["c"], topics, WIDTH) is not None


def test_two_processes_share_one_cache(topics: Any) -> None:
    texts = [f"text {i} about {word}" for i in range(40) for word in TEXTS]
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool:
        found = pool.map(_embed, [(texts, type(topics))] * 4, chunksize=1)
    assert found == [len(texts)] * 4
    assert dense.missing(texts, topics, WIDTH) == 0


def _embed(job: tuple[list[str], type[Any]]) -> int:
    texts, embedder = job
    dense.index_of(texts, embedder(), WIDTH)
    return len(dense.embedded(texts, embedder(), WIDTH))

"""HybridRetrieve: rankings by words and by meaning fused, then re-ranked (paper, III-A1)."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from lynx_dspy.grounding import dense
from lynx_dspy.grounding.dense import DenseIndex
from lynx_dspy.grounding.embedding import Embedder, Vectors
from lynx_dspy.grounding.keywords import Keywords
from lynx_dspy.grounding.rerank import LastWord
from lynx_dspy.progress import report
from lynx_dspy.values import Passage

RANK_CONSTANT = 60
"""The constant of reciprocal rank fusion (Cormack et al., 2009)."""

AT_ONCE = 5_000
"""Passages that a question waits for: a core embeds 20 to 100 a second. Of a collection that lacks
more vectors only what shares words with the question is embedded, until `Documents.prepare`."""

Way = Literal["keywords", "exact", "meaning"]
WAYS: tuple[Way, ...] = ("keywords", "exact", "meaning")

_POOL = 4
"""Passages re-ranked for each one that is asked for."""

_FEWEST = 20

_Place = tuple[int, int]
"""A shelf and a passage on it, both by position."""


class Shelf:
    """Passages with their indexes, each made when it is first asked for; thread-safe."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = tuple(passages)
        self._keywords: Keywords | None = None
        self._dense: dict[str, DenseIndex | None] = {}
        self._lock = threading.RLock()

    def text(self, position: int) -> str:
        """What is searched of a passage: its headings and itself."""
        passage = self.passages[position]
        return f"{passage.heading}\n{passage.text}" if passage.heading else passage.text

    def keywords(self) -> Keywords:
        """The index by words."""
        with self._lock:
            if self._keywords is None:
                self._keywords = Keywords(self._texts())
            return self._keywords

    def dense(self, embedder: Embedder, width: int) -> DenseIndex | None:
        """The index by meaning; None as long as too many vectors are missing for a question."""
        with self._lock:
            if embedder.name not in self._dense:
                self._dense[embedder.name] = self._dense_or_none(embedder, width)
            return self._dense[embedder.name]

    def prepare(self, embedder: Embedder | None, width: int) -> DenseIndex | None:
        """Make all indexes now, however long it takes."""
        self.keywords()
        if embedder is None:
            return None
        with self._lock:
            held = self._dense.get(embedder.name)
            if held is None:
                held = dense.index_of(self._texts(), embedder, width)
                self._dense[embedder.name] = held
            return held

    def vectors(self, positions: Sequence[int], embedder: Embedder, width: int) -> Vectors:
        """The vectors of these passages, shape (len(positions), width)."""
        index = self.dense(embedder, width)
        if index is not None:
            return index.vectors(positions)
        return dense.embedded([self.text(i) for i in positions], embedder, width)

    def _texts(self) -> list[str]:
        return [self.text(i) for i in range(len(self.passages))]

    def _dense_or_none(self, embedder: Embedder, width: int) -> DenseIndex | None:
        texts = self._texts()
        if len(texts) <= AT_ONCE:
            return dense.index_of(texts, embedder, width)
        held = dense.kept_index(texts, embedder, width)
        if held is not None:
            return held
        absent = dense.missing(texts, embedder, width)
        if absent <= AT_ONCE:
            return dense.index_of(texts, embedder, width)
        report(
            "documents",
            f"{absent:,} of {len(texts):,} passages are not embedded yet and are found by their "
            "words only; `lynx docs` embeds them once",
        )
        return None


def search(
    shelves: Sequence[Shelf],
    query: str,
    k: int,
    embedder: Embedder | None,
    reranker: LastWord = "cosine",
    ways: Iterable[Way] = WAYS,
) -> list[Passage]:
    """The `k` passages of all shelves that fit `query` best, best first, each with its score.

    Without an embedder there is no cosine, and the fused ranks stay. `ways` is for comparisons.
    """
    pool = max(_FEWEST, _POOL * k)
    asked = embedder.encode([query]) if embedder is not None else None
    rankings: list[list[_Place]] = []
    for number, shelf in enumerate(shelves):
        for ranking in _rankings(shelf, query, pool, asked, embedder, set(ways)):
            rankings.append([(number, i) for i in ranking])
    ranked = fused(rankings)
    places = [place for place, _ in ranked[: pool * len(shelves)]]
    if callable(reranker):
        ranked = _ordered(places, reranker(query, [shelves[s].text(i) for s, i in places]))
    elif reranker == "cosine" and asked is not None and embedder is not None:
        ranked = _ordered(places, _cosines(shelves, places, asked, embedder))
    return [replace(shelves[s].passages[i], score=round(v, 4)) for (s, i), v in ranked[:k]]


def _ordered(places: Sequence[_Place], scores: Sequence[float]) -> list[tuple[_Place, float]]:
    pairs = [(place, float(score)) for place, score in zip(places, scores, strict=True)]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


def _rankings(
    shelf: Shelf,
    query: str,
    pool: int,
    asked: Vectors | None,
    embedder: Embedder | None,
    ways: set[Way],
) -> Iterable[list[int]]:
    if not shelf.passages:
        return
    if "keywords" in ways:
        yield shelf.keywords().by_keywords(query, pool)
    if "exact" in ways:
        yield shelf.keywords().by_exact_words(query, pool)
    if "meaning" in ways and asked is not None and embedder is not None:
        index = shelf.dense(embedder, asked.shape[1])
        if index is not None:
            yield index.nearest(asked, min(pool, len(shelf.passages)))


def fused(rankings: Iterable[Sequence[_Place]]) -> list[tuple[_Place, float]]:
    """Reciprocal rank fusion: (passage, score) pairs, best first.

    >>> fused([[(0, 7), (0, 8)], [(0, 8)]])[0][0]
    (0, 8)
    """
    scores: Counter[_Place] = Counter()
    for ranking in rankings:
        for rank, place in enumerate(ranking, 1):
            scores[place] += 1 / (RANK_CONSTANT + rank)  # type: ignore[assignment]
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def _cosines(
    shelves: Sequence[Shelf], places: Sequence[_Place], asked: Vectors, embedder: Embedder
) -> list[float]:
    """The cosine of each passage with the question."""
    wanted: dict[int, list[int]] = defaultdict(list)
    for shelf, i in places:
        wanted[shelf].append(i)
    found: dict[_Place, float] = {}
    for shelf, positions in wanted.items():
        vectors = shelves[shelf].vectors(positions, embedder, asked.shape[1])
        for i, cosine in zip(positions, vectors @ asked[0], strict=True):
            found[shelf, i] = float(cosine)
    return [found[place] for place in places]

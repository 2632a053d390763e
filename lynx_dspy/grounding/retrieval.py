"""The search index behind `Documents`: three rankings fused, then re-ranked (paper, III-A1)."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lynx_dspy.grounding.embedding import Embedder, Vectors
from lynx_dspy.grounding.identifiers import fold, stem, words
from lynx_dspy.grounding.lexical import STOP_WORDS
from lynx_dspy.lm.models import home
from lynx_dspy.values import Passage

RANK_CONSTANT = 60
"""The constant of reciprocal rank fusion (Cormack et al., 2009)."""

_POOL = 4
"""Passages re-ranked for each one that is asked for."""

_MOST_DENSE = 2_000
"""Passages (some 2 MB of text) up to which all are embedded: a core takes 20 to 100 a second."""

_EXACT = re.compile(
    r"""['"`“]([^'"`”]{2,60})['"`”]|\b(\w+_\w+|[A-Z]{2,}\w*|[a-z]+[A-Z]\w*|\w*\d\w*)\b"""
)


class Index:
    """Keyword and dense indexes over the same passages; thread-safe."""

    def __init__(self, chunks: Sequence[Passage]) -> None:
        import bm25s

        self._chunks = tuple(chunks)
        self._texts = [f"{p.heading}\n{p.text}" if p.heading else p.text for p in self._chunks]
        self._folded = [fold(text) for text in self._texts]
        self._known = frozenset(t for text in self._texts for t in _terms(text))
        self._bm25 = bm25s.BM25()
        corpus = [_terms(text) or ["_"] for text in self._texts]
        self._bm25.index(corpus, show_progress=False)
        self._vectors: dict[str, Vectors] = {}
        self._lock = threading.Lock()

    def search(self, query: str, k: int, embedder: Embedder | None) -> list[Passage]:
        """The `k` best passages for `query`, best first.

        Of very many passages only those that share words with the query are embedded.
        """
        pool = min(len(self._chunks), max(20, _POOL * k))
        rankings = [self._by_keywords(query, pool), self._by_exact_words(query, pool)]
        if embedder is None:
            ranked = _fused(rankings)
        else:
            asked = embedder.encode([query])
            if self._all_dense:
                rankings.append(self._by_meaning(asked, embedder, pool))
            ranked = self._reranked(_fused(rankings)[:pool], asked, embedder)
        return [replace(self._chunks[i], score=round(score, 4)) for i, score in ranked[:k]]

    @property
    def _all_dense(self) -> bool:
        return len(self._chunks) <= _MOST_DENSE

    def _by_keywords(self, query: str, pool: int) -> list[int]:
        terms = [term for term in _terms(query) if term in self._known]
        if not terms:
            return []
        found, scores = self._bm25.retrieve([terms], k=pool, show_progress=False)
        return [int(i) for i, score in zip(found[0], scores[0], strict=True) if score > 0]

    def _by_exact_words(self, query: str, pool: int) -> list[int]:
        """Passages that hold quoted words and identifiers of the query as they are written."""
        exact = {fold(a or b) for a, b in _EXACT.findall(query)}
        counts = Counter({i: sum(e in text for e in exact) for i, text in enumerate(self._folded)})
        return [i for i, count in counts.most_common(pool) if count]

    def _by_meaning(self, asked: Vectors, embedder: Embedder, pool: int) -> list[int]:
        import faiss

        vectors = self._dense(embedder)
        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(vectors)
        return [int(i) for i in index.search(asked, pool)[1][0] if i >= 0]

    def _reranked(
        self, fused: list[tuple[int, float]], asked: Vectors, embedder: Embedder
    ) -> list[tuple[int, float]]:
        """The fused passages by cosine: no mixture with the fused ranks found more of them."""
        ids = [i for i, _ in fused]
        if self._all_dense:
            vectors = self._dense(embedder)[ids]
        else:
            vectors = embedder.encode([self._texts[i] for i in ids])
        scored = [(i, float(v @ asked[0])) for i, v in zip(ids, vectors, strict=True)]
        return sorted(scored, key=lambda pair: (-pair[1], pair[0]))

    def _dense(self, embedder: Embedder) -> Vectors:
        with self._lock:
            if embedder.name not in self._vectors:
                self._vectors[embedder.name] = stored_vectors(self._texts, embedder)
            return self._vectors[embedder.name]


def _terms(text: str) -> list[str]:
    """Stems for BM25; an identifier counts whole and word by word."""
    terms = []
    for token in re.findall(r"\w+", text):
        parts = [part for part in words(token) if part not in STOP_WORDS]
        terms += [stem(part) for part in parts]
        if len(parts) > 1:
            terms.append(fold(token))
    return terms


def _fused(rankings: Iterable[Sequence[int]]) -> list[tuple[int, float]]:
    """Reciprocal rank fusion: (passage, score) pairs, best first."""
    scores: Counter[int] = Counter()
    for ranking in rankings:
        for rank, i in enumerate(ranking, 1):
            scores[i] += 1 / (RANK_CONSTANT + rank)  # type: ignore[assignment]
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def stored_vectors(texts: Sequence[str], embedder: Embedder) -> Vectors:
    """The vectors of `texts`, shape (len(texts), d), from the cache folder, else made and kept.

    The file's name holds a hash of the texts and of the embedder's name; a file that cannot be read
    or has another shape is made anew. Not being able to write is no failure.
    """
    digest = hashlib.sha256("\0".join([embedder.name, *texts]).encode(errors="replace")).hexdigest()
    path = home() / "vectors" / f"{digest[:32]}.npy"
    held = _read(path, len(texts))
    if held is None:
        held = embedder.encode(texts)
        _write(path, held)
    return held


def _read(path: Path, count: int) -> Vectors | None:
    try:
        with path.open("rb") as file:
            vectors: Vectors = np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    sound = vectors.ndim == 2 and len(vectors) == count and vectors.dtype == np.float32
    return vectors if sound and bool(np.isfinite(vectors).all()) else None


def _write(path: Path, vectors: Vectors) -> None:
    """Write so that another process never sees half a file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as part:
            np.save(part, vectors, allow_pickle=False)
        os.replace(part.name, path)
    except OSError:
        return

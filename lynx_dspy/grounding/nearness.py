"""Columns near in meaning to what the question calls by other names: the embedding part of Align.

Only phrases that names, notes and stored values leave open are embedded: with MiniLM a phrase costs
some 5 ms, and what is linked already needs no guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lynx_dspy.grounding.embedding import Embedder
from lynx_dspy.grounding.identifiers import words
from lynx_dspy.grounding.lexical import ASKING_WORDS, split
from lynx_dspy.grounding.recent import Recent
from lynx_dspy.values import Link, Schema

LEAST_COSINE = 0.5
"""Phrases less near than this say nothing."""

_TOP = 3
_Known = tuple[list[tuple[str, str]], np.ndarray]
_encoded: Recent[_Known] = Recent(size=8)


def near_elements(concepts: Sequence[str], schema: Schema, embedder: Embedder) -> Iterator[Link]:
    """Links of the phrases in each concept to the three tables or columns nearest in meaning."""
    phrases = list(dict.fromkeys(p for concept in concepts for p in _phrases(concept)))
    if not phrases or not schema.tables:
        return
    places, known = _encoded.get((embedder.name, schema), lambda: _encode(schema, embedder))
    cosines = embedder.encode(phrases) @ known.T
    for phrase, row in zip(phrases, cosines, strict=True):
        for i in np.argsort(-row)[:_TOP]:
            if row[i] >= LEAST_COSINE:
                table, column = places[i]
                yield Link(phrase, table, column, "", "embedding", round(float(row[i]), 2))


def _encode(schema: Schema, embedder: Embedder) -> _Known:
    places, texts = [], []
    for table in schema.tables:
        for name, about in [
            ("", table.description),
            *((c.name, c.description) for c in table.columns),
        ]:
            places.append((table.name, name))
            texts.append(" ".join([*words(name or table.name), about[:200]]).strip())
    return places, embedder.encode(texts)


def _phrases(concept: str) -> Iterator[str]:
    """Runs of one to three content words."""
    run: list[str] = []
    for word in split(concept):
        run = [*run, word.text] if word.content and word.folded not in ASKING_WORDS else []
        for size in range(1, min(3, len(run)) + 1):
            yield " ".join(run[-size:])

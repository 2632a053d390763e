"""Columns near in meaning to what the question calls by other names: the embedding part of Align.

Only phrases that names, notes and stored values leave open are embedded: with MiniLM a phrase costs
some 5 ms, and what is linked already needs no guess.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

from lynx_dspy.engines.identity import by_identity
from lynx_dspy.grounding import store
from lynx_dspy.grounding.embedding import Embedder, Vectors
from lynx_dspy.grounding.identifiers import words
from lynx_dspy.grounding.lexical import ASKING_WORDS, split
from lynx_dspy.progress import report
from lynx_dspy.values import Link, Schema

LEAST_COSINE = 0.5
"""Phrases less near than this say nothing."""

MOST_TEXTS = 10_000
"""Different texts embedded of one schema: its tables' first, then columns in their order."""

_KEPT_FROM = 500
"""So many texts take seconds to embed and are kept on disk."""

_TOP = 3
_Known = tuple[list[tuple[str, str]], Vectors]


def near_elements(concepts: Sequence[str], schema: Schema, embedder: Embedder) -> Iterator[Link]:
    """Links of the phrases in each concept to the three tables or columns nearest in meaning."""
    phrases = list(dict.fromkeys(p for concept in concepts for p in _phrases(concept)))
    if not phrases or not schema.tables:
        return
    made = _encoded(schema)
    if embedder.name not in made:
        made[embedder.name] = _encode(schema, embedder)
    places, known = made[embedder.name]
    cosines = embedder.encode(phrases) @ known.T
    for phrase, row in zip(phrases, cosines, strict=True):
        near = np.flatnonzero(row >= LEAST_COSINE)
        for i in near[np.argsort(-row[near], kind="stable")][:_TOP]:
            table, column = places[i]
            yield Link(phrase, table, column, "", "embedding", round(float(row[i]), 2))


@by_identity(8)
def _encoded(schema: Schema) -> dict[str, _Known]:
    """By the embedder's name: what was encoded of a schema."""
    return {}


def _encode(schema: Schema, embedder: Embedder) -> _Known:
    """The places that can be found, and their vectors; names that repeat are encoded once."""
    elements = [(t.name, "", t.description) for t in schema.tables]
    elements += [(t.name, c.name, c.description) for t in schema.tables for c in t.columns]
    places: list[tuple[str, str]] = []
    rows: list[int] = []
    texts: dict[str, int] = {}
    for table, column, about in elements:
        text = " ".join([*words(column or table), about[:200]]).strip()
        if text in texts or len(texts) < MOST_TEXTS:
            places.append((table, column))
            rows.append(texts.setdefault(text, len(texts)))
    return places, _vectors(list(texts), embedder)[rows]


def _vectors(texts: Sequence[str], embedder: Embedder) -> Vectors:
    """An array of shape (len(texts), d); of many texts only those that are new are encoded."""
    if len(texts) < _KEPT_FROM:
        return embedder.encode(texts)
    keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
    held = store.vectors(embedder.name, keys, embedder.encode([]).shape[1])
    new = {key: text for key, text in zip(keys, texts, strict=True) if key not in held}
    if new:
        report("generator.align", f"embedding {len(new):,} names of the schema")
        made = dict(zip(new, embedder.encode(list(new.values())), strict=True))
        store.keep_vectors(embedder.name, made)
        held |= made
    return np.stack([held[key] for key in keys])


def _phrases(concept: str) -> Iterator[str]:
    """Runs of one to three content words."""
    run: list[str] = []
    for word in split(concept):
        run = [*run, word.text] if word.content and word.folded not in ASKING_WORDS else []
        for size in range(1, min(3, len(run)) + 1):
            yield " ".join(run[-size:])

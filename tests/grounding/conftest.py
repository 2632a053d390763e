"""Databases and embedders that the tests of this room share."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from lynx_dspy.engines import connect
from lynx_dspy.engines.base import Database
from lynx_dspy.grounding.embedding import Vectors

Make = Callable[[str], Database]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A factory: SQL script -> SQLite database that holds what the script makes."""
    with ExitStack() as opened:
        numbers = count()

        def build(script: str) -> Database:
            path = tmp_path / f"{next(numbers)}.sqlite"
            connection = sqlite3.connect(path)
            connection.executescript(script)
            connection.close()
            return opened.enter_context(connect(path))

        yield build


class TopicEmbedder:
    """Meaning as counts of a few topics' words, so that synonyms are near without any weights."""

    name = "topics"
    topics = (
        ("profit", "earnings", "income"),
        ("client", "customer", "buyer"),
        ("rain", "weather"),
    )

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        counts = [[sum(w in t.lower() for w in topic) for topic in self.topics] for t in texts]
        vectors = np.array(counts, dtype=np.float32).reshape(len(texts), len(self.topics)) + 1e-3
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.ascontiguousarray(vectors / lengths, dtype=np.float32)


@pytest.fixture
def topics() -> TopicEmbedder:
    return TopicEmbedder()


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or writes the user's cache."""
    monkeypatch.setenv("LYNX_HOME", str(tmp_path / "home"))
    return tmp_path / "home"

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lynx_dspy.grounding.embedding import Vectors
from lynx_dspy.grounding.lookup import ranked, support
from lynx_dspy.values import Passage


class Letters:
    """Embeds a text by which letters it holds."""

    name = "letters"

    def encode(self, texts: Sequence[str]) -> Vectors:
        rows = np.array([[t.casefold().count(c) + 1e-6 for c in "abcdefgh"] for t in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_support_is_between_none_and_full() -> None:
    question = "How many churned customers are there?"
    assert support(question, [], None) == 0
    assert support(question, ["", " "], Letters()) == 0
    assert support(question, ["A customer has churned ..."], None) == 1
    assert support(question, ["Customers buy"], None) == 0.5
    assert support("?", ["anything"], None) == 0


def test_an_embedder_counts_for_half() -> None:
    near = support("aaa customers", ["aaa"], Letters())
    far = support("aaa customers", ["hhh"], Letters())
    assert 0 <= far < near <= 1
    assert near > support("aaa customers", ["aaa"], None)


def test_ranking_keeps_every_distinct_passage() -> None:
    passages = [Passage("hhh", "1"), Passage("abab", "2"), Passage("hhh", "3")]
    assert [p.text for p in ranked("ab", passages, Letters())] == ["abab", "hhh"]
    assert {p.text for p in ranked("abab", passages, None)} == {"abab", "hhh"}
    assert next(iter(ranked("abab", passages, None))).text == "abab"
    assert ranked("x", [], None) == ()

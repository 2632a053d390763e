"""Where terms are looked up that a question leaves unexplained (paper, III-A1, just-in-time)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, Self

from lynx_dspy.grounding.embedding import Embedder
from lynx_dspy.grounding.identifiers import stem, words
from lynx_dspy.grounding.lexical import ASKING_WORDS, STOP_WORDS
from lynx_dspy.values import Passage


class Source(Protocol):
    """A place that explains terms. Text of an `external` source is quarantined.

    Nothing is asked of an external source but terms that stand in the question.
    """

    @property
    def name(self) -> str: ...

    @property
    def external(self) -> bool: ...

    def look_up(self, term: str) -> Sequence[Passage]:
        """What explains `term`, best first; empty if nothing does, or if it cannot be reached."""
        ...

    def terms_in(self, text: str) -> Sequence[str]:
        """The terms in `text` that it explains, where that can be told at once; else empty."""
        ...


class ByReference:
    """Copies are the same object: optimizers deep-copy programs and their inputs."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self


def stems(text: str) -> tuple[str, ...]:
    """The stems of the words of `text` that carry meaning, in order.

    >>> stems("the Churned customers of 2024")
    ('churn', 'customer', '2024')
    """
    return tuple(stem(word) for word in words(text) if word not in STOP_WORDS)


def mentions(term: str, text: str) -> bool:
    """Whether every word of `term` stands in `text`, in some form.

    >>> mentions("churned customers", "A customer churns ..."), mentions("", "A customer")
    (True, False)
    """
    wanted = set(stems(term))
    return bool(wanted) and wanted <= set(stems(text))


def support(question: str, evidence: Sequence[str], embedder: Embedder | None) -> float:
    """How far `evidence` (texts, best first) speaks of what `question` asks, from 0 to 1.

    The mean of the largest cosine of the first three with the question, and of the share of its
    words that they hold; without an embedder the share alone. The mean told questions that lacked
    their definition from others better than either (`bench/jit.py`).
    """
    texts = [text for text in evidence if text.strip()]
    asked = set(stems(question)) - ASKING_WORDS
    if not texts or not asked:
        return 0.0
    held = {word for text in texts for word in stems(text)}
    share = len(asked & held) / len(asked)
    if embedder is None:
        return share
    vectors = embedder.encode([question, *texts[:3]])
    return (float((vectors[1:] @ vectors[0]).max()) + share) / 2


def ranked(
    question: str, passages: Iterable[Passage], embedder: Embedder | None
) -> tuple[Passage, ...]:
    """The distinct passages by nearness to the question: cosine, else BM25; all are kept."""
    distinct = list({p.text: p for p in passages}.values())
    if len(distinct) < 2:
        return tuple(distinct)
    if embedder is None:
        from lynx_dspy.grounding.documents import Documents

        found = Documents(distinct, embedder=None).retrieve(question, len(distinct))
        first = {p.text for p in found}
        by_text = {p.text: p for p in distinct}
        return tuple(
            [by_text[p.text] for p in found] + [p for p in distinct if p.text not in first]
        )
    vectors = embedder.encode([question, *(f"{p.heading}\n{p.text}" for p in distinct)])
    cosines = vectors[1:] @ vectors[0]
    order = sorted(range(len(distinct)), key=lambda i: (-float(cosines[i]), i))
    return tuple(distinct[i] for i in order)

"""Acquisition of conceptual knowledge: HybridRetrieve and just-in-time expansion (III-A1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import dspy

from lynx_dspy import config
from lynx_dspy.grounding.chunking import passages as chunks
from lynx_dspy.grounding.documents import Documents
from lynx_dspy.grounding.embedding import Embedder
from lynx_dspy.grounding.lookup import Source, mentions, ranked, support
from lynx_dspy.grounding.quarantine import quoted
from lynx_dspy.modules import plain
from lynx_dspy.modules.stage import Stage
from lynx_dspy.progress import report
from lynx_dspy.signatures import FindUnknownTerms
from lynx_dspy.tokens import estimate
from lynx_dspy.values import Passage

MOST_TERMS = 5
"""Terms that are looked up for a question, at most."""


class UnknownTerms(Stage):
    """`generator.unknown_terms`."""

    stage_name = "generator.unknown_terms"
    asks = FindUnknownTerms
    stand_in = staticmethod(plain.no_terms)
    says = "looking for terms that need an explanation"


@dataclass(frozen=True, slots=True)
class Concepts:
    """Conceptual knowledge for one question: what the user said, and what documents say.

    `external` is text of outside sources, quarantined and within its budget; it is no part of
    `text`, so that no stage sees it by accident.
    """

    evidence: str = ""
    passages: tuple[Passage, ...] = ()
    external: str = ""

    @property
    def text(self) -> str:
        """The passages with their headings, for a prompt."""
        return "\n\n".join(f"[{p.heading or p.source}] {p.text}" for p in self.passages)


class AcquireConcepts:
    """HybridRetrieve, then just-in-time expansion of the terms that it leaves unexplained."""

    def __call__(
        self,
        question: str,
        evidence: str,
        documents: Documents | None,
        unknown_terms: dspy.Module,
        sources: Sequence[Source] = (),
    ) -> Concepts:
        """Without documents and sources nothing is asked and nothing is retrieved."""
        if documents is None and not sources:
            return Concepts(evidence)
        settings = config.current()
        embedder = documents.embedder if documents is not None else None

        # HybridRetrieve, with the definitions that the user's own sources hold
        found = [*defined(sources, question)]
        if documents is not None:
            report("generator.retrieve", "retrieving documents")
            asked = f"{question} {evidence}".strip()
            found += documents.retrieve(asked, settings.top_k, settings.rerank)

        # Just-in-time expansion
        known = [text for text in (evidence, *(p.text for p in found)) if text]
        looked_up, external = [], ""
        if thin(question, known, embedder):
            terms = unknown_terms(evidence="\n\n".join(known), question=question).terms or []
            expansion = expand(terms[:MOST_TERMS], question, documents, sources)
            looked_up = expansion.own
            best = ranked(question, expansion.external, embedder)
            external = quoted(best, settings.external_tokens)
        kept = within_budget([*looked_up, *found], settings.document_tokens)
        return Concepts(evidence, kept, external)


class NoConcepts(AcquireConcepts):
    """For ablation: neither evidence nor documents nor sources are looked at."""

    def __call__(
        self,
        question: str,
        evidence: str,
        documents: Documents | None,
        unknown_terms: dspy.Module,
        sources: Sequence[Source] = (),
    ) -> Concepts:
        return Concepts()


@dataclass(frozen=True, slots=True)
class Expansion:
    """What looking up gave: passages of the user's own, and passages from outside."""

    own: list[Passage]
    external: list[Passage]


def thin(question: str, known: Sequence[str], embedder: Embedder | None) -> bool:
    """Whether what is known speaks so little of the question that terms are asked for.

    Nothing is computed where the stage is not asked anyway.
    """
    settings = config.current()
    if UnknownTerms.stage_name not in settings.stages:
        return False
    return settings.jit_below >= 1 or support(question, known, embedder) < settings.jit_below


def defined(sources: Sequence[Source], question: str) -> Iterator[Passage]:
    """What the user's own sources say of terms that stand in the question; no model is asked."""
    for source in sources:
        if not source.external:
            for term in source.terms_in(question):
                yield from source.look_up(term)


def expand(
    terms: Sequence[str],
    question: str,
    documents: Documents | None,
    sources: Sequence[Source],
) -> Expansion:
    """Each term from the first place that explains it: the user's own sources, the documents, then
    sources outside in their order.

    Outside sources are asked only for terms that stand in the question: a document must not make
    the model send anything else to a third party.
    """
    expansion = Expansion([], [])
    for term in map(str, terms):
        report("generator.expand", f"looking up {term!r}")
        own = next(filter(None, _own(term, documents, sources)), ())
        expansion.own.extend(own)
        if not own and mentions(term, question):
            found = (source.look_up(term) for source in sources if source.external)
            for page in next(filter(None, found), ()):
                expansion.external.extend(_cut(page))
    return expansion


def _own(
    term: str, documents: Documents | None, sources: Sequence[Source]
) -> Iterator[Sequence[Passage]]:
    for source in sources:
        if not source.external:
            yield source.look_up(term)
    if documents is not None:
        found = documents.retrieve(term, 1, config.current().rerank)
        yield [p for p in found if mentions(term, f"{p.heading} {p.text}")]


def _cut(page: Passage) -> Iterator[Passage]:
    for chunk in chunks(page.text, page.source):
        yield Passage(chunk.text, page.source, page.heading or chunk.heading)


def within_budget(passages: Sequence[Passage], budget: int) -> tuple[Passage, ...]:
    """The first distinct passages that fit in `budget` tokens together; the first always does."""
    kept: dict[str, Passage] = {}
    spent = 0
    for passage in passages:
        if passage.text in kept:
            continue
        spent += estimate(passage.text)
        if kept and spent > budget:
            break
        kept[passage.text] = passage
    return tuple(kept.values())

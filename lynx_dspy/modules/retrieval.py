"""Acquisition of conceptual knowledge: HybridRetrieve and just-in-time expansion (III-A1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import dspy

from lynx_dspy import config
from lynx_dspy.grounding.documents import Documents
from lynx_dspy.modules import plain
from lynx_dspy.modules.stage import Stage
from lynx_dspy.progress import report
from lynx_dspy.signatures import FindUnknownTerms
from lynx_dspy.tokens import estimate
from lynx_dspy.values import Passage


class UnknownTerms(Stage):
    """`generator.unknown_terms`."""

    stage_name = "generator.unknown_terms"
    asks = FindUnknownTerms
    stand_in = staticmethod(plain.no_terms)
    says = "looking for terms that need an explanation"


@dataclass(frozen=True, slots=True)
class Concepts:
    """Conceptual knowledge for one question: what the user said, and what documents say."""

    evidence: str = ""
    passages: tuple[Passage, ...] = ()

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
    ) -> Concepts:
        """Without documents nothing is asked and nothing is retrieved."""
        if documents is None:
            return Concepts(evidence)
        top_k = config.current().top_k
        report("generator.retrieve", "retrieving documents")
        found = documents.retrieve(f"{question} {evidence}".strip(), top_k)
        known = "\n\n".join([evidence, *(p.text for p in found)]).strip()
        terms = unknown_terms(evidence=known, question=question).terms or []
        for term in terms[:5]:
            found = [*found, *documents.retrieve(str(term), 1)]
        return Concepts(evidence, within_budget(found, config.current().document_tokens))


class NoConcepts(AcquireConcepts):
    """For ablation: neither evidence nor documents are looked at."""

    def __call__(
        self,
        question: str,
        evidence: str,
        documents: Documents | None,
        unknown_terms: dspy.Module,
    ) -> Concepts:
        return Concepts()


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

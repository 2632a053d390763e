"""Reviser: repair by failure class with only that class's knowledge (paper, III-C)."""

from __future__ import annotations

from collections.abc import Callable

import dspy

from lynx_dspy import config
from lynx_dspy.grounding.dialects import syntax_for
from lynx_dspy.modules import plain
from lynx_dspy.modules.critic import Criticism, failure_text
from lynx_dspy.modules.generator import Draft
from lynx_dspy.modules.stage import Stage
from lynx_dspy.signatures import RepairProgram
from lynx_dspy.values import Attempt, FailureClass


class Repair(Stage):
    """`reviser.repair`."""

    stage_name = "reviser.repair"
    asks = RepairProgram
    stand_in = staticmethod(plain.program_unchanged)
    says = "repairing"


class Reviser(dspy.Module):
    """Ask for a local edit of the failing program."""

    def __init__(self) -> None:
        super().__init__()
        self.repair = Repair()

    def forward(
        self, question: str, draft: Draft, attempt: Attempt, criticism: Criticism
    ) -> dspy.Prediction:
        """A prediction with `code` and `analysis`; `code` is empty when no reply could be read.

        After a repair that changed nothing the model is asked at a temperature: at 0 it would give
        the same program again.
        """
        failure_class = attempt.failure_class or FailureClass.SEMANTIC
        return self.repair(
            dialect=draft.schema.dialect,
            knowledge=KNOWLEDGE_FOR[failure_class](draft, attempt),
            question=question,
            program=attempt.code,
            failure=failure_text(attempt),
            suggestion=criticism.suggestion,
            config=_decoding(criticism),
        )


def _decoding(criticism: Criticism) -> dict[str, float]:
    stagnant = criticism.memory.stagnant
    temperature = config.current().retry_temperature
    return {"temperature": temperature, "rollout_id": stagnant} if stagnant else {}


def _syntax(draft: Draft, attempt: Attempt) -> str:
    need = f"{attempt.code} {failure_text(attempt)}"
    return syntax_for(draft.schema.dialect, need, config.current().syntax_tokens)


def _structure(draft: Draft, attempt: Attempt) -> str:
    return draft.knowledge.structural


def _semantics(draft: Draft, attempt: Attempt) -> str:
    return "\n".join(t for t in (draft.knowledge.semantic, draft.grounding) if t)


KNOWLEDGE_FOR: dict[FailureClass, Callable[[Draft, Attempt], str]] = {
    FailureClass.SYNTAX: _syntax,
    FailureClass.SCHEMA: _structure,
    FailureClass.SEMANTIC: _semantics,
}
"""What the repair of each class may see: K*_syn, K*_struct, or K*_sem with the grounding."""

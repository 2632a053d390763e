"""Reviser: repair by failure class with only that class's knowledge (paper, III-C)."""

from __future__ import annotations

from collections.abc import Callable

import dspy

from lynx_dspy import config
from lynx_dspy.grounding.dialects import syntax_for
from lynx_dspy.modules import plain
from lynx_dspy.modules.critic import Criticism, bounded
from lynx_dspy.modules.delta import failing, failure_text
from lynx_dspy.modules.edits import Edit, localised, touched
from lynx_dspy.modules.generator import Draft
from lynx_dspy.modules.patterns import PatternStore
from lynx_dspy.modules.stage import Stage
from lynx_dspy.signatures import RepairProgram
from lynx_dspy.values import Attempt, FailureClass

_FAILURE_TOKENS = 300


class Repair(Stage):
    """`reviser.repair`."""

    stage_name = "reviser.repair"
    asks = RepairProgram
    stand_in = staticmethod(plain.program_unchanged)
    says = "repairing"


class Reviser(dspy.Module):
    """Ask for a local edit of the failing program, and see that it is one."""

    def __init__(self) -> None:
        super().__init__()
        self.repair = Repair()

    def forward(
        self, question: str, draft: Draft, attempt: Attempt, criticism: Criticism
    ) -> dspy.Prediction:
        """A prediction with `code`, `analysis` and `reverted` (clauses that were put back).

        `code` is empty when no reply could be read. A reply that leaves the failing part alone is
        refused once, with the reason. Where edits stopped helping any rewrite is taken.
        """
        reply = self.asked(question, draft, attempt, criticism)
        if criticism.strategy or not config.current().local_edits:
            return reply
        edit = self.local(reply, draft, attempt)
        if edit.refusal:
            reply = self.asked(question, draft, attempt, criticism, edit.refusal)
            again = self.local(reply, draft, attempt)
            edit = Edit(reply.code) if again.refusal else again
        reply.code, reply.reverted = edit.code, edit.reverted
        return reply

    def asked(
        self,
        question: str,
        draft: Draft,
        attempt: Attempt,
        criticism: Criticism,
        refusal: str = "",
    ) -> dspy.Prediction:
        """The model's repair; `refusal` is what was wrong with its last one.

        After a repair that changed nothing the model is asked at a temperature: at 0 it would give
        the same program again.
        """
        refused = f"Your last edit was refused: {refusal}." if refusal else ""
        return self.repair(
            dialect=draft.schema.dialect,
            knowledge=knowledge_for(draft, attempt),
            question=question,
            program=bounded(attempt.code, config.current().program_tokens),
            failure=failing_part(attempt, draft.schema.dialect),
            suggestion="\n".join(t for t in (criticism.suggestion, refused) if t),
            config=_decoding(criticism, refusal),
        )

    def local(self, reply: dspy.Prediction, draft: Draft, attempt: Attempt) -> Edit:
        """The reply with what it changed apart from the failure put back."""
        allowed = touched(attempt, draft.schema)
        return localised(attempt.code, reply.code, allowed, draft.schema)


def _decoding(criticism: Criticism, refusal: str) -> dict[str, float]:
    rollout = criticism.memory.stagnant + (1 if refusal else 0)
    temperature = config.current().retry_temperature
    return {"temperature": temperature, "rollout_id": rollout} if rollout else {}


def failing_part(attempt: Attempt, dialect: str) -> str:
    """What is wrong, the part of the program that it is about, and the names that could be meant.

    >>> from lynx_dspy.values import Finding, Outcome, Status
    >>> found = Finding(FailureClass.SCHEMA, "no column nme", "nme", ("name",))
    >>> failed = Outcome(Status.ERROR, error="no such column: nme")
    >>> attempt = Attempt(0, "SELECT nme FROM t", failed, findings=(found,))
    >>> attempt = attempt.with_(failure_class=FailureClass.SCHEMA)
    >>> print(failing_part(attempt, "sqlite"))
    no such column: nme
    no column nme
    Failing part, line 1, SELECT: nme
    Could be meant: name
    """
    part = failing(attempt, dialect)
    lines = [failure_text(attempt)]
    if part.item:
        lines.append(f"Failing part, line {part.line}, {part.clause}: {part.item}")
    elif part.clause:
        lines.append(f"Failing part: {part.clause}")
    if part.candidates:
        lines.append(f"Could be meant: {', '.join(part.candidates)}")
    return bounded("\n".join(lines), _FAILURE_TOKENS)


def knowledge_for(draft: Draft, attempt: Attempt) -> str:
    """The share of the failure's class, and the fixes that worked on this database before."""
    share = KNOWLEDGE_FOR[attempt.failure_class or FailureClass.SEMANTIC](draft, attempt)
    path = config.current().fix_patterns
    known = PatternStore(path).recall(draft.schema, attempt) if path else ""
    return "\n".join(t for t in (share, known) if t)


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

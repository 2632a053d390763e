"""Verifier: rubber-duck check of a program that runs (paper, III-C).

The program is explained by a stage that does not see the question; another compares the explanation
with the request.
"""

from __future__ import annotations

from dataclasses import dataclass

import dspy

from lynx_dspy import config
from lynx_dspy.modules import plain
from lynx_dspy.modules.generator import Draft
from lynx_dspy.modules.stage import Stage
from lynx_dspy.signatures import CompareExplanation, ExplainProgram
from lynx_dspy.tokens import clip
from lynx_dspy.values import Attempt, Outcome


class Explain(Stage):
    """`verifier.explain`."""

    stage_name = "verifier.explain"
    asks = ExplainProgram
    stand_in = staticmethod(plain.no_explanation)
    says = "explaining the program without seeing the question"


class Compare(Stage):
    """`verifier.compare`."""

    stage_name = "verifier.compare"
    asks = CompareExplanation
    stand_in = staticmethod(plain.no_verdict)
    says = "comparing the explanation with the question"
    needs = ("explanation",)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`consistent` is None when nobody judged."""

    consistent: bool | None
    explanation: str = ""
    mismatch: str = ""


class Verifier(dspy.Module):
    """Explain, then compare."""

    def __init__(self) -> None:
        super().__init__()
        self.explain = Explain()
        self.compare = Compare()

    def forward(self, question: str, draft: Draft, attempt: Attempt) -> Verdict:
        told = self.explain(
            structure=draft.knowledge.structural,
            program=attempt.code,
            preview=preview(attempt.outcome),
        )
        reply = self.compare(explanation=told.explanation, intent=draft.intent, question=question)
        return Verdict(reply.consistent, told.explanation, reply.mismatch or "")


def preview(outcome: Outcome) -> str:
    """Column names and first rows as clipped text; cells are data for the model, never advice."""
    rows = outcome.rows[: config.current().preview_rows]
    lines = [" | ".join(outcome.columns), *(" | ".join(_cell(v) for v in row) for row in rows)]
    return clip("\n".join([*lines, f"({outcome.row_count} rows)"]), 200)


def _cell(value: object) -> str:
    text = "NULL" if value is None else str(value).replace("\n", " ")
    return text if len(text) <= 40 else text[:39] + "…"

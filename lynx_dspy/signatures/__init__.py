"""What each stage asks a model: one signature a stage, no control flow.

A signature's docstring is the seed prompt that optimizers rewrite. Input fields stand in the order
stable text first, volatile text last, so that a model's prefix cache can be used.
"""

from lynx_dspy.signatures.critic import DiagnoseDelta, ReflectHistory
from lynx_dspy.signatures.generator import (
    AlignConcepts,
    DistillKnowledge,
    FindUnknownTerms,
    FormulateProgram,
    GroundIntent,
    UnderstandIntent,
)
from lynx_dspy.signatures.reviser import CompareExplanation, ExplainProgram, RepairProgram

__all__ = [
    "AlignConcepts",
    "CompareExplanation",
    "DiagnoseDelta",
    "DistillKnowledge",
    "ExplainProgram",
    "FindUnknownTerms",
    "FormulateProgram",
    "GroundIntent",
    "ReflectHistory",
    "RepairProgram",
    "UnderstandIntent",
]

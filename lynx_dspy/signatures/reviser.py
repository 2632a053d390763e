"""What the Reviser and its rubber-duck verifier ask (paper, III-C)."""

from __future__ import annotations

import dspy


class RepairProgram(dspy.Signature):
    """Correct the failing part of the query and leave everything else as it is. Use only names of
    the knowledge. Return the whole corrected query in the given dialect."""

    dialect: str = dspy.InputField(desc="SQL dialect")
    knowledge: str = dspy.InputField(desc="what is known for this class of failure")
    question: str = dspy.InputField(desc="what the query must answer")
    program: str = dspy.InputField(desc="the failing query")
    failure: str = dspy.InputField(desc="what is wrong with it")
    suggestion: str = dspy.InputField(desc="advice from comparing the attempts")
    analysis: str = dspy.OutputField(desc="one sentence on what was wrong")
    code: str = dspy.OutputField(desc="the corrected query")


class ExplainProgram(dspy.Signature):
    """Say in plain words what the query computes: which rows it keeps, how it groups and
    aggregates, how it orders and limits, and what each output column means. Describe what is
    written, not what may have been meant."""

    structure: str = dspy.InputField(desc="the tables and columns that the query uses")
    program: str = dspy.InputField(desc="the query")
    preview: str = dspy.InputField(desc="first rows of its result")
    explanation: str = dspy.OutputField(desc="at most 4 sentences")


class CompareExplanation(dspy.Signature):
    """Decide whether a query that does what the explanation says answers the question: same
    outputs, filters, grouping, order and limit. Name the first difference if it does not."""

    explanation: str = dspy.InputField(desc="what the query computes")
    intent: str = dspy.InputField(desc="what is asked, in parts")
    question: str = dspy.InputField()
    consistent: bool = dspy.OutputField(desc="true if the explanation answers the question")
    mismatch: str = dspy.OutputField(desc="the first difference, or nothing")

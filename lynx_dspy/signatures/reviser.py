"""What the Reviser and its rubber-duck verifier ask (paper, III-C)."""

from __future__ import annotations

import dspy


class RepairProgram(dspy.Signature):
    """Correct the failing part of the query and leave every other clause exactly as it is: changes
    elsewhere are undone. Use only names of the knowledge. Return the whole corrected query in the
    given dialect."""

    dialect: str = dspy.InputField(desc="SQL dialect")
    knowledge: str = dspy.InputField(desc="what is known for this class of failure")
    question: str = dspy.InputField(desc="what the query must answer")
    program: str = dspy.InputField(desc="the failing query")
    failure: str = dspy.InputField(desc="what is wrong with it, and where")
    suggestion: str = dspy.InputField(desc="advice from comparing the attempts")
    analysis: str = dspy.OutputField(desc="one sentence on what was wrong")
    code: str = dspy.OutputField(desc="the corrected query")


class ExplainProgram(dspy.Signature):
    """Say in plain words what the query computes, clause by clause: filters, grouping, aggregates,
    order, limit, output columns, grain (what one row stands for). Write "none" for a clause that it
    lacks. Describe what is written, not what may have been meant."""

    structure: str = dspy.InputField(desc="the tables and columns that the query uses")
    program: str = dspy.InputField(desc="the query")
    preview: str = dspy.InputField(desc="first rows of its result, and what is odd about them")
    explanation: str = dspy.OutputField(desc="one short line a clause, at most 7")


class CompareExplanation(dspy.Signature):
    """Decide whether a query that does what the explanation says answers the question. Judge each
    item of the checklist: satisfied, violated or unclear, with a quote from the explanation or the
    question. Call an item violated only if the quote shows it; different words for the same thing
    are no violation."""

    intent: str = dspy.InputField(desc="what is asked, in parts")
    question: str = dspy.InputField()
    checklist: str = dspy.InputField(desc="what the question asks for")
    result: str = dspy.InputField(desc="columns and rows of the result")
    explanation: str = dspy.InputField(desc="what the query computes")
    items: list[str] = dspy.OutputField(desc='item number, its state, a quote: 2 violated: "..."')
    consistent: bool = dspy.OutputField(desc="true if no item is violated")
    mismatch: str = dspy.OutputField(desc="the first difference, or nothing")

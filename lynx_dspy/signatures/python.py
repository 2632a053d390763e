"""What is asked where programs are Python over DataFrames; the other stages ask as for queries."""

from __future__ import annotations

from typing import Annotated

import dspy

from lynx_dspy.lm.languages import PYTHON, Language

Program = Annotated[str, Language(PYTHON)]


class FormulatePython(dspy.Signature):
    """Write one Python program that answers the question. Each table is a pandas DataFrame of its
    own name, already loaded: read and write no files. Use only the tables and columns of the
    grounding, with exactly these names. Import what you use. Assign the answer to `result`: a
    DataFrame with just the columns that the question asks for, a Series, or one value."""

    dialect: str = dspy.InputField(desc="library")
    grounding: str = dspy.InputField(desc="tables, columns, joins and values to use")
    syntax: str = dspy.InputField(desc="notes on pandas and NumPy")
    intent: str = dspy.InputField(desc="what is asked, in parts")
    question: str = dspy.InputField()
    analysis: str = dspy.OutputField(desc="one sentence on how the program answers the question")
    code: Program = dspy.OutputField(desc="the program")


class RepairPython(dspy.Signature):
    """Correct the failing step of the Python program and leave every other step exactly as it is.
    Use only names of the knowledge. The tables are DataFrames of their own names, already loaded;
    the answer must be assigned to `result`. Return the whole corrected program."""

    dialect: str = dspy.InputField(desc="library")
    knowledge: str = dspy.InputField(desc="what is known for this class of failure")
    question: str = dspy.InputField(desc="what the program must answer")
    program: str = dspy.InputField(desc="the failing program")
    failure: str = dspy.InputField(desc="what is wrong with it, and where")
    suggestion: str = dspy.InputField(desc="advice from comparing the attempts")
    analysis: str = dspy.OutputField(desc="one sentence on what was wrong")
    code: Program = dspy.OutputField(desc="the corrected program")


class ExplainPython(dspy.Signature):
    """Say in plain words what the Python program computes, step by step: filters, joins, grouping,
    aggregates, windows, order, limit, columns of `result`, grain (what one row stands for). Write
    "none" for what it lacks. Describe what is written, not what may have been meant."""

    structure: str = dspy.InputField(desc="the tables and columns that the program uses")
    program: str = dspy.InputField(desc="the program")
    preview: str = dspy.InputField(desc="first rows of its result, and what is odd about them")
    explanation: str = dspy.OutputField(desc="one short line a step, at most 7")

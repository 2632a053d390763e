"""Where a wrong answer was lost, by class."""

from __future__ import annotations

import re

import dspy

from lynx_dspy.values import Schema, Status

_NAME = re.compile(r"no such column: \"?(?:\w+\.)?(\w+)|column \"?(?:\w+\.)?(\w+)", re.IGNORECASE)


def loss_class(answer: dspy.Prediction, once_right: bool, schema: Schema) -> str:
    """The class of a wrong answer: what stands between it and a right one."""
    outcome = answer.outcome
    if once_right:
        return "the loop left a right program"
    if outcome.status is Status.NO_PROGRAM:
        return "parse: no program in the reply"
    if outcome.ran:
        return "logic: empty result" if outcome.status is Status.EMPTY else "logic: wrong rows"
    error = outcome.error.casefold()
    if "no such function" in error or "wrong number of arguments" in error:
        return "dialect: unknown function"
    if "syntax" in error or "incomplete input" in error or "unrecognized token" in error:
        return "dialect or parse: syntax error"
    if "no such table" in error:
        return "unknown name: table"
    if found := _NAME.search(error):
        name = found.group(1) or found.group(2)
        known = any(t.column(name) for t in schema.tables)
        return "column out of scope" if known else "unknown name: column"
    return f"other: {outcome.status}"

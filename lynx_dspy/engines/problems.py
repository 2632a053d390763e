"""What can be wrong with a program, each with the place in its tree that it is about."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sqlglot import exp

from lynx_dspy.engines.names import Frame
from lynx_dspy.values import FailureClass, Finding


class Kind(StrEnum):
    """What is wrong; the second group runs all the same."""

    SYNTAX = "syntax"
    STATEMENT = "statement"
    TABLE = "table"
    ALIAS = "alias"
    COLUMN = "column"
    AMBIGUOUS = "ambiguous"
    QUOTED = "quoted"
    SPELLED = "spelled"
    FIELD = "field"
    SCOPE = "scope"
    GROUPING = "grouping"
    FUNCTION = "function"
    CONSTRUCT = "construct"
    AGGREGATE = "aggregate"
    ENGINE = "engine"

    SPELLING = "spelling"
    NULL = "null"
    CASE = "case"
    VALUE = "value"
    TYPE = "type"
    NUMBER = "number"
    PRODUCT = "product"
    UNGROUPED = "ungrouped"


CERTAIN = frozenset({Kind.SPELLING, Kind.NULL, Kind.CASE})
"""Mild kinds that have one sensible outcome all the same, so that mending them is safe."""


CLASSES = {
    Kind.SYNTAX: FailureClass.SYNTAX,
    Kind.STATEMENT: FailureClass.SYNTAX,
    Kind.FUNCTION: FailureClass.SYNTAX,
    Kind.CONSTRUCT: FailureClass.SYNTAX,
    Kind.AGGREGATE: FailureClass.SYNTAX,
    Kind.TABLE: FailureClass.SCHEMA,
    Kind.ALIAS: FailureClass.SCHEMA,
    Kind.COLUMN: FailureClass.SCHEMA,
    Kind.AMBIGUOUS: FailureClass.SCHEMA,
    Kind.QUOTED: FailureClass.SCHEMA,
    Kind.SPELLED: FailureClass.SCHEMA,
    Kind.FIELD: FailureClass.SCHEMA,
    Kind.SCOPE: FailureClass.SCHEMA,
    Kind.GROUPING: FailureClass.SYNTAX,
}


@dataclass(frozen=True, eq=False)
class Problem:
    """A finding with the place that it is about; `start` is its first character without a node."""

    kind: Kind
    finding: Finding
    node: exp.Expr | None = None
    frame: Frame | None = None
    start: int | None = None

    @property
    def is_error(self) -> bool:
        """True if the program cannot run or does not mean what it says."""
        return self.finding.failure_class is not FailureClass.SEMANTIC


def problem(
    kind: Kind,
    message: str,
    name: str = "",
    candidates: tuple[str, ...] = (),
    node: exp.Expr | None = None,
    frame: Frame | None = None,
) -> Problem:
    found = CLASSES.get(kind, FailureClass.SEMANTIC)
    return Problem(kind, Finding(found, message, name, candidates), node, frame)

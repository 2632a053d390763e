"""Static check: what can be known of a program, and mended in it, before it runs (III-C)."""

from __future__ import annotations

from dataclasses import dataclass

from lynx_dspy.engines.mend import mend
from lynx_dspy.engines.static import check
from lynx_dspy.values import Finding, Schema


@dataclass(frozen=True, slots=True)
class Checked:
    """A program after the check: possibly mended, with what is still held against it.

    `changes` say what was mended and `before` what was held against the program as it came; both
    are empty for a program that was left alone.
    """

    code: str
    findings: tuple[Finding, ...] = ()
    changes: tuple[str, ...] = ()
    before: tuple[Finding, ...] = ()


_LONGEST = 12_000
"""Characters; a model that ran on wrote more, and the engine finds the first error of it faster."""


class Checker:
    """Mend what has exactly one outcome, then report the rest. Asks no model."""

    def __call__(self, code: str, schema: Schema) -> Checked:
        if len(code) > _LONGEST:
            return Checked(code)
        mended = mend(code, schema)
        before = check(code, schema) if mended.changes else ()
        return Checked(mended.code, check(mended.code, schema), mended.changes, before)


class NoChecker(Checker):
    """For ablation: the engine's own errors are all that is known."""

    def __call__(self, code: str, schema: Schema) -> Checked:
        return Checked(code)

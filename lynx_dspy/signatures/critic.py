"""What the Critic asks: to compress the failure history, and to advise from a delta (III-B)."""

from __future__ import annotations

import dspy


class ReflectHistory(dspy.Signature):
    """Compress the failed attempts into lessons: what was tried, why it failed, what must not be
    tried again. Keep names and error texts exact."""

    history: str = dspy.InputField(desc="failed attempts, oldest first")
    summary: str = dspy.OutputField(desc="at most 4 short lines")


class DiagnoseDelta(dspy.Signature):
    """Compare two successive attempts and advise the next edit: one concrete change, with the exact
    names of tables, columns and values. If a strategy is given, say how to carry it out in this
    query; a rewording of the same query will fail again."""

    summary: str = dspy.InputField(desc="lessons from earlier attempts")
    previous: str = dspy.InputField(desc="previous attempt and its outcome")
    current: str = dspy.InputField(desc="current attempt and its outcome")
    delta: str = dspy.InputField(desc="what changed between them")
    strategy: str = dspy.InputField(desc="what must be done differently now")
    suggestion: str = dspy.OutputField(desc="Previous fix: Worked or Failed. Then one change.")

"""Numbers that judge: pure functions of results, by the benchmarks' own rules.

`comparison` and `frames` decide when results are equal; `linking`, `feedback` and `intervals` are
imported where they are used.
"""

from lynx_dspy.metrics.execution_accuracy import RULES, Rule, any_gold, execution_accuracy
from lynx_dspy.metrics.soft_f1 import soft_f1, soft_f1_cells
from lynx_dspy.metrics.ves import r_ves, ves

__all__ = [
    "RULES",
    "Rule",
    "any_gold",
    "execution_accuracy",
    "r_ves",
    "soft_f1",
    "soft_f1_cells",
    "ves",
]

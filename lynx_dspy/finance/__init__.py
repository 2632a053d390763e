"""Formulaic alphas: operators on panels of stocks, formulas over them, and what goes with them.

The operators and alphas are those of Z. Kakushadze, "101 Formulaic Alphas" (2015), which the LYNX
paper's finance case computes (V-A, VII-E). `docs/how-to/finance.md` is the way in. Names are loaded
when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lynx_dspy.finance.across import indneutralize, rank, scale, signedpower
    from lynx_dspy.finance.alphas import alpha, formulas
    from lynx_dspy.finance.compare import Comparison, compare_factors
    from lynx_dspy.finance.evaluation import evaluate
    from lynx_dspy.finance.formula import FormulaError, parse
    from lynx_dspy.finance.knowledge import documents, glossary
    from lynx_dspy.finance.panel import Panel
    from lynx_dspy.finance.picture import write_picture
    from lynx_dspy.finance.sample import sample_frames, write_sample
    from lynx_dspy.finance.windows import (
        correlation,
        covariance,
        decay_linear,
        delay,
        delta,
        product,
        stddev,
        ts_argmax,
        ts_argmin,
        ts_max,
        ts_min,
        ts_rank,
        ts_sum,
    )

__all__ = [
    "Comparison",
    "FormulaError",
    "Panel",
    "alpha",
    "compare_factors",
    "correlation",
    "covariance",
    "decay_linear",
    "delay",
    "delta",
    "documents",
    "evaluate",
    "formulas",
    "glossary",
    "indneutralize",
    "parse",
    "product",
    "rank",
    "sample_frames",
    "scale",
    "signedpower",
    "stddev",
    "ts_argmax",
    "ts_argmin",
    "ts_max",
    "ts_min",
    "ts_rank",
    "ts_sum",
    "write_picture",
    "write_sample",
]

_HOMES = {
    "across": ("indneutralize", "rank", "scale", "signedpower"),
    "alphas": ("alpha", "formulas"),
    "compare": ("Comparison", "compare_factors"),
    "evaluation": ("evaluate",),
    "formula": ("FormulaError", "parse"),
    "knowledge": ("documents", "glossary"),
    "panel": ("Panel",),
    "picture": ("write_picture",),
    "sample": ("sample_frames", "write_sample"),
    "windows": (
        *("correlation", "covariance", "decay_linear", "delay", "delta", "product", "stddev"),
        *("ts_argmax", "ts_argmin", "ts_max", "ts_min", "ts_rank", "ts_sum"),
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'lynx_dspy.finance' has no attribute {name!r}")
    value = getattr(import_module(f"lynx_dspy.finance.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value

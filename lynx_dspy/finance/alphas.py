"""The 101 alphas as data: their published formulas, by number (Kakushadze, 2015, appendix A)."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path

import pandas as pd

from lynx_dspy.errors import BadInput
from lynx_dspy.finance.evaluation import evaluate
from lynx_dspy.finance.panel import Panel


@cache
def formulas() -> dict[int, str]:
    """The formula of each alpha as it is published.

    >>> formulas()[101]
    '((close - open) / ((high - low) + .001))'
    """
    record = json.loads((files("lynx_dspy.finance") / "alphas.json").read_text("utf-8"))
    return {int(number): str(formula) for number, formula in record["formulas"].items()}


def formula(number: int) -> str:
    """The formula of one alpha. Raises `BadInput` for a number that is none.

    >>> formula(6)
    '(-1 * correlation(open, volume, 10))'
    """
    if number not in formulas():
        raise BadInput(f"There is no alpha {number!r}. Known: 1 to {max(formulas())}.")
    return formulas()[number]


def alpha(number: int, panel: Panel | pd.DataFrame | str | Path) -> pd.DataFrame:
    """One alpha over a panel, as `evaluate` gives it."""
    return evaluate(formula(number), panel)

"""Judging a result by an example's gold CSV files (Spider 2.0, and users' own result files)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lynx_dspy.metrics import any_gold
from lynx_dspy.metrics.frames import read_csv

if TYPE_CHECKING:
    import dspy
    import pandas as pd


def matches_gold_csv(example: dspy.Example, pred: pd.DataFrame | None, rule: str = "") -> bool:
    """Whether a result, read from CSV, matches any gold CSV of `example` by `rule`, else its own.

    None is a program that failed. Raises `BadInput` if the example has no gold CSV.
    """
    paths = [Path(path) for path in example.gold_csv]
    return any_gold(
        [read_csv(path) for path in paths],
        pred,
        rule or example.rule,
        condition_cols=example.condition_cols,
        ignore_order=example.ignore_order,
        suffixed=[path.stem for path in paths] != [example.id],
    )

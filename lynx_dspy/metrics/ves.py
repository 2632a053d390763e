"""Valid efficiency score: how fast a right program is, beside the gold one. Two measures.

`r_ves` is the reward-based score of BIRD Mini-Dev (`evaluation_ves.py`), which the LYNX paper's
Table IV reports; `ves` is the plain ratio that the paper defines in VII-D. Both are 0 for a wrong
program. `r_ves` moves in five steps between 0.5 and 1.118 and forgives noise; `ves` is unbounded
and follows it. Gold against itself gives about 0.9 by `r_ves` and 1.0 by `ves`, since half of its
ratios fall just below 1. Times are seconds, taken in turns on one machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, pstdev

from lynx_dspy.errors import BadInput

_REWARDS = ((2.0, 1.25), (1.0, 1.0), (0.5, 0.75), (0.25, 0.5), (0.0, 0.25))
"""Least time ratio gold/pred and the reward for it."""

_TICK = 1e-9
"""Shortest time told apart, in seconds: two runs too short for the clock count as equal."""


def r_ves(correct: bool, gold_seconds: Sequence[float], pred_seconds: Sequence[float]) -> float:
    """Reward-based VES of one question: the square root of its reward, in [0, 1.118].

    `gold_seconds[i]` and `pred_seconds[i]` are the times of the i-th pair of runs; a wrong program
    needs none. Ratios three standard deviations or more from their mean are dropped; where all are
    equal none is (there the official script drops all of them and divides by zero). The mean over
    questions is R-VES. Raises `BadInput` for times that do not pair.

    >>> r_ves(True, [0.2, 0.2], [0.1, 0.1]) == 1.25 ** 0.5
    True
    """
    if not correct:
        return 0.0
    ratios = _ratios(gold_seconds, pred_seconds)
    mean, spread = fmean(ratios), 3 * pstdev(ratios)
    kept = [ratio for ratio in ratios if mean - spread < ratio < mean + spread] or ratios
    return math.sqrt(reward(fmean(kept)))


def reward(ratio: float) -> float:
    """The reward for a time ratio gold/pred.

    >>> [reward(ratio) for ratio in (3, 1, 0.7, 0.3, 0.1)]
    [1.25, 1.0, 0.75, 0.5, 0.25]
    """
    return next(value for least, value in _REWARDS if ratio >= least)


def ves(correct: bool, gold_seconds: Sequence[float], pred_seconds: Sequence[float]) -> float:
    """VES of one question (VII-D): time of gold over time of the prediction, at least 0.

    The time of a program is the mean of its runs. The mean over questions is VES. Raises as
    `r_ves`.

    >>> ves(True, [0.2, 0.4], [0.1, 0.2])
    2.0
    """
    if not correct:
        return 0.0
    _check(gold_seconds, pred_seconds)
    return max(fmean(gold_seconds), _TICK) / max(fmean(pred_seconds), _TICK)


def _ratios(gold_seconds: Sequence[float], pred_seconds: Sequence[float]) -> list[float]:
    _check(gold_seconds, pred_seconds)
    pairs = zip(gold_seconds, pred_seconds, strict=True)
    return [max(gold, _TICK) / max(pred, _TICK) for gold, pred in pairs]


def _check(gold_seconds: Sequence[float], pred_seconds: Sequence[float]) -> None:
    if not gold_seconds or len(gold_seconds) != len(pred_seconds):
        raise BadInput(
            f"Got {len(gold_seconds)} times of the gold and {len(pred_seconds)} of the prediction; "
            "efficiency needs one pair or more."
        )

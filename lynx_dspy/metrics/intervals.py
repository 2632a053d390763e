"""How sure a score is: intervals for one score, and tests and intervals for a difference.

Scores of single questions are fractions. Wilson's interval is for proportions (EX), the bootstrap
for any mean (Soft-F1, R-VES). Two programs on the same questions are compared by pairs: McNemar's
exact test for right/wrong, the paired bootstrap for any score. Seeds make every figure repeatable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

from lynx_dspy.errors import BadInput

_CHUNK_CELLS = 2_000_000
"""Resampled values held at a time: 16 MB."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with the ends of its interval and the number of questions behind it."""

    value: float
    low: float
    high: float
    n: int


def wilson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval for a proportion; right also for few questions and near 0 and 1.

    Raises `BadInput` unless 0 <= successes <= n and n > 0.

    >>> found = wilson(8, 10)
    >>> round(found.low, 3), round(found.high, 3)
    (0.49, 0.943)
    """
    if not 0 <= successes <= n or n == 0:
        raise BadInput(
            f"Got {successes} successes of {n} questions; needs 0 <= successes <= n, n > 0."
        )
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = successes / n
    scale = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return Interval(share, low, high, n)


def bootstrap(
    values: Sequence[float], confidence: float = 0.95, resamples: int = 2_000, seed: int = 0
) -> Interval:
    """Percentile bootstrap interval of the mean of one score a question.

    Raises `BadInput` without values.

    >>> bootstrap([0.5, 0.5, 0.5])
    Interval(value=0.5, low=0.5, high=0.5, n=3)
    """
    import numpy as np

    if not len(values):
        raise BadInput("Got no scores; an interval needs one or more.")
    scores = np.asarray(values, dtype=float)
    n = len(scores)
    generator = np.random.default_rng(seed)
    step = max(1, _CHUNK_CELLS // n)
    sizes = [min(step, resamples - done) for done in range(0, resamples, step)]
    means = np.concatenate(
        [scores[generator.integers(0, n, size=(size, n))].mean(axis=1) for size in sizes]
    )
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(fmean(values), float(low), float(high), n)


def paired_bootstrap(
    first: Sequence[float],
    second: Sequence[float],
    confidence: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Interval:
    """Bootstrap interval of mean(second) - mean(first) over the same questions, in one order.

    An interval that leaves out 0 is a difference at this confidence. Raises `BadInput` for scores
    that do not pair.

    >>> paired_bootstrap([0.0, 0.0], [1.0, 1.0]).low
    1.0
    """
    return bootstrap(_differences(first, second), confidence, resamples, seed)


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> float:
    """Two-sided p-value of McNemar's exact test on right/wrong over the same questions.

    Only questions that exactly one of the two has right count. Raises as `paired_bootstrap`.

    >>> mcnemar([True] * 6, [False] * 6)
    0.03125
    """
    differences = _differences(first, second)
    gained, lost = differences.count(1), differences.count(-1)
    n = gained + lost
    tail = sum(math.comb(n, k) for k in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / (1 << n))


def _differences(first: Sequence[float], second: Sequence[float]) -> list[float]:
    if len(first) != len(second) or not len(first):
        raise BadInput(
            f"Got {len(first)} and {len(second)} scores; both must be of the same questions, at "
            "least one."
        )
    return [b - a for a, b in zip(first, second, strict=True)]

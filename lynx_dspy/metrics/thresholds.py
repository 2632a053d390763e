"""The verifier's threshold, chosen by what its judgements are worth on known questions (III-C)."""

from __future__ import annotations

from collections.abc import Iterable

STEP = 0.5
"""Doubts are multiples of it: half a violated item."""

NEVER = 1_000.0
"""A threshold that no doubt reaches."""


def best_threshold(judged: Iterable[tuple[float, bool]], cost: float = 1.0) -> float:
    """The `config.verify_threshold` that rejects most wrong answers for the right ones it rejects.

    `judged` are pairs of an attempt's doubt and whether it was right. Each wrong answer that is
    rejected gains 1, each right one costs `cost`. Of equal thresholds the one that rejects less is
    taken; where every threshold loses it is `NEVER`.

    >>> best_threshold([(0.0, True), (0.5, True), (1.0, False), (1.5, False)])
    1.0
    """
    known = list(judged)

    def gain(threshold: float) -> float:
        rejected = [right for doubt, right in known if doubt >= threshold]
        return sum(-cost if right else 1.0 for right in rejected)

    options = sorted({doubt for doubt, _ in known if doubt >= STEP})
    return max((NEVER, *reversed(options)), key=gain)

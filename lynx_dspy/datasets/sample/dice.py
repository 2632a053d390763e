"""Chance that falls alike on every machine and every Python version."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Draws built on `Random.random` alone, the one method whose sequence Python promises to keep.

    Each table throws its own dice, named by `stream`: a change to one leaves the others alone.

    >>> Dice(7, "doc").between(1, 6) == Dice(7, "doc").between(1, 6)
    True
    """

    def __init__(self, seed: int, stream: str) -> None:
        self._random = random.Random(f"{seed}:{stream}").random

    def below(self, bound: int) -> int:
        """A whole number in [0, bound)."""
        return int(self._random() * bound)

    def between(self, low: int, high: int) -> int:
        """A whole number in [low, high]."""
        return low + self.below(high - low + 1)

    def chance(self, percent: float) -> bool:
        """True in `percent` of 100 throws."""
        return self._random() * 100 < percent

    def pick(self, options: Sequence[T]) -> T:
        """One of `options`, each as likely as the next."""
        return options[self.below(len(options))]

    def weighted(self, options: Sequence[tuple[T, int]]) -> T:
        """One of `options`, given as (value, weight) pairs."""
        left = self.below(sum(weight for _, weight in options))
        for value, weight in options:
            left -= weight
            if left < 0:
                return value
        raise ValueError("Weights must be positive.")

"""Pareto fronts of candidates: quality up, tokens a question down.

Quality is EX, with Soft-F1 between equals, so that the best by any `Objective` is on the front.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lynx_dspy.optimize.search import Standing, Worth


def dominates(one: Worth, other: Worth) -> bool:
    """Whether `one` is as good and as cheap as `other`, and better in one of the two.

    >>> good, dear = Worth(0.5, ex=0.5, thrift=-100), Worth(0.5, ex=0.5, thrift=-300)
    >>> dominates(good, dear), dominates(dear, good), dominates(good, good)
    (True, False, False)
    """
    quality = (one.ex, one.soft_f1), (other.ex, other.soft_f1)
    no_worse = quality[0] >= quality[1] and one.thrift >= other.thrift
    return no_worse and (quality[0] > quality[1] or one.thrift > other.thrift)


def layers(worths: Sequence[Worth]) -> list[int]:
    """The front that each belongs to: 0 is beaten by none, 1 by some of 0, and so on.

    >>> layers([Worth(0.2, ex=0.2, thrift=-9), Worth(0.5, ex=0.5, thrift=-5)])
    [1, 0]
    """
    found = [0] * len(worths)
    left, layer = set(range(len(worths))), 0
    while left:
        beaten = {i for i in left if any(dominates(worths[j], worths[i]) for j in left)}
        for place in left - beaten:
            found[place] = layer
        left, layer = beaten, layer + 1
    return found


def goes_on(worth: Worth, others: Sequence[Worth], keep: float) -> bool:
    """Whether a trial is asked more questions, given those that were asked as many before it.

    It is, unless some of them dominate it and it is not among the better `keep` of all: fronts
    first, then worth. This is successive halving without waiting for others to catch up
    (asynchronous; Schmucker et al., "Multi-objective Asynchronous Successive Halving", 2021).
    """
    *before, own = layers([*others, worth])
    ahead = sum(
        layer < own or (layer == own and other > worth)
        for layer, other in zip(before, others, strict=True)
    )
    return own == 0 or ahead < max(1, math.ceil(keep * (len(others) + 1)))


def front(standings: Sequence[Standing]) -> list[Standing]:
    """Those that were asked most questions and are dominated by none, cheapest first."""
    most = max((one.asked for one in standings if one.worth.n), default=0)
    whole = [one for one in standings if one.asked == most and one.worth.n]
    on_it = (
        one for one, layer in zip(whole, layers([s.worth for s in whole]), strict=True) if not layer
    )
    return sorted(on_it, key=lambda s: -s.worth.thrift)

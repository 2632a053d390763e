"""Operators of the alphas across the stocks of one date, and from cell to cell.

Panels are float arrays of shape (dates, stocks). Across stocks, cells that are NaN are left out and
stay NaN. From cell to cell the rules are those of IEEE floats (1/0 is an infinity, 0/0 is NaN),
with two choices where the paper is silent: a comparison with NaN gives NaN, not false, and a
condition that is NaN chooses neither side.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from lynx_dspy.errors import BadInput
from lynx_dspy.finance.windows import Wide, wide

Classes = NDArray[np.int64]
"""The group of each cell, of shape (dates, stocks); -1 where a stock has none."""


def rank(x: ArrayLike) -> Wide:
    """The rank among the stocks of the date as a share in (0, 1]; ties share their mean rank.

    The divisor is the number of stocks that have a value; infinities rank as least and greatest.

    >>> rank([[10.0, 30.0, 20.0, 20.0, float("nan")]]).tolist()
    [[0.25, 1.0, 0.625, 0.625, nan]]
    """
    ranks: Wide = pd.DataFrame(wide(x)).rank(axis=1, method="average", pct=True).to_numpy()
    return ranks


def scale(x: ArrayLike, a: float = 1.0) -> Wide:
    """`x` times what makes the absolute values of each date add up to `a`.

    Infinities are left out and give NaN, as does a date on which everything is 0.

    >>> scale([[1.0, -3.0, float("nan")]]).tolist()
    [[0.25, -0.75, nan]]
    """
    cells = _finite(x)
    with np.errstate(all="ignore"):
        totals = np.nansum(np.abs(cells), axis=1, keepdims=True)
        scaled: Wide = a * cells / totals
    return scaled


def indneutralize(x: ArrayLike, groups: NDArray[np.integer]) -> Wide:
    """`x` less the mean of the stocks of the same group on that date.

    `groups` has the shape of `x`, or one entry a stock; a stock without a group (-1) gets NaN, as
    do infinities, which are left out of the means. Equal values in a group give exactly 0.
    Raises `BadInput` where the shapes differ.

    >>> indneutralize([[1.0, 3.0, 5.0]], np.array([0, 0, 1])).tolist()
    [[-1.0, 1.0, 0.0]]
    """
    cells = _finite(x)
    if groups.shape not in (cells.shape, cells.shape[1:]):
        raise BadInput(f"Groups of shape {groups.shape} do not fit a panel of {cells.shape}.")
    codes = np.broadcast_to(groups, cells.shape)
    there = np.isfinite(cells) & (codes >= 0)
    kinds = int(codes.max(initial=-1)) + 1
    cell_group = (np.arange(len(cells))[:, None] * kinds + codes)[there]
    values = cells[there]
    least = np.full(len(cells) * kinds, np.inf)
    np.minimum.at(least, cell_group, values)  # means of distances from it: equal values give 0
    above = values - least[cell_group]
    counts = np.bincount(cell_group, minlength=len(least))
    sums = np.bincount(cell_group, weights=above, minlength=len(least))
    out = np.full(cells.shape, np.nan)
    out[there] = above - sums[cell_group] / counts[cell_group]
    return out


def signedpower(x: ArrayLike, a: ArrayLike) -> Wide:
    """sign(x) * |x| ** a. The paper writes x ** a, which has no value for x < 0 and most `a`.

    >>> signedpower([[-3.0, 2.0]], 2.0).tolist()
    [[-9.0, 4.0]]
    """
    cells = np.asarray(x, dtype=np.float64)
    with np.errstate(all="ignore"):
        powers: Wide = np.sign(cells) * np.abs(cells) ** np.asarray(a, dtype=np.float64)
    return powers


def greater_of(x: ArrayLike, y: ArrayLike) -> Wide:
    """The greater of both, cell by cell (`max` of two panels); NaN if either is.

    >>> greater_of([[1.0, 5.0]], [[2.0, 3.0]]).tolist()
    [[2.0, 5.0]]
    """
    return np.maximum(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))


def less_of(x: ArrayLike, y: ArrayLike) -> Wide:
    """The less of both, cell by cell (`min` of two panels); NaN if either is.

    >>> less_of([[1.0, 5.0]], [[2.0, 3.0]]).tolist()
    [[1.0, 3.0]]
    """
    return np.minimum(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))


def log(x: ArrayLike) -> Wide:
    """The natural logarithm: minus infinity at 0, NaN below.

    >>> log([[1.0, 0.0, -1.0]]).tolist()
    [[0.0, -inf, nan]]
    """
    with np.errstate(all="ignore"):
        logarithms: Wide = np.log(np.asarray(x, dtype=np.float64))
    return logarithms


def choose(condition: ArrayLike, yes: ArrayLike, no: ArrayLike) -> Wide:
    """`yes` where the condition is not 0, else `no`; NaN where the condition is NaN.

    >>> choose([[1.0, 0.0, float("nan")]], 7.0, 8.0).tolist()
    [[7.0, 8.0, nan]]
    """
    asked = np.asarray(condition, dtype=np.float64)
    return np.where(np.isnan(asked), np.nan, np.where(asked != 0, yes, no))


def either(x: ArrayLike, y: ArrayLike) -> Wide:
    """1 where either is true (not 0), else 0; NaN where that hangs on a NaN.

    >>> either([[1.0, 0.0, 0.0]], [[float("nan"), float("nan"), 0.0]]).tolist()
    [[1.0, nan, 0.0]]
    """
    one, other = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    true = ((one != 0) & ~np.isnan(one)) | ((other != 0) & ~np.isnan(other))
    return np.where(true, 1.0, np.where(np.isnan(one) | np.isnan(other), np.nan, 0.0))


def both(x: ArrayLike, y: ArrayLike) -> Wide:
    """1 where both are true (not 0), else 0; NaN where that hangs on a NaN.

    >>> both([[0.0, 1.0, 2.0]], [[float("nan"), float("nan"), 1.0]]).tolist()
    [[0.0, nan, 1.0]]
    """
    one, other = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    false = (one == 0) | (other == 0)
    return np.where(false, 0.0, np.where(np.isnan(one) | np.isnan(other), np.nan, 1.0))


def _finite(x: ArrayLike) -> Wide:
    cells = wide(x)
    return np.where(np.isfinite(cells), cells, np.nan)

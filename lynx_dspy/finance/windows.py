"""Time-series operators of the alphas: each cell sees the last `d` dates of its own stock.

Panels are float arrays of shape (dates, stocks), dates ascending. The window of `d` holds today and
the `d - 1` dates before it in the panel's calendar, whether or not the stock traded; a `d` that is
no whole number is floored (Kakushadze, "101 Formulaic Alphas", 2015, appendix A). Where the paper
is silent: a window that is not full, or that holds a NaN or an infinity, gives NaN.

Every operator walks over the `d` lags with a whole block of the panel at a time, so each window is
computed on its own: nothing that left the window leaves a rounding error behind, as running sums
do. Deviations are taken from today's value. That is a value of the window, so its squared distance
from the mean is at most the sum of squares sought: what cancels costs at most a factor of `d + 1`
in precision, and a constant window deviates by exactly zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lynx_dspy.errors import BadInput

Wide = NDArray[np.float64]
"""Cells of shape (dates, stocks)."""

_Kernel = Callable[..., Wide]

_BLOCK_CELLS = 1 << 15
"""Cells of a block: 256 KB, so that a kernel's arrays stay in the processor's cache."""


def wide(x: ArrayLike) -> Wide:
    """`x` as a float array of shape (dates, stocks). Raises `BadInput` for another shape.

    >>> wide([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    try:
        cells = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(f"A panel holds numbers; this one does not: {error}.") from error
    if cells.ndim != 2:
        raise BadInput(f"A panel has the shape (dates, stocks); got {cells.shape}.")
    return cells


def days(d: float, least: int = 1) -> int:
    """`d` as whole days, floored. Raises `BadInput` below `least` or if it is no number.

    >>> days(8.93345)
    8
    """
    if not math.isfinite(d) or math.floor(d) < least:
        raise BadInput(f"A number of days is at least {least}; got {d:g}.")
    return math.floor(d)


def delay(x: ArrayLike, d: float) -> Wide:
    """The value `d` dates ago; NaN on the first `d` dates. `d` may be 0; what is there is kept.

    >>> delay([[1.0], [2.0], [3.0]], 1).ravel().tolist()
    [nan, 1.0, 2.0]
    """
    cells, lag = wide(x), days(d, least=0)
    out = np.full_like(cells, np.nan)
    if lag < len(cells):
        out[lag:] = cells[: len(cells) - lag]
    return out


def delta(x: ArrayLike, d: float) -> Wide:
    """Today's value less the value `d` dates ago.

    >>> delta([[1.0], [4.0], [9.0]], 1).ravel().tolist()
    [nan, 3.0, 5.0]
    """
    cells = wide(x)
    with np.errstate(invalid="ignore", over="ignore"):
        difference: Wide = cells - delay(cells, d)
    return difference


def ts_sum(x: ArrayLike, d: float) -> Wide:
    """The sum over the window (`sum` in formulas).

    >>> ts_sum([[1.0], [2.0], [4.0]], 2).ravel().tolist()
    [nan, 3.0, 6.0]
    """
    return _windowed(_sum, d, x)


def product(x: ArrayLike, d: float) -> Wide:
    """The product over the window.

    >>> product([[2.0], [3.0], [4.0]], 2).ravel().tolist()
    [nan, 6.0, 12.0]
    """
    return _windowed(_product, d, x)


def ts_min(x: ArrayLike, d: float) -> Wide:
    """The least value of the window.

    >>> ts_min([[2.0], [1.0], [3.0]], 2).ravel().tolist()
    [nan, 1.0, 1.0]
    """
    return _windowed(_least, d, x)


def ts_max(x: ArrayLike, d: float) -> Wide:
    """The greatest value of the window.

    >>> ts_max([[2.0], [1.0], [3.0]], 2).ravel().tolist()
    [nan, 2.0, 3.0]
    """
    return _windowed(_greatest, d, x)


def ts_argmax(x: ArrayLike, d: float) -> Wide:
    """The day of the window on which its greatest value stood: 1 is the oldest, `d` is today.

    Of equal values the oldest counts. The paper does not say where days begin to count; ranks of
    the result, which its alphas take, depend on the direction alone.

    >>> ts_argmax([[5.0], [7.0], [7.0], [6.0]], 3).ravel().tolist()
    [nan, nan, 2.0, 1.0]
    """
    return _windowed(_day_of_greatest, d, x)


def ts_argmin(x: ArrayLike, d: float) -> Wide:
    """The day of the window on which its least value stood, counted as in `ts_argmax`.

    >>> ts_argmin([[5.0], [7.0], [4.0], [6.0]], 3).ravel().tolist()
    [nan, nan, 3.0, 2.0]
    """
    return _windowed(_day_of_least, d, x)


def ts_rank(x: ArrayLike, d: float) -> Wide:
    """The rank of today's value within its window, as a share in (0, 1]; ties share their mean.

    The least of `d` distinct values has 1/d, the greatest 1, as in `rank` across stocks.

    >>> ts_rank([[1.0], [3.0], [2.0], [2.0]], 3).round(3).ravel().tolist()
    [nan, nan, 0.667, 0.5]
    """
    return _windowed(_rank_of_today, d, x)


def decay_linear(x: ArrayLike, d: float) -> Wide:
    """The mean of the window with the weights 1 (oldest) to `d` (today), which add up to 1.

    >>> decay_linear([[1.0], [2.0], [6.0]], 3).ravel().tolist()
    [nan, nan, 3.8333333333333335]
    """
    return _windowed(_decayed, d, x)


def stddev(x: ArrayLike, d: float) -> Wide:
    """The sample standard deviation of the window: the divisor is d - 1, so `d` of 1 gives NaN.

    >>> stddev([[1.0], [3.0], [3.0]], 2).round(4).ravel().tolist()
    [nan, 1.4142, 0.0]
    """
    return np.sqrt(_windowed(_covariance, d, x, x))


def covariance(x: ArrayLike, y: ArrayLike, d: float) -> Wide:
    """The sample covariance of both over the window: the divisor is d - 1.

    >>> covariance([[1.0], [3.0]], [[2.0], [8.0]], 2).ravel().tolist()
    [nan, 6.0]
    """
    return _windowed(_covariance, d, x, y)


def correlation(x: ArrayLike, y: ArrayLike, d: float) -> Wide:
    """Pearson's correlation of both over the window, in [-1, 1]; NaN if either is constant there.

    What rounding cannot tell from -1 or 1 is that, so that windows on a line are ties in a rank.

    >>> correlation([[1.0], [2.0], [3.0], [3.0]], [[2.0], [4.0], [6.0], [1.0]], 2).ravel().tolist()
    [nan, 1.0, 1.0, nan]
    """
    return _windowed(_correlation, d, x, y)


def _windowed(kernel: _Kernel, d: float, *given: ArrayLike) -> Wide:
    """`kernel` over all windows of `d` dates; NaN where a window is not full of finite cells.

    A kernel gets `d` and, for each panel, a block with the d - 1 dates before it.
    """
    panels = [wide(x) for x in given]
    if len({panel.shape for panel in panels}) > 1:
        shapes = " and ".join(str(panel.shape) for panel in panels)
        raise BadInput(f"Panels of one operator have one shape; got {shapes}.")
    span = days(d)
    dates, stocks = panels[0].shape
    out = np.full((dates, stocks), np.nan)
    step = max(1, _BLOCK_CELLS // max(1, stocks))
    with np.errstate(all="ignore"):
        for start in range(span - 1, dates, step):
            end = min(start + step, dates)
            blocks = [panel[start - span + 1 : end] for panel in panels]
            cells = kernel(span, *blocks)
            whole = _complete(span, blocks)
            out[start:end][whole] = cells[whole]
    return out


def _complete(d: int, blocks: list[Wide]) -> NDArray[np.bool_]:
    """Where all cells of the window are finite."""
    missing = ~np.isfinite(blocks[0])
    for block in blocks[1:]:
        missing |= ~np.isfinite(block)
    counts = np.zeros((len(missing) + 1, missing.shape[1]), dtype=np.int64)
    np.cumsum(missing, axis=0, out=counts[1:])
    whole: NDArray[np.bool_] = counts[d:] == counts[:-d]
    return whole


def _lags(d: int, block: Wide) -> Iterator[Wide]:
    """The cells of each day of the windows, from the oldest to today."""
    rows = len(block) - d + 1
    return (block[day : day + rows] for day in range(d))


def _sum(d: int, block: Wide) -> Wide:
    total = np.zeros_like(block[d - 1 :])
    for lag in _lags(d, block):
        total += lag
    return total


def _product(d: int, block: Wide) -> Wide:
    total = np.ones_like(block[d - 1 :])
    for lag in _lags(d, block):
        total *= lag
    return total


def _least(d: int, block: Wide) -> Wide:
    best = block[d - 1 :].copy()
    for lag in _lags(d, block):
        np.minimum(best, lag, out=best)
    return best


def _greatest(d: int, block: Wide) -> Wide:
    best = block[d - 1 :].copy()
    for lag in _lags(d, block):
        np.maximum(best, lag, out=best)
    return best


def _day_of_greatest(d: int, block: Wide) -> Wide:
    best = block[: len(block) - d + 1].copy()
    day_of_best = np.ones_like(best)
    for day, lag in enumerate(_lags(d, block), 1):
        better = lag > best
        best[better] = lag[better]
        day_of_best[better] = day
    return day_of_best


def _day_of_least(d: int, block: Wide) -> Wide:
    return _day_of_greatest(d, -block)


def _rank_of_today(d: int, block: Wide) -> Wide:
    today = block[d - 1 :]
    below, equal = np.zeros_like(today), np.zeros_like(today)
    for lag in _lags(d, block):
        below += lag < today
        equal += lag == today
    shares: Wide = (below + (equal + 1) / 2) / d
    return shares


def _decayed(d: int, block: Wide) -> Wide:
    total = np.zeros_like(block[d - 1 :])
    for day, lag in enumerate(_lags(d, block), 1):
        total += day * lag
    mean: Wide = total / (d * (d + 1) / 2)
    return mean


def _covariance(d: int, x: Wide, y: Wide) -> Wide:
    if x is y:
        return _squares(d, x) / (d - 1)
    sums = _cross_products(d, x, y)
    covariances: Wide = sums / (d - 1) if d > 1 else np.full_like(sums, np.nan)
    return covariances


def _correlation(d: int, x: Wide, y: Wide) -> Wide:
    found = _cross_products(d, x, y) / np.sqrt(_squares(d, x) * _squares(d, y))
    on_a_line = np.abs(found) > 1 - 4 * (d + 1) * np.finfo(np.float64).eps
    return np.where(on_a_line, np.sign(found), found)


def _squares(d: int, x: Wide) -> Wide:
    """Sums of squared deviations from the windows' means."""
    return np.maximum(_cross_products(d, x, x), 0.0)


def _cross_products(d: int, x: Wide, y: Wide) -> Wide:
    """Sums of the products of both deviations from the windows' means."""
    x_today, y_today = x[d - 1 :], y[d - 1 :]
    x_sum, y_sum, products = (np.zeros_like(x_today) for _ in range(3))
    for x_lag, y_lag in zip(_lags(d, x), _lags(d, y), strict=True):
        x_off, y_off = x_lag - x_today, y_lag - y_today
        x_sum += x_off
        y_sum += y_off
        products += x_off * y_off
    sums: Wide = products - x_sum * y_sum / d
    return sums

"""Each operator against what its definition says, cell by cell, in exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lynx_dspy.errors import BadInput
from lynx_dspy.finance import windows
from lynx_dspy.finance.windows import Wide

# Few distinct values make ties and constant windows; the others span the sizes of real fields.
CELLS = st.one_of(
    st.sampled_from([0.0, 1.0, -2.5, 0.1, 1e9, math.nan, math.inf, -math.inf]),
    st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 6)),
)
PANELS = arrays.arrays(np.float64, st.tuples(st.integers(0, 9), st.integers(1, 3)), elements=CELLS)
DAYS = st.floats(1.0, 11.0)


def mean(window: Sequence[Fraction]) -> Fraction:
    return sum(window, Fraction(0)) / len(window)


def cov(xs: Sequence[Fraction], ys: Sequence[Fraction]) -> float:
    if len(xs) == 1:
        return math.nan
    products = [(x - mean(xs)) * (y - mean(ys)) for x, y in zip(xs, ys, strict=True)]
    return float(sum(products, Fraction(0)) / (len(xs) - 1))


def rank_of_last(window: Sequence[Fraction]) -> float:
    less = sum(value < window[-1] for value in window)
    same = sum(value == window[-1] for value in window)
    return float(Fraction(2 * less + same + 1, 2 * len(window)))


def decayed(window: Sequence[Fraction]) -> float:
    weights = range(1, len(window) + 1)
    weighted = sum((w * v for w, v in zip(weights, window, strict=True)), Fraction(0))
    return float(weighted / sum(weights))


SLOW: dict[str, Callable[[Sequence[Fraction]], float]] = {
    "ts_sum": lambda window: float(sum(window)),
    "product": lambda window: float(math.prod(window)),
    "ts_min": lambda window: float(min(window)),
    "ts_max": lambda window: float(max(window)),
    "ts_argmin": lambda window: window.index(min(window)) + 1,
    "ts_argmax": lambda window: window.index(max(window)) + 1,
    "ts_rank": rank_of_last,
    "decay_linear": decayed,
    "stddev": lambda window: math.sqrt(cov(window, window)) if len(window) > 1 else math.nan,
}


def slowly(function: Callable[..., float], d: float, *panels: Wide) -> tuple[Wide, Wide]:
    """The result by definition, and the size of each window's sums, which rounding goes by."""
    span = math.floor(d)
    out, size = np.full(panels[0].shape, np.nan), np.ones(panels[0].shape)
    for date, stock in np.ndindex(out.shape):
        if date + 1 < span:
            continue
        windows_ = [panel[date + 1 - span : date + 1, stock] for panel in panels]
        if all(np.isfinite(window).all() for window in windows_):
            out[date, stock] = function(*([Fraction(v) for v in window] for window in windows_))
            size[date, stock] = max(1.0, *(np.abs(window).sum() for window in windows_))
    return out, size


@pytest.mark.parametrize("name", SLOW)
@settings(max_examples=60)
@given(panel=PANELS, d=DAYS)
def test_an_operator_over_a_window_is_what_its_definition_says(
    name: str, panel: Wide, d: float
) -> None:
    expected, size = slowly(SLOW[name], d, panel)
    got = getattr(windows, name)(panel, d)
    assert (np.isnan(got) == np.isnan(expected)).all()
    there = ~np.isnan(expected)
    # A product's rounding goes by its own size, that of the others by the sum of the window.
    scale = np.abs(expected) if name == "product" else size
    assert (np.abs(got - expected)[there] <= 1e-13 * scale[there]).all()


@settings(max_examples=80)
@given(
    both=PANELS.flatmap(
        lambda x: st.tuples(st.just(x), arrays.arrays(np.float64, x.shape, elements=CELLS))
    ),
    d=DAYS,
)
def test_covariance_and_correlation_are_those_of_exact_arithmetic(
    both: tuple[Wide, Wide], d: float
) -> None:
    x, y = both
    spread, _ = slowly(lambda xs, ys: math.sqrt(abs(cov(xs, xs) * cov(ys, ys))), d, x, y)
    expected, _ = slowly(cov, d, x, y)
    got = windows.covariance(x, y, d)
    assert (np.isnan(got) == np.isnan(expected)).all()
    there = ~np.isnan(expected)
    assert (np.abs(got - expected)[there] <= 1e-12 * spread[there]).all()
    related = windows.correlation(x, y, d)
    assert (np.isnan(related) == ~(there & (spread > 0))).all()
    moving = there & (spread > 0)
    assert np.allclose(related[moving], expected[moving] / spread[moving], rtol=0, atol=1e-11)
    assert (np.abs(related[moving]) <= 1).all()


@given(panel=PANELS, d=st.integers(0, 11))
def test_delay_and_delta_look_back_and_keep_what_is_there(panel: Wide, d: int) -> None:
    expected = np.full(panel.shape, np.nan)
    for date, stock in np.ndindex(panel.shape):
        if date >= d:
            expected[date, stock] = panel[date - d, stock]
    assert np.array_equal(windows.delay(panel, d), expected, equal_nan=True)
    with np.errstate(invalid="ignore"):
        assert np.array_equal(windows.delta(panel, d), panel - expected, equal_nan=True)


def test_what_left_the_window_leaves_nothing_behind() -> None:
    panel = np.array([[1e16], [1.0], [2.0], [3.0], [3.0], [3.0]])
    assert windows.ts_sum(panel, 3)[3:].ravel().tolist() == [6.0, 8.0, 9.0]
    assert windows.stddev(panel, 3)[3:].ravel() == pytest.approx([1.0, math.sqrt(1 / 3), 0.0])


def test_constant_windows_of_any_value_deviate_by_exactly_zero() -> None:
    panel = np.full((400, 1), 0.1)
    assert not windows.stddev(panel, 250)[249:].any()
    assert np.isnan(windows.correlation(panel, np.arange(400.0)[:, None], 250)).all()


def test_windows_on_a_line_are_ties_at_exactly_one() -> None:
    x = np.array([[0.1], [0.4], [0.2], [0.9]])
    assert windows.correlation(x, 3 * x + 0.7, 3)[2:].ravel().tolist() == [1.0, 1.0]
    assert windows.correlation(x, -x, 2)[1:].ravel().tolist() == [-1.0, -1.0, -1.0]


def test_blocks_of_dates_meet_without_a_seam() -> None:
    panel = np.random.default_rng(3).normal(size=(2_000, 40))
    whole = windows.ts_sum(panel, 30)
    assert np.array_equal(whole[1_000:], windows.ts_sum(panel[971:], 30)[29:])


@pytest.mark.parametrize("d", [0, -3, 0.99, math.nan, math.inf])
def test_a_number_of_days_that_is_none_is_told(d: float) -> None:
    with pytest.raises(BadInput, match="days is at least 1"):
        windows.ts_sum([[1.0]], d)


def test_panels_that_do_not_fit_are_told() -> None:
    with pytest.raises(BadInput, match=r"\(dates, stocks\); got \(2,\)"):
        windows.ts_sum([1.0, 2.0], 1)
    with pytest.raises(BadInput, match="one shape"):
        windows.correlation([[1.0]], [[1.0, 2.0]], 1)
    with pytest.raises(BadInput, match="holds numbers"):
        windows.delta([["a"]], 1)

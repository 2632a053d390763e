from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lynx_dspy.errors import BadInput
from lynx_dspy.finance import across
from lynx_dspy.finance.windows import Wide

CELLS = st.one_of(
    st.sampled_from([0.0, 1.0, -2.5, math.nan, math.inf, -math.inf]),
    st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 6)),
)
PANELS = arrays.arrays(np.float64, st.tuples(st.integers(0, 4), st.integers(1, 7)), elements=CELLS)
GROUPED = PANELS.flatmap(
    lambda x: st.tuples(st.just(x), arrays.arrays(np.int64, x.shape, elements=st.integers(-1, 2)))
)


@given(PANELS)
def test_rank_is_the_share_of_the_mean_rank_among_those_that_have_a_value(panel: Wide) -> None:
    got = across.rank(panel)
    for date, stock in np.ndindex(panel.shape):
        others = [value for value in panel[date] if not math.isnan(value)]
        mine = panel[date, stock]
        if math.isnan(mine):
            assert math.isnan(got[date, stock])
            continue
        less, same = sum(v < mine for v in others), sum(v == mine for v in others)
        assert got[date, stock] == pytest.approx((less + (same + 1) / 2) / len(others), abs=1e-15)


@given(PANELS, st.sampled_from([1.0, 2.5]))
def test_scaled_absolute_values_add_up(panel: Wide, a: float) -> None:
    got = across.scale(panel, a)
    for date, row in enumerate(panel):
        there = np.isfinite(row)
        total = math.fsum(abs(row[there]))
        if total == 0:
            assert np.isnan(got[date]).all()
            continue
        assert np.isnan(got[date]).tolist() == (~there).tolist()
        assert np.allclose(got[date][there], a * row[there] / total, rtol=1e-12, atol=0)


@given(GROUPED)
def test_indneutralize_takes_the_mean_of_the_group_away(given_: tuple[Wide, np.ndarray]) -> None:
    panel, groups = given_
    got = across.indneutralize(panel, groups)
    for date, stock in np.ndindex(panel.shape):
        same = (groups[date] == groups[date, stock]) & np.isfinite(panel[date])
        if groups[date, stock] < 0 or not math.isfinite(panel[date, stock]):
            assert math.isnan(got[date, stock])
        else:
            expected = panel[date, stock] - math.fsum(panel[date][same]) / same.sum()
            assert got[date, stock] == pytest.approx(expected, abs=1e-9)


def test_equal_values_of_a_group_are_neutral_to_the_last_bit() -> None:
    assert not across.indneutralize([[0.1] * 7], np.zeros(7, dtype=np.int64)).any()


def test_groups_of_another_shape_are_told() -> None:
    with pytest.raises(BadInput, match="do not fit"):
        across.indneutralize([[1.0, 2.0]], np.array([0]))


@given(CELLS, CELLS, CELLS)
def test_a_choice_hangs_on_nothing_unknown(asked: float, yes: float, no: float) -> None:
    got = float(across.choose(asked, yes, no))
    expected = math.nan if math.isnan(asked) else yes if asked != 0 else no
    assert got == expected or (math.isnan(got) and math.isnan(expected))


def test_or_and_and_are_unknown_only_where_the_unknown_decides() -> None:
    known = [0.0, 1.0, math.nan]
    table = [[float(across.either(x, y)) for y in known] for x in known]
    assert np.array_equal(table, [[0, 1, np.nan], [1, 1, 1], [np.nan, 1, np.nan]], equal_nan=True)
    table = [[float(across.both(x, y)) for y in known] for x in known]
    assert np.array_equal(table, [[0, 0, 0], [0, 1, np.nan], [0, np.nan, np.nan]], equal_nan=True)

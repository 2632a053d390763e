from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.errors import BadInput
from lynx_dspy.finance.compare import compare_factors

DAYS = pd.DatetimeIndex(["2024-01-02", "2024-01-03"], name="date")
REFERENCE = pd.DataFrame({"A": [1.0, np.nan], "B": [math.inf, 4.0]}, index=DAYS)


def test_a_factor_agrees_with_itself_in_either_form_and_order() -> None:
    wide = REFERENCE.rename_axis(columns="code")
    long = wide.stack().rename("alpha").reset_index().iloc[::-1]
    for got in (REFERENCE, REFERENCE[["B", "A"]].iloc[::-1], long, long.astype({"date": str})):
        found = compare_factors(got, REFERENCE)
        assert found.agrees
        assert (found.max_abs_difference, found.coverage, found.cells) == (0.0, 1.0, 4)


def test_what_differs_lacks_or_is_too_much_is_counted() -> None:
    got = pd.DataFrame({"A": [1.5, 2.0], "C": [9.0, np.nan]}, index=DAYS)
    found = compare_factors(got, REFERENCE)
    assert found.max_abs_difference == 0.5
    assert found.equal_share == 0.0
    assert found.coverage == pytest.approx(1 / 3)
    assert found.surplus == 2
    assert not found.agrees


def test_values_too_many_do_not_agree() -> None:
    extra = pd.concat([REFERENCE, pd.DataFrame({"A": [3.0]}, index=[pd.Timestamp("2024-01-04")])])
    found = compare_factors(extra, REFERENCE)
    assert (found.equal_share, found.surplus, found.agrees) == (1.0, 1, False)


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_the_tolerance_is_absolute_below_one_and_relative_above(mine: float, theirs: float) -> None:
    one, other = (pd.DataFrame({"A": [value]}, index=DAYS[:1]) for value in (mine, theirs))
    equal = abs(mine - theirs) <= 1e-6 * max(1.0, abs(theirs))
    assert compare_factors(one, other).agrees == equal


def test_without_a_shared_value_there_is_no_difference() -> None:
    assert math.isnan(compare_factors(REFERENCE * np.nan, REFERENCE).max_abs_difference)


def test_frames_that_are_no_factors_are_told() -> None:
    two = pd.DataFrame({"date": DAYS, "code": ["A", "A"], "x": [1.0, 2.0], "y": [1.0, 2.0]})
    with pytest.raises(BadInput, match="one column of numbers; got date, code, x, y"):
        compare_factors(two, REFERENCE)
    with pytest.raises(BadInput, match="no cells"):
        compare_factors(REFERENCE, REFERENCE.iloc[:0])

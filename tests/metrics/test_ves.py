import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.errors import BadInput
from lynx_dspy.metrics import r_ves, ves

SECONDS = st.lists(st.floats(1e-6, 10), min_size=1, max_size=30)


def test_equal_times_count_as_ratio_one_and_not_as_an_error() -> None:
    assert r_ves(True, [0.1] * 5, [0.1] * 5) == 1
    assert r_ves(True, [0.0], [0.0]) == 1
    assert ves(True, [0.0], [0.0]) == 1


def test_outliers_are_dropped_before_the_mean() -> None:
    ratios = [1.0, 1.01, 0.99] * 20
    assert r_ves(True, [*ratios, 900.0], [1.0] * 61) == r_ves(True, ratios, [1.0] * 60)


@given(SECONDS, SECONDS)
def test_scores_stay_in_their_ranges(gold: list[float], pred: list[float]) -> None:
    n = min(len(gold), len(pred))
    assert 0.5 <= r_ves(True, gold[:n], pred[:n]) <= 1.25**0.5
    assert ves(True, gold[:n], pred[:n]) > 0


def test_a_wrong_program_scores_zero_however_fast() -> None:
    assert r_ves(False, [9.0], [0.1]) == ves(False, [], []) == 0


@pytest.mark.parametrize("score", [r_ves, ves])
def test_times_that_do_not_pair_are_refused(score: object) -> None:
    with pytest.raises(BadInput, match="one pair or more"):
        score(True, [1.0, 2.0], [1.0])  # type: ignore[operator]

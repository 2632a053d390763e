import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.errors import BadInput
from lynx_dspy.metrics.intervals import bootstrap, mcnemar, paired_bootstrap, wilson

SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (40, 52, 0.6387, 0.8627)],
)
def test_wilson_gives_published_ends(successes: int, n: int, low: float, high: float) -> None:
    found = wilson(successes, n)
    assert found.low == pytest.approx(low, abs=5e-4)
    assert found.high == pytest.approx(high, abs=5e-4)


@given(st.integers(1, 500), st.data())
def test_wilson_holds_its_value(n: int, data: st.DataObject) -> None:
    found = wilson(data.draw(st.integers(0, n)), n)
    assert 0 <= found.low <= found.value <= found.high <= 1


@given(SCORES, st.integers(0, 5))
def test_bootstrap_is_repeatable_and_holds_its_value(scores: list[float], seed: int) -> None:
    found = bootstrap(scores, resamples=200, seed=seed)
    assert found == bootstrap(scores, resamples=200, seed=seed)
    assert min(scores) - 1e-9 <= found.low <= found.high <= max(scores) + 1e-9
    assert found.n == len(scores)


def test_bootstrap_is_near_wilson_for_a_proportion() -> None:
    scores = [1.0] * 70 + [0.0] * 30
    ours, theirs = bootstrap(scores), wilson(70, 100)
    assert ours.low == pytest.approx(theirs.low, abs=0.03)
    assert ours.high == pytest.approx(theirs.high, abs=0.03)


def test_large_samples_are_resampled_in_chunks() -> None:
    assert bootstrap([0.0, 1.0] * 50_000, resamples=50).n == 100_000


@given(SCORES)
def test_a_program_does_not_differ_from_itself(scores: list[float]) -> None:
    found = paired_bootstrap(scores, scores, resamples=50)
    assert (found.low, found.value, found.high) == (0, 0, 0)


@pytest.mark.parametrize(
    ("gained", "lost", "p"), [(0, 0, 1.0), (1, 1, 1.0), (10, 2, 0.03857421875), (0, 5, 0.0625)]
)
def test_mcnemar_is_the_exact_binomial_test(gained: int, lost: int, p: float) -> None:
    first = [False] * gained + [True] * lost + [True] * 7
    second = [True] * gained + [False] * lost + [True] * 7
    assert mcnemar(first, second) == p == mcnemar(second, first)


def test_mcnemar_stands_large_samples() -> None:
    assert mcnemar([False] * 3000, [True] * 3000) == 0


def test_scores_that_do_not_pair_are_refused() -> None:
    with pytest.raises(BadInput, match="same questions"):
        paired_bootstrap([1.0], [1.0, 0.0])
    with pytest.raises(BadInput):
        bootstrap([])
    with pytest.raises(BadInput):
        wilson(3, 2)

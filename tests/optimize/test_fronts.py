"""Pareto fronts: who is on them, and which trials go on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.optimize.fronts import dominates, front, goes_on, layers
from lynx_dspy.optimize.search import Candidate, Objective, Standing, Worth
from lynx_dspy.program import Lynx


def worth(right: int, soft: int, tokens: int, weight: float = 0.0) -> Worth:
    """Of ten questions."""
    ex = right / 10
    return Worth(ex - weight * tokens / 1_000, soft / 10, -float(tokens), ex, 10)


points = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(1, 5)), min_size=1, max_size=12
)


@given(points)
def test_the_first_front_is_beaten_by_none_and_each_other_by_the_one_before(
    found: list[tuple[int, int, int]],
) -> None:
    worths = [worth(*one) for one in found]
    places = layers(worths)
    for place, one in zip(places, worths, strict=True):
        beaten_by = {p for p, other in zip(places, worths, strict=True) if dominates(other, one)}
        assert all(other < place for other in beaten_by)
        assert place == 0 or place - 1 in beaten_by


@given(points, st.sampled_from([0.0, 0.05, 1.0]))
def test_the_best_by_any_token_price_is_on_the_front(
    found: list[tuple[int, int, int]], weight: float
) -> None:
    worths = [worth(*one, weight) for one in found]
    best = max(worths)
    assert layers(worths)[worths.index(best)] == 0
    assert Objective(weight).worth([]).value == float("-inf")


def test_a_trial_goes_on_unless_it_is_beaten_and_not_among_the_better() -> None:
    assert goes_on(worth(1, 1, 900), [], 0.5), "the first has nobody to beat it"
    assert goes_on(worth(1, 1, 50), [worth(9, 9, 100)], 0.5), "it is cheaper"
    assert goes_on(worth(3, 0, 100), [worth(3, 0, 100)], 0.5), "nothing beats its equal"
    assert not goes_on(worth(1, 1, 900), [worth(9, 9, 100)], 0.5)
    others = [worth(9, 9, 100), worth(1, 0, 100), worth(0, 0, 100)]
    assert goes_on(worth(8, 0, 100), others, 0.5), "the second of four"
    assert not goes_on(worth(8, 0, 100), others, 0.25)


def test_the_front_is_of_those_that_were_asked_everything() -> None:
    program = Lynx()
    cheap, good, poor = worth(3, 0, 100), worth(5, 0, 200), worth(2, 0, 150)
    asked = [(good, 10), (poor, 10), (worth(10, 10, 10), 5), (cheap, 10), (Worth(-9.0), 10)]
    standings = [Standing(Candidate(str(n), program), *one) for n, one in enumerate(asked)]
    assert [one.candidate.name for one in front(standings)] == ["3", "0"]

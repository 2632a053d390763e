from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.metrics.thresholds import NEVER, STEP, best_threshold

PAIRS = st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0]), st.booleans()))


def gained(pairs: list[tuple[float, bool]], threshold: float) -> int:
    return sum(-1 if right else 1 for doubt, right in pairs if doubt >= threshold)


@given(PAIRS)
def test_no_other_threshold_gains_more(pairs: list[tuple[float, bool]]) -> None:
    chosen = best_threshold(pairs)
    assert all(gained(pairs, chosen) >= gained(pairs, n * STEP) for n in range(1, 8))
    assert gained(pairs, chosen) >= 0


def test_a_verifier_that_rejects_right_answers_is_switched_off() -> None:
    assert best_threshold([(1.0, True), (1.0, True), (2.0, False)], cost=2.0) == 2.0
    assert best_threshold([(1.0, True), (1.0, False)], cost=3.0) == NEVER
    assert best_threshold([]) == NEVER

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy import config
from lynx_dspy.config import LynxConfig
from lynx_dspy.modules.candidates import (
    Candidates,
    agreement,
    choose,
    result_key,
    runners_up,
)
from lynx_dspy.values import Attempt, Outcome, Row, Status


def ran(code: str, *rows: Row) -> Attempt:
    status = Status.OK if rows else Status.EMPTY
    return Attempt(0, code, Outcome(status, ("a",), rows))


def failed(code: str) -> Attempt:
    return Attempt(0, code, Outcome(Status.ERROR, error="no such column: x"))


def test_the_result_that_most_agree_on_wins() -> None:
    assert choose([ran("a", (1,)), ran("b", (2,)), ran("c", (2,))]) == 1


def test_rows_win_over_none_and_none_over_failure() -> None:
    assert choose([failed("a"), ran("b"), ran("c"), ran("d", (1,))]) == 3
    assert choose([failed("a"), ran("b")]) == 1
    assert choose([failed("a"), failed("b")]) == 0


def test_order_of_rows_and_noise_in_floats_do_not_split_a_group() -> None:
    left, right = ran("a", (0.1 + 0.2, "x"), (2.0, "y")), ran("b", (2.0, "y"), (0.3, "x"))
    assert result_key(left) == result_key(right)
    assert result_key(ran("c", (29.2834,))) != result_key(ran("d", (29.2841,)))


def test_sampling_ends_when_nothing_can_change_the_choice() -> None:
    asked: list[int] = []

    def sample(k: int) -> Sequence[Attempt]:
        asked.append(k)
        return [ran(f"s{k}", (1,))]

    with config.using(LynxConfig(candidates=5)):
        made = Candidates()([ran("first", (1,))], sample)
    assert asked == [1, 2]
    assert made[-1].code == "first"


def test_sampling_goes_on_for_some_while_nothing_gives_rows() -> None:
    pool = [failed("a"), ran("b"), failed("c"), ran("d", (1,)), ran("e", (2,))]
    with config.using(LynxConfig(candidates=2, rescue_candidates=8)):
        made = Candidates()(pool[:1], lambda k: [pool[k]])
    assert [a.code for a in made] == ["a", "b", "c", "d"]

    with config.using(LynxConfig(candidates=2, rescue_candidates=1)):
        made = Candidates()(pool[:1], lambda k: [pool[k]])
    assert [a.code for a in made] == ["a", "c", "b"]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=7))
def test_all_attempts_are_kept_and_the_chosen_is_last(results: list[int]) -> None:
    pool = [ran(f"p{i}", (r,)) if r else failed(f"p{i}") for i, r in enumerate(results)]
    with config.using(LynxConfig(candidates=len(pool))):
        made = Candidates()(pool[:1], lambda k: [pool[k]])
    assert len({a.code for a in made}) == len(made)
    asked = [a for a in pool if a in made]
    assert made[-1] == asked[choose(asked)]


def test_agreement_counts_programs_and_not_attempts() -> None:
    refused, mended = failed("a"), ran("b", (1,)).with_(source="static")
    sampled, other = ran("c", (1,)).with_(source="sample"), ran("d", (2,)).with_(source="sample")
    repaired = ran("e", (1,)).with_(round=1, source="repair")
    assert agreement([refused, mended, sampled, other, repaired], mended) == (2, 3)


def test_a_mended_candidate_stays_beside_what_it_was_mended_from() -> None:
    groups = [[failed("x"), ran("x2", (1,))], [ran("y", (2,))], [ran("z", (1,))]]
    with config.using(LynxConfig(candidates=3)):
        made = Candidates()(groups[0], lambda k: groups[k])
    assert [a.code for a in made] == ["y", "z", "x", "x2"]


def test_sampling_ends_with_the_tokens() -> None:
    pool = [ran(f"p{i}", (i,)) for i in range(5)]
    spent = iter([10, 20, 30, 40])
    with config.using(LynxConfig(candidates=5, question_tokens=30)):
        made = Candidates()(pool[:1], lambda k: [pool[k]], lambda: next(spent))
    assert len(made) == 3


def test_runners_up_are_one_a_result_with_the_most_agreed_on_first() -> None:
    tried = [ran("a", (1,)), ran("b", (2,)), ran("c", (2,)), failed("d"), ran("e"), ran("f", (3,))]
    assert [a.code for a in runners_up([*tried, ran("g", (3,))])] == ["b", "a"]

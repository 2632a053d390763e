from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy import config
from lynx_dspy.config import STAGES, LynxConfig
from lynx_dspy.modules.critic import (
    Change,
    Critic,
    Memory,
    code_delta,
    normalised_code,
    normalised_error,
    read_change,
)
from lynx_dspy.tokens import estimate
from lynx_dspy.values import Attempt, FailureClass, Outcome, Status

RULES = LynxConfig(stages=frozenset())


def attempt(
    round_: int, code: str, error: str, failure: FailureClass = FailureClass.SCHEMA
) -> Attempt:
    return Attempt(round_, code, Outcome(Status.ERROR, error=error), failure_class=failure)


def ran(round_: int, code: str, rows: int = 1) -> Attempt:
    status = Status.OK if rows else Status.EMPTY
    return Attempt(round_, code, Outcome(status, ("a",), ((1,),) * rows))


def test_the_first_failure_is_neither_progress_nor_stagnation() -> None:
    assert read_change([attempt(0, "SELECT x", "no such column: x")]) is Change.FIRST


def test_an_error_that_went_away_for_a_later_one_is_progress() -> None:
    syntax = attempt(0, "SELEC x", 'near "SELEC": syntax error', FailureClass.SYNTAX)
    schema = attempt(1, "SELECT x", "no such column: x")
    assert read_change([syntax, schema]) is Change.PROGRESS
    assert read_change([schema, syntax]) is Change.REGRESSION


def test_the_same_error_with_other_literals_is_stagnation() -> None:
    first = attempt(0, "SELECT x, 1", "no such column: x at 17")
    second = attempt(1, "SELECT x, 2", "no such column: x at 23")
    assert normalised_error(first) == normalised_error(second)
    assert read_change([first, second]) is Change.STAGNATION


def test_another_missing_name_is_progress() -> None:
    first = attempt(0, "SELECT x", "no such column: x")
    second = attempt(1, "SELECT y", "no such column: y")
    assert read_change([first, second]) is Change.PROGRESS


def test_a_program_that_comes_back_is_a_cycle() -> None:
    a, b = attempt(0, "SELECT a", "no such column: a"), attempt(1, "SELECT b", "no such column: b")
    again = attempt(2, " select  A;", "no such column: a")
    assert read_change([a, b, again]) is Change.CYCLE


def test_rows_after_an_empty_result_are_progress() -> None:
    assert read_change([ran(0, "SELECT a", 0), ran(1, "SELECT b", 2)]) is Change.PROGRESS


def test_progress_records_the_fix_and_resets_stagnation() -> None:
    with config.using(RULES):
        critic = Critic()
        before = attempt(0, "SELECT nme FROM t", "no such column: nme")
        after = attempt(1, "SELECT name FROM t", "ambiguous column name: name")
        said = critic(Memory(stagnant=2), [before, after])
    assert said.change is Change.PROGRESS
    assert said.memory.stagnant == 0
    assert said.memory.patterns == ("no such column: nme => -nme +name",)
    assert said.suggestion.startswith("Previous fix: Worked")


def test_stagnation_is_counted_and_asks_for_another_strategy() -> None:
    with config.using(RULES):
        critic = Critic()
        memory = Memory()
        attempts = [attempt(0, "SELECT x FROM t", "no such column: x")]
        memory = critic(memory, attempts).memory
        for round_ in (1, 2):
            attempts.append(attempt(round_, f"SELECT x FROM t LIMIT {round_}", "no such column: x"))
            said = critic(memory, attempts)
            memory = said.memory
    assert memory.stagnant == 2
    assert "another" in said.suggestion.casefold()


@given(st.lists(st.text(max_size=3000), min_size=1, max_size=12))
def test_the_history_never_exceeds_its_budget(codes: list[str]) -> None:
    with config.using(RULES.with_(history_tokens=200)):
        critic, memory, attempts = Critic(), Memory(), []
        for round_, code in enumerate(codes):
            attempts.append(attempt(round_, code, "no such column: x"))
            memory = critic(memory, attempts).memory
            assert estimate(memory.text) <= 200


@given(st.text())
def test_normalising_is_idempotent(code: str) -> None:
    assert normalised_code(normalised_code(code)) == normalised_code(code)


@given(st.text())
def test_an_unchanged_program_has_no_delta(code: str) -> None:
    assert code_delta(code, code) == ""


def test_the_model_is_asked_to_reflect_and_to_diagnose(scripted: Any) -> None:
    import dspy

    from lynx_dspy.lm import adapter_for

    lm, engine = scripted(
        {
            "critic.reflect": [{"summary": "x is no column"}],
            "critic.diagnose": [{"suggestion": "Previous fix: Failed. Use y."}],
        }
    )
    settings = LynxConfig(stages=frozenset(STAGES), history_tokens=30)
    attempts = [attempt(0, "SELECT x FROM t", "no such column: x")]
    with (
        config.using(settings),
        dspy.context(lm=lm, adapter=adapter_for(lm, "json")),
    ):
        critic = Critic()
        memory = critic(Memory(), attempts).memory
        assert not engine.prompts
        attempts.append(attempt(1, "SELECT x FROM t WHERE 1", "no such column: x"))
        said = critic(memory, attempts)
        attempts.append(attempt(2, "SELECT x FROM t WHERE 2 AND x", "no such column: x"))
        said = critic(said.memory, attempts)
    assert said.suggestion == "Previous fix: Failed. Use y."
    assert said.memory.summary == "x is no column"
    assert "-- no such column: x" in engine.prompts["critic.reflect"][0]

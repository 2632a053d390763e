from __future__ import annotations

from typing import Any

import dspy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lynx_dspy import config
from lynx_dspy.config import STAGES, LynxConfig
from lynx_dspy.lm import adapter_for
from lynx_dspy.modules.clauses import code_delta
from lynx_dspy.modules.critic import Critic, Memory, advice, bounded, decayed, render_attempt
from lynx_dspy.modules.delta import (
    Change,
    normalised_code,
    normalised_error,
    read_change,
)
from lynx_dspy.modules.strategies import Strategy
from lynx_dspy.tokens import estimate
from lynx_dspy.values import Attempt, Column, FailureClass, Outcome, Schema, Status, Table

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
    assert [fix.text for fix in said.memory.patterns] == [
        "no such column: nme => SELECT -nme +name"
    ]
    assert said.suggestion.startswith("Previous fix: Worked")


def test_stagnation_is_counted_and_asks_for_another_strategy_each_time() -> None:
    schema = Schema(
        "sqlite", (Table("t", (Column("y", "INT"),)), Table("u", (Column("x", "INT"),)))
    )
    with config.using(RULES):
        critic, memory = Critic(), Memory()
        attempts = [attempt(0, "SELECT SUM(x) FROM t WHERE y = 1", "no such column: x")]
        memory = critic(memory, attempts, schema).memory
        for round_ in (1, 2):
            code = f"SELECT SUM(x) FROM t WHERE y = 1 LIMIT {round_}"
            attempts.append(attempt(round_, code, "no such column: x"))
            said = critic(memory, attempts, schema)
            memory = said.memory
    assert memory.stagnant == 2
    assert memory.strategies == ("other-table", "drop-clause")
    assert said.suggestion.startswith("Previous fix: Failed.")
    assert "Leave out this part of WHERE: y = 1" in said.suggestion


CODES = st.one_of(
    st.text(max_size=3000),
    st.text("0123456789", min_size=2000, max_size=3000),
    st.just("SELECT x FROM t WHERE " + " AND ".join(f"a{i} = {i}" for i in range(300))),
    st.just("SELECT x FROM t"),
)
ERRORS = st.one_of(st.text(max_size=2000), st.just("no such column: x"))


@settings(max_examples=40)
@given(st.lists(st.tuples(CODES, ERRORS), min_size=11, max_size=11))
def test_the_history_stays_under_its_budget_to_round_ten(tried: list[tuple[str, str]]) -> None:
    with config.using(RULES.with_(history_tokens=200)):
        critic, memory, attempts = Critic(), Memory(), []
        for round_, (code, error) in enumerate(tried):
            attempts.append(attempt(round_, code, error))
            memory = critic(memory, attempts).memory
            assert estimate(memory.text) <= 200
            assert estimate(memory.summary) <= 100


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(reply=st.text(min_size=1, max_size=4000))
def test_a_model_that_condenses_badly_cannot_exceed_it_either(scripted: Any, reply: str) -> None:
    lm, _ = scripted(
        {"critic.reflect": [{"summary": reply}], "critic.diagnose": [{"suggestion": "Use y."}]}
    )
    with (
        config.using(LynxConfig(history_tokens=60)),
        dspy.context(lm=lm, adapter=adapter_for(lm, "json")),
    ):
        critic, memory, attempts = Critic(), Memory(), []
        for round_ in range(5):
            attempts.append(attempt(round_, f"SELECT x{round_} FROM t", "no such column: x"))
            memory = critic(memory, attempts).memory
            assert estimate(memory.text) <= 60


def test_the_oldest_attempt_is_forgotten_first() -> None:
    summary = "\n".join(f"SELECT a{i} -- no such column: a{i}" for i in range(30))
    kept = decayed(Memory(summary, "SELECT b\n-- no such column: b"), 60)
    assert kept.endswith("SELECT b -- no such column: b")
    assert "a29" in kept
    assert "a0 " not in kept


def test_a_long_program_does_not_hide_its_failure() -> None:
    text = render_attempt(attempt(0, "SELECT " + "1, " * 50_000, "no such column: x"), 100)
    assert text.endswith("-- no such column: x")
    assert estimate(text) <= 100


@given(st.text(max_size=400), st.integers(10, 50))
def test_bounded_is_bounded(text: str, budget: int) -> None:
    assert estimate(bounded(text, budget)) <= budget


def test_whether_the_fix_worked_is_not_left_to_the_model() -> None:
    assert advice(Change.PROGRESS, "Previous fix: Failed. Use y.", None) == (
        "Previous fix: Worked. Use y."
    )
    order = Strategy("decompose", "Write it in steps.")
    assert advice(Change.CYCLE, "**Previous fix:** Worked - Add a join.", order) == (
        "Previous fix: Failed. Write it in steps. Add a join."
    )


@given(st.text())
def test_normalising_is_idempotent(code: str) -> None:
    assert normalised_code(normalised_code(code)) == normalised_code(code)


@given(st.text())
def test_an_unchanged_program_has_no_delta(code: str) -> None:
    assert code_delta(code, code) == ""


def test_the_model_is_asked_to_reflect_and_to_diagnose(scripted: Any) -> None:
    lm, engine = scripted(
        {
            "critic.reflect": [{"summary": "x is no column"}],
            "critic.diagnose": [{"suggestion": "Previous fix: Failed. Use y."}],
        }
    )
    full = LynxConfig(stages=frozenset(STAGES), history_tokens=30)
    attempts = [attempt(0, "SELECT x FROM t", "no such column: x")]
    with (
        config.using(full),
        dspy.context(lm=lm, adapter=adapter_for(lm, "json")),
    ):
        critic = Critic()
        memory = critic(Memory(), attempts).memory
        assert not engine.prompts
        attempts.append(attempt(1, "SELECT x FROM t WHERE 1", "no such column: x"))
        said = critic(memory, attempts)
        attempts.append(attempt(2, "SELECT x FROM t WHERE 2 AND x", "no such column: x"))
        said = critic(said.memory, attempts)
    assert said.strategy is not None
    assert said.suggestion == f"Previous fix: Failed. {said.strategy.order} Use y."
    assert said.strategy.order in engine.prompts["critic.diagnose"][-1]
    assert said.memory.summary == "x is no column"
    assert "-- no such column: x" in engine.prompts["critic.reflect"][0]

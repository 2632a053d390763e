"""The closed loop, over scripted replies and a real SQLite database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dspy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lynx_dspy as lynx
from lynx_dspy.config import STAGES, LynxConfig
from lynx_dspy.engines.base import Database
from lynx_dspy.errors import BadInput, ModelError
from lynx_dspy.program import Lynx, best_of
from lynx_dspy.values import Attempt, Limits, Outcome, Row, Schema, Status

JSON = LynxConfig(adapter="json")
GOOD = "SELECT name FROM customers ORDER BY name"
BAD = "SELECT nonsense FROM customers"


class Passing(Database):
    """Another database seen through; sub-classes change one thing."""

    def __init__(self, inner: Database) -> None:
        self.inner, self.url, self.name = inner, inner.url, inner.name
        self.dialect = inner.dialect

    def introspect(self) -> Schema:
        return self.inner.introspect()

    def execute(self, code: str, limits: Limits | None = None) -> Outcome:
        return self.inner.execute(code, limits)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self.inner.query(sql, parameters)

    def fingerprint(self) -> str:
        return self.inner.fingerprint()

    def close(self) -> None:
        self.inner.close()


def stages(**changed: list[Any]) -> dict[str, list[Any]]:
    """Replies of a model that answers well; `stage_name=[...]` changes one."""
    replies: dict[str, list[Any]] = {
        "generator.unknown_terms": [{"terms": []}],
        "generator.align": [{"links": []}],
        "generator.distill": [{"semantic": "", "structural": ""}],
        "generator.intent": [{"intent": "INTENT names of customers"}],
        "generator.ground": [{"grounding": "GROUNDING customers.name"}],
        "generator.formulate": [{"analysis": "", "code": GOOD}],
        "critic.reflect": [{"summary": "SUMMARY"}],
        "critic.diagnose": [{"suggestion": "SUGGESTION use name"}],
        "reviser.repair": [{"analysis": "", "code": GOOD}],
        "verifier.explain": [{"explanation": "EXPLANATION lists names"}],
        "verifier.compare": [{"consistent": True, "mismatch": ""}],
    }
    for name, script in changed.items():
        key = next(k for k in replies if k.endswith(f".{name}"))
        replies[key] = script
    return replies


def ask(lm: dspy.LM, database: Database, program: Lynx | None = None, **inputs: Any) -> Any:
    program = program or Lynx(config=JSON)
    with dspy.context(lm=lm):
        return program(question="Which customers are there?", database=database, **inputs)


def test_predictor_names_are_a_file_format() -> None:
    assert tuple(name for name, _ in Lynx().named_predictors()) == STAGES


def test_a_right_program_is_run_once_and_verified(scripted: Any, shop: Database) -> None:
    lm, engine = scripted(stages())
    answer = ask(lm, shop)
    assert answer.outcome.rows == (("Ada",), ("Bo",), ("Cy",))
    assert answer.verified
    assert answer.explanation == "EXPLANATION lists names"
    assert [a.source for a in answer.attempts] == ["formulate"]
    assert "critic.diagnose" not in engine.prompts
    assert "generator.distill" not in engine.prompts


def test_a_failing_program_is_repaired_with_the_failure_in_sight(
    scripted: Any, shop: Database
) -> None:
    lm, engine = scripted(stages(formulate=[{"analysis": "", "code": BAD}]))
    answer = ask(lm, shop)
    assert answer.outcome.rows == (("Ada",), ("Bo",), ("Cy",))
    assert [a.round for a in answer.attempts] == [0, 1]
    (prompt,) = engine.prompts["reviser.repair"]
    assert "nonsense" in prompt
    assert answer.attempts[0].failure_class == "schema"


def test_each_stage_sees_only_its_own_share(scripted: Any, shop: Database) -> None:
    lm, engine = scripted(stages())
    ask(lm, shop, evidence="EVIDENCE: a customer is a buyer")
    (intent,) = engine.prompts["generator.intent"]
    (ground,) = engine.prompts["generator.ground"]
    (formulate,) = engine.prompts["generator.formulate"]
    assert "EVIDENCE" in intent
    assert "customer_id" not in intent
    assert "customer_id" in ground
    assert "EVIDENCE" not in ground
    assert "GROUNDING customers.name" in formulate
    assert "INTENT" in formulate
    assert "customer_id" not in formulate


def test_the_rubber_duck_does_not_see_the_question(scripted: Any, shop: Database) -> None:
    lm, engine = scripted(stages())
    ask(lm, shop)
    (explain,) = engine.prompts["verifier.explain"]
    assert "Which customers" not in explain
    (compare,) = engine.prompts["verifier.compare"]
    assert "Which customers" in compare
    assert "EXPLANATION lists names" in compare


def test_a_mismatch_asks_for_one_correction(scripted: Any, shop: Database) -> None:
    first = "SELECT city FROM customers"
    lm, engine = scripted(
        stages(
            formulate=[{"analysis": "", "code": first}],
            compare=[
                {"consistent": False, "mismatch": "MISMATCH shows cities"},
                {"consistent": True, "mismatch": ""},
            ],
        )
    )
    answer = ask(lm, shop)
    assert answer.code == GOOD
    assert answer.verified
    assert "MISMATCH shows cities" in engine.prompts["reviser.repair"][0]


def test_a_correction_that_breaks_the_program_is_not_returned(
    scripted: Any, shop: Database
) -> None:
    lm, _ = scripted(
        stages(
            compare=[{"consistent": False, "mismatch": "no"}],
            repair=[{"analysis": "", "code": BAD}],
        )
    )
    answer = ask(lm, shop)
    assert answer.code == GOOD
    assert answer.outcome.status is Status.OK
    assert not answer.verified


def test_a_program_that_would_change_the_database_is_blocked(scripted: Any, shop: Database) -> None:
    lm, _ = scripted(stages(formulate=[{"analysis": "", "code": "DROP TABLE orders"}]))
    answer = ask(lm, shop)
    assert answer.attempts[0].outcome.status is Status.BLOCKED
    assert answer.code == GOOD
    assert shop.query("SELECT COUNT(*) FROM orders") == [(3,)]


@pytest.mark.parametrize(
    "script",
    [
        [BAD],
        ["SELECT a1 FROM customers", "SELECT b2 FROM customers"] * 20,
        ["rubbish", "more rubbish", ""],
        ["SELECT '" + "x" * 100_000],
        ["DROP TABLE orders"],
    ],
)
def test_the_loop_ends_whatever_is_written(
    scripted: Any, shop: Database, script: list[str]
) -> None:
    replies = [{"analysis": "", "code": code} for code in script]
    lm, _ = scripted(stages(formulate=replies, repair=replies))
    answer = ask(lm, shop, Lynx(config=JSON.with_(max_rounds=6)))
    assert not answer.outcome.ran
    assert max(a.round for a in answer.attempts) <= 6
    assert not answer.verified


def test_an_unreadable_reply_degrades_to_no_program(scripted: Any, shop: Database) -> None:
    lm, engine = scripted(stages(formulate=["{"], repair=["{"]))
    answer = ask(lm, shop, Lynx(config=JSON.with_(max_rounds=1)))
    assert answer.outcome.status is Status.NO_PROGRAM
    assert answer.attempts[0].parse_failed
    assert len(engine.prompts["generator.formulate"]) >= 2


def test_tokens_are_counted_by_stage(scripted: Any, shop: Database) -> None:
    lm, engine = scripted(stages())
    answer = ask(lm, shop)
    calls = {name: usage.calls for name, usage in answer.usage.stages.items()}
    assert calls == {name: len(prompts) for name, prompts in engine.prompts.items()}
    assert answer.usage.total.total_tokens == 15 * sum(calls.values())


@pytest.mark.parametrize("question", ["", "  \n", "x" * 100_000])
def test_an_unusable_question_is_refused(scripted: Any, shop: Database, question: str) -> None:
    lm, _ = scripted(stages())
    with dspy.context(lm=lm), pytest.raises(BadInput):
        Lynx(config=JSON)(question=question, database=shop)


def test_no_language_model_is_one_line(shop: Database) -> None:
    with dspy.context(lm=None), pytest.raises(ModelError, match=r"lynx\.lm"):
        Lynx()(question="How many?", database=shop)


def test_an_unreachable_model_is_an_error_and_not_an_answer(scripted: Any, shop: Database) -> None:
    lm, _ = scripted(stages(intent=[dspy.lm15.AuthError("key " + "sk-" + "a" * 20 + " refused")]))
    with pytest.raises(ModelError) as caught:
        ask(lm, shop)
    assert "sk-aaa" not in str(caught.value)


def test_the_profile_follows_the_model(scripted: Any, shop: Database) -> None:
    assert lynx.profile("local/qwen2.5-coder-0.5b").stages < frozenset(STAGES)
    assert lynx.profile("openai/gpt-4o").stages == frozenset(STAGES)


PROGRAMS = st.sampled_from(
    [
        GOOD,
        BAD,
        "SELECT name FROM customers WHERE id > 99",
        "SELECT COUNT(*) FROM orders",
        "SELEC",
        "DELETE FROM orders",
        "",
        "SELECT c.name FROM customers c JOIN orders o ON o.customer_id = c.id",
    ]
)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    programs=st.lists(PROGRAMS, min_size=1, max_size=6),
    verdicts=st.lists(st.sampled_from([True, False]), min_size=1, max_size=4),
)
def test_never_worse_than_the_best_attempt(
    scripted: Any, shop: Database, programs: list[str], verdicts: list[bool]
) -> None:
    replies = [{"analysis": "", "code": code} for code in programs]
    lm, _ = scripted(
        stages(
            formulate=replies[:1],
            repair=replies[1:] or replies,
            compare=[{"consistent": v, "mismatch": "m"} for v in verdicts],
        )
    )
    answer = ask(lm, shop, Lynx(config=JSON.with_(max_rounds=4, verify_rounds=2)))

    def rank(outcome: Outcome, verified: bool | None) -> int:
        return 0 if not outcome.ran else 3 if verified else 2 if outcome.rows else 1

    best = max(rank(a.outcome, a.verified) for a in answer.attempts)
    assert rank(answer.outcome, answer.verified) == best
    assert max(a.round for a in answer.attempts) <= 4


def test_the_best_attempt_is_the_later_of_two_equal_ones() -> None:
    rows = Outcome(Status.OK, ("a",), ((1,),))
    first, second = Attempt(0, "SELECT 1", rows), Attempt(1, "SELECT 2", rows, "repair")
    assert best_of([first, second]) is second
    assert best_of([first.with_(verified=True), second]).code == "SELECT 1"


def test_the_candidate_that_others_agree_on_is_answered(scripted: Any, shop: Database) -> None:
    programs = [
        "SELECT COUNT(*) FROM customers",
        "SELECT 7 FROM customers WHERE id = 1",
        BAD,
        "SELECT COUNT(id) FROM customers",
        "SELECT 8 FROM customers WHERE id = 1",
    ]
    for order in (programs, programs[1:] + programs[:1], programs[::-1]):
        lm, engine = scripted(stages(formulate=[{"analysis": "", "code": p} for p in order]))
        answer = ask(lm, shop, Lynx(config=JSON.with_(candidates=5)))
        assert answer.outcome.rows == ((3,),)
        assert len(engine.prompts["generator.formulate"]) >= 3
        assert "reviser.repair" not in engine.prompts


def test_a_candidate_that_is_rejected_gives_way_to_the_next_result(
    scripted: Any, shop: Database
) -> None:
    programs = ["SELECT 7 FROM customers WHERE id = 1", GOOD, GOOD.replace("name FROM", "id FROM")]
    right, wrong = {"consistent": True, "mismatch": ""}, {"consistent": False, "mismatch": "no"}
    for verdicts, code, repairs in (([wrong, right], GOOD, 0), ([wrong], GOOD, 1)):
        lm, engine = scripted(
            stages(formulate=[{"analysis": "", "code": p} for p in programs], compare=verdicts)
        )
        answer = ask(lm, shop, Lynx(config=JSON.with_(candidates=3, max_rounds=1)))
        assert len(engine.prompts.get("reviser.repair", [])) == repairs
        assert answer.verified == (not repairs)
        assert answer.code == code
        assert len({a.code for a in answer.attempts}) == len(programs)


def test_an_engine_that_is_gone_ends_the_loop(scripted: Any, shop: Database) -> None:
    class Gone(Passing):
        def execute(self, code: str, limits: Limits | None = None) -> Outcome:
            return Outcome(Status.UNAVAILABLE, error="the file vanished")

    lm, engine = scripted(stages())
    answer = ask(lm, Gone(shop))
    assert answer.outcome.status is Status.UNAVAILABLE
    assert "reviser.repair" not in engine.prompts


def test_the_explanation_is_that_of_the_program_answered(scripted: Any, shop: Database) -> None:
    lm, _ = scripted(
        stages(
            explain=[{"explanation": "FIRST"}, {"explanation": "SECOND"}],
            compare=[{"consistent": False, "mismatch": "no"}],
            repair=[{"analysis": "", "code": "SELECT name FROM customers WHERE id > 99"}],
        )
    )
    answer = ask(lm, shop)
    assert (answer.code, answer.explanation) == (GOOD, "FIRST")


@pytest.mark.parametrize(
    "odd", ["\ud800", "\0", "\x1b[31m\u202e", "😀", "{question} %s [[ ## x ]]"]
)
def test_any_characters_may_be_asked_with(scripted: Any, shop: Database, odd: str) -> None:
    lm, engine = scripted(stages())
    with dspy.context(lm=lm):
        answer = Lynx(config=JSON)(question=f"names {odd}?", database=shop, evidence=odd)
    assert answer.outcome.ran
    assert "names" in engine.prompts["generator.formulate"][0]

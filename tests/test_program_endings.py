"""The closed loop under replies that no one should give: it ends in time and says why."""

from __future__ import annotations

from typing import Any

import dspy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lynx_dspy.answers import to_json
from lynx_dspy.cli.show import show_answer
from lynx_dspy.config import LynxConfig
from lynx_dspy.engines.base import Database
from lynx_dspy.errors import ModelError
from lynx_dspy.program import Lynx, best_of
from lynx_dspy.values import Attempt, Ended, FailureClass, Limits, Outcome, Status

CONFIG = LynxConfig(adapter="json", max_rounds=6)
GOOD = "SELECT name FROM customers"
BAD = "SELECT a1 FROM customers"
OTHER = "SELECT b2 FROM customers"
LONG = "SELECT " + " + ".join(f"zz{i}" for i in range(12_000))


def replies(formulate: str, *repairs: Any, **changed: list[Any]) -> dict[str, list[Any]]:
    """A model that writes these programs; a repair may be an exception or raw text."""
    script: dict[str, list[Any]] = {
        "generator.unknown_terms": [{"terms": []}],
        "generator.align": [{"links": []}],
        "generator.distill": [{"semantic": "", "structural": ""}],
        "generator.intent": [{"intent": "I"}],
        "generator.ground": [{"grounding": "G"}],
        "generator.formulate": [{"analysis": "", "code": formulate}],
        "critic.reflect": [{"summary": "S" * 5_000}],
        "critic.diagnose": [{"suggestion": "A" * 5_000}],
        "reviser.repair": [
            {"analysis": "", "code": r} if isinstance(r, str) and r[:1] != "{" else r
            for r in repairs or (formulate,)
        ],
        "verifier.explain": [{"explanation": "E"}],
        "verifier.compare": [{"items": [], "consistent": True, "mismatch": ""}],
    }
    return script | {name.replace("__", "."): values for name, values in changed.items()}


def ask(lm: dspy.LM, database: Database, config: LynxConfig = CONFIG) -> Any:
    with dspy.context(lm=lm):
        return Lynx(config=config)(question="Which customers are there?", database=database)


@pytest.mark.parametrize(
    ("script", "ended"),
    [
        ([GOOD], Ended.VERIFIED),
        ([BAD, BAD], Ended.CYCLE),
        ([BAD, *[OTHER, BAD] * 20], Ended.CYCLE),
        ([BAD, "rubbish", "more rubbish", "rubbish ((", "still rubbish", "no", "x"], None),
        (["DROP TABLE orders"], Ended.CYCLE),
        ([LONG], Ended.CYCLE),
        (["SELECT '" + "x" * 100_000], Ended.CYCLE),
        (["```sql\nSELECT a1 FROM customers"], Ended.CYCLE),
        ([BAD, *[f"SELECT c{i} FROM customers" for i in range(20)]], Ended.ROUNDS),
        ([BAD, *[f"SELECT a1 FROM customers LIMIT {i}" for i in range(20)]], None),
        ([BAD, "{", "{"], None),
    ],
)
def test_the_loop_ends_and_says_why(
    scripted: Any, shop: Database, script: list[str], ended: Ended | None
) -> None:
    lm, engine = scripted(replies(script[0], *script[1:]))
    answer = ask(lm, shop)
    assert answer.ended in ([ended] if ended else [Ended.CYCLE, Ended.STAGNATION, Ended.ROUNDS])
    assert max(a.round for a in answer.attempts) <= CONFIG.max_rounds
    assert len(engine.prompts["reviser.repair"]) <= 4 * CONFIG.max_rounds
    assert all(len(p) < 16_000 for texts in engine.prompts.values() for p in texts)
    assert shop.query("SELECT COUNT(*) FROM orders") == [(3,)]


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("boom"),
        TimeoutError("slow"),
        dspy.lm15.TimeoutError("slow"),
        dspy.lm15.ServerError("down"),
        dspy.lm15.AuthError("key " + "sk-" + "a" * 20 + " refused"),
    ],
)
@pytest.mark.parametrize("stage", ["reviser__repair", "critic__diagnose"])
def test_a_model_that_fails_midway_does_not_take_what_was_found(
    scripted: Any, shop: Database, error: Exception, stage: str
) -> None:
    script = replies(BAD, OTHER, f"{GOOD} WHERE nothing", **{stage: [error]})
    lm, _ = scripted(script)
    answer = ask(lm, shop)
    assert answer.ended is Ended.UNAVAILABLE
    assert isinstance(answer.fault, ModelError)
    assert "sk-aaa" not in str(answer.fault)
    assert answer.code in (BAD, OTHER)


def test_an_answer_that_ran_survives_a_verifier_that_cannot_be_asked(
    scripted: Any, shop: Database
) -> None:
    down = dspy.lm15.ServerError("down")
    lm, _ = scripted(replies(GOOD, verifier__compare=[down]))
    answer = ask(lm, shop)
    assert (answer.code, answer.verified, answer.ended) == (GOOD, False, Ended.UNAVAILABLE)


def test_a_model_that_never_wrote_a_program_is_an_error(scripted: Any, shop: Database) -> None:
    lm, _ = scripted(replies(GOOD, generator__formulate=[dspy.lm15.ServerError("down")]))
    with pytest.raises(ModelError):
        ask(lm, shop)


def test_no_repair_is_begun_once_the_tokens_are_spent(scripted: Any, shop: Database) -> None:
    lm, engine = scripted(replies(BAD, *[f"SELECT c{i} FROM customers" for i in range(20)]))
    answer = ask(lm, shop, CONFIG.with_(question_tokens=60))
    assert answer.ended is Ended.TOKENS
    assert len(engine.prompts["reviser.repair"]) == 1
    assert answer.usage.total.total_tokens <= 60 + 30


def test_a_rejected_program_is_told_apart_from_one_that_nobody_judged(
    scripted: Any, shop: Database
) -> None:
    no = [{"items": [], "consistent": False, "mismatch": "no"}]
    rejected = ask(scripted(replies(GOOD, f"{GOOD} LIMIT 2", verifier__compare=no))[0], shop)
    assert (rejected.ended, rejected.verified) == (Ended.REJECTED, False)
    unjudged = CONFIG.with_(stages=CONFIG.stages - {"verifier.compare"})
    assert ask(scripted(replies(GOOD))[0], shop, unjudged).ended is Ended.RUNS


def test_the_last_round_is_not_diagnosed(scripted: Any, shop: Database) -> None:
    lm, engine = scripted(replies(BAD, OTHER))
    assert ask(lm, shop, CONFIG.with_(max_rounds=1)).ended is Ended.ROUNDS
    assert "critic.diagnose" not in engine.prompts


def test_why_it_ended_is_in_the_json_and_on_the_terminal(
    scripted: Any, shop: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ask(scripted(replies(BAD))[0], shop)
    assert to_json(answer, "q", shop, {})["ended"] == "cycle"
    show_answer(answer, trace=True)
    said = capsys.readouterr().out
    assert "ended: cycle" in said
    assert "a program came back that had been tried" in said


def test_fixes_of_an_answered_question_are_kept_where_a_store_is_named(
    scripted: Any, shop: Database, tmp_path: Any
) -> None:
    path = tmp_path / "fixes.jsonl"
    keeping = CONFIG.with_(fix_patterns=str(path))
    answer = ask(scripted(replies(BAD, GOOD))[0], shop, keeping)
    assert answer.patterns and "SELECT -a1 +name" in answer.patterns[0]
    assert "SELECT -a1 +name" in path.read_text()
    lm, engine = scripted(replies(BAD, GOOD))
    ask(lm, shop, keeping)
    assert "SELECT -a1 +name" in engine.prompts["reviser.repair"][0]


class Staged(Database):
    """An engine whose outcome of each program is decided beforehand."""

    def __init__(self, inner: Database, outcomes: dict[str, Outcome]) -> None:
        self.inner, self.outcomes = inner, outcomes
        self.url, self.name, self.dialect = inner.url, inner.name, inner.dialect

    def introspect(self) -> Any:
        return self.inner.introspect()

    def execute(self, code: str, limits: Limits | None = None) -> Outcome:
        return self.outcomes[code]

    def query(self, sql: str, parameters: Any = ()) -> Any:
        return self.inner.query(sql, parameters)

    def fingerprint(self) -> str:
        return self.inner.fingerprint()

    def close(self) -> None:
        self.inner.close()


CODES = [f"SELECT name, {i} FROM customers" for i in range(6)]
OUTCOMES = st.sampled_from(
    [
        Outcome(Status.OK, ("a",), ((1,),)),
        Outcome(Status.EMPTY, ("a",)),
        Outcome(Status.ERROR, error="no such column: z", failure_class=FailureClass.SCHEMA),
        Outcome(Status.ERROR, error="type mismatch", failure_class=FailureClass.SEMANTIC),
        Outcome(Status.TIMEOUT, error="too slow"),
        Outcome(Status.BLOCKED, error="not allowed"),
        Outcome(Status.UNAVAILABLE, error="gone"),
    ]
)
VERDICTS = st.sampled_from(
    [
        {"items": [], "consistent": True, "mismatch": ""},
        {"items": [], "consistent": False, "mismatch": "no"},
        {"items": ['1 violated: "Which customers"'], "consistent": True, "mismatch": ""},
        "{",
    ]
)


def worth(outcome: Outcome, verified: bool | None) -> int:
    if not outcome.ran:
        return 0
    return 3 if verified else 2 if outcome.rows else 1


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    outcomes=st.lists(OUTCOMES, min_size=6, max_size=6),
    order=st.lists(st.sampled_from(CODES), min_size=2, max_size=7),
    verdicts=st.lists(VERDICTS, min_size=1, max_size=4),
    fails_at=st.integers(0, 8),
    candidates=st.sampled_from([1, 1, 3]),
)
def test_the_answer_is_never_worse_than_the_best_attempt(
    scripted: Any,
    shop: Database,
    outcomes: list[Outcome],
    order: list[str],
    verdicts: list[Any],
    fails_at: int,
    candidates: int,
) -> None:
    repairs: list[Any] = list(order[1:])
    if fails_at < len(repairs):
        repairs[fails_at] = dspy.lm15.ServerError("down")
    lm, _ = scripted(replies(order[0], *repairs, verifier__compare=verdicts))
    config = CONFIG.with_(
        max_rounds=5, verify_rounds=2, candidates=candidates, local_edits=False, parse_retries=0
    )
    answer = ask(lm, Staged(shop, dict(zip(CODES, outcomes, strict=True))), config)
    best = max(worth(a.outcome, a.verified) for a in answer.attempts)
    assert worth(answer.outcome, answer.verified) == best
    assert max(a.round for a in answer.attempts) <= 5
    assert (answer.ended is Ended.VERIFIED) == answer.verified
    if answer.ended is Ended.RUNS:
        assert answer.outcome.ran


ATTEMPTS = st.builds(
    Attempt,
    st.integers(0, 10),
    st.sampled_from(CODES),
    OUTCOMES,
    st.sampled_from(["formulate", "sample", "static", "repair"]),
    verified=st.sampled_from([None, True, False]),
)


@given(st.lists(ATTEMPTS, min_size=1, max_size=12))
def test_the_best_attempt_is_one_of_them_and_no_later_one_is_as_good(
    attempts: list[Attempt],
) -> None:
    chosen = best_of(attempts)
    place = max(i for i, a in enumerate(attempts) if a is chosen)
    ranks = [worth(a.outcome, a.verified) for a in attempts]
    assert ranks[place] == max(ranks)
    assert all(rank < ranks[place] for rank in ranks[place + 1 :])

"""What a model refuses is dropped step by step, over a scripted engine and a real database."""

from __future__ import annotations

import json
from typing import Any

import dspy
import pytest
from dspy.utils import exceptions as raised

import lynx_dspy as lynx
from lynx_dspy.answers import to_json
from lynx_dspy.cli.show import show_answer
from lynx_dspy.config import EMBEDDED, LynxConfig
from lynx_dspy.engines.base import Database
from lynx_dspy.errors import ModelError
from lynx_dspy.grounding.packs import Pack, Page
from lynx_dspy.modules.fallback import Rung, asked_with_less, reason_of, watching
from lynx_dspy.program import Lynx
from lynx_dspy.values import Dropped, Knowledge, Status

FILTERED = dspy.lm15.InvalidRequestError(
    "The response was filtered due to the prompt triggering the content management policy.",
    provider="test",
)
TOO_LONG = dspy.lm15.ContextLengthError("8,192 tokens at most", provider="test")
WITHHELD = dspy.lm15.Response(
    id=None,
    model="scripted",
    message=dspy.lm15.Message.assistant(""),
    finish_reason="content_filter",
    usage=dspy.lm15.Usage(input_tokens=10, output_tokens=0, total_tokens=10),
)
OBJECTIONS = {"content filter": FILTERED, "length": TOO_LONG, "withheld": WITHHELD}

OUTSIDE = "A quorbex of the trade is a returning buyer."
INSIDE = "Seasonal customers ordered between May and September."
EVIDENCE = "EVIDENCE-STAYS"
SAMPLE = "Bergen"
INTENT, GROUND, FORMULATE = "generator.intent", "generator.ground", "generator.formulate"
RUNGS = ("external text", "documents", "samples")


def replies(**changed: list[Any]) -> dict[str, list[Any]]:
    script: dict[str, list[Any]] = {
        "generator.unknown_terms": [{"terms": ["quorbex"]}],
        "generator.align": [{"links": []}],
        INTENT: [{"intent": "I"}],
        GROUND: [{"grounding": "G"}],
        FORMULATE: [{"analysis": "", "code": "SELECT name FROM customers"}],
        "critic.diagnose": [{"suggestion": ""}],
        "reviser.repair": [{"analysis": "", "code": ""}],
        "verifier.explain": [{"explanation": "E"}],
        "verifier.compare": [{"consistent": True, "mismatch": ""}],
    }
    return script | {f"generator.{name}": said for name, said in changed.items()}


def ask(lm: dspy.LM, shop: Database, config: LynxConfig | None = None) -> dspy.Prediction:
    pages = [(Page("quorbex.md", "Quorbex", "https://wiki.example/Q", ""), OUTSIDE)]
    settings = config or LynxConfig(adapter="json", jit_below=1.0, distill_above_tokens=9_999)
    with dspy.context(lm=lm):
        return Lynx(config=settings)(
            question="Which customers are a quorbex?",
            database=shop,
            documents=lynx.Documents.from_texts({"a.md": INSIDE}, embedder=None),
            evidence=EVIDENCE,
            sources=[Pack("pack", pages)],
        )


def dropped(stage: str, why: str, *what: str) -> tuple[Dropped, ...]:
    return tuple(Dropped(stage, one, why) for one in what)


@pytest.mark.parametrize("kind", OBJECTIONS)
@pytest.mark.parametrize("times", [0, 1, 2])
def test_an_intent_that_is_refused_is_asked_with_less(
    kind: str, times: int, scripted: Any, shop: Database
) -> None:
    script = [OBJECTIONS[kind]] * times + [{"intent": "I"}]
    lm, engine = scripted(replies(intent=script))
    answer = ask(lm, shop)
    why = "content filter" if kind == "withheld" else kind
    assert answer.dropped == dropped(INTENT, why, *RUNGS[:times])
    assert answer.outcome.status is Status.OK
    last = engine.prompts[INTENT][-1]
    assert len(engine.prompts[INTENT]) == times + 1
    assert ("returning buyer" in last) == (times < 1)
    assert ("Seasonal" in last) == (times < 2)
    assert EVIDENCE in last
    assert len(engine.prompts[FORMULATE]) == 1


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_grounding_that_is_refused_loses_samples_last(
    times: int, scripted: Any, shop: Database
) -> None:
    lm, engine = scripted(replies(ground=[TOO_LONG] * times + [{"grounding": "G"}]))
    answer = ask(lm, shop)
    assert answer.dropped == dropped(GROUND, "length", *RUNGS[:times])
    last = engine.prompts[GROUND][-1]
    assert (SAMPLE in last) == (times < 3)
    assert "customer_id" in last
    assert "Seasonal" not in engine.prompts[INTENT][-1] or times < 2
    assert answer.knowledge.structural in last
    assert answer.outcome.status is Status.OK


def test_a_formulation_that_is_refused_gets_an_intent_written_anew(
    scripted: Any, shop: Database
) -> None:
    said = [{"intent": "TAINTED"}, {"intent": "CLEAN"}]
    right = {"analysis": "", "code": "SELECT name FROM customers"}
    lm, engine = scripted(replies(intent=said, formulate=[FILTERED, right]))
    answer = ask(lm, shop)
    assert answer.dropped == dropped(FORMULATE, "content filter", "external text")
    assert "CLEAN" in engine.prompts[FORMULATE][-1]
    assert "returning buyer" not in engine.prompts[INTENT][-1]


@pytest.mark.parametrize("stage", [INTENT, GROUND, FORMULATE])
@pytest.mark.parametrize("kind", OBJECTIONS)
def test_a_model_that_always_refuses_ends_in_an_answer(
    kind: str, stage: str, scripted: Any, shop: Database
) -> None:
    lm, _ = scripted(replies(**{stage.partition(".")[2]: [OBJECTIONS[kind]]}))
    answer = ask(lm, shop)
    assert [one.what for one in answer.dropped] == [*RUNGS, "nothing"]
    assert {one.stage for one in answer.dropped} == {stage}
    status = Status.NO_PROGRAM if stage == FORMULATE else Status.OK
    assert answer.attempts[0].outcome.status is status


def test_the_embedded_profile_falls_back_too(scripted: Any, shop: Database) -> None:
    right = {"code": "SELECT name FROM customers"}
    settings = EMBEDDED.with_(adapter="json", candidates=1)
    lm, engine = scripted(replies(formulate=[TOO_LONG, TOO_LONG, right]))
    answer = ask(lm, shop, settings)
    first, second, third = engine.prompts[FORMULATE]
    assert ("Seasonal" in first, "Seasonal" in second) == (True, False)
    assert (SAMPLE in second, SAMPLE in third) == (True, False)
    assert answer.dropped == dropped(FORMULATE, "length", "documents", "samples")


def test_another_refusal_is_an_error(scripted: Any, shop: Database) -> None:
    error = dspy.lm15.InvalidRequestError("unknown parameter: stop", provider="test")
    lm, _ = scripted(replies(intent=[error]))
    with pytest.raises(ModelError, match="unknown parameter"):
        ask(lm, shop)


def test_what_was_dropped_is_shown(scripted: Any, shop: Database, capsys: Any) -> None:
    lm, _ = scripted(replies(intent=[FILTERED, {"intent": "I"}]))
    answer = ask(lm, shop)
    record = json.loads(json.dumps(to_json(answer, "q", shop, {})))
    assert record["dropped"] == [
        {"stage": INTENT, "what": "external text", "why": "content filter"}
    ]
    assert record["knowledge"]["external"] == ""
    show_answer(answer, trace=True)
    line = "dropped: external text (content filter, refused at generator.intent)"
    assert line in capsys.readouterr().out


def test_only_refusals_of_content_and_length_count() -> None:
    refused = raised.LMInvalidRequestError("Bad Request", provider_code="content_filter")
    assert reason_of(refused) == "content filter"
    assert reason_of(raised.ContextWindowExceededError()) == "length"
    assert reason_of(raised.LMInvalidRequestError("invalid temperature")) == ""
    assert reason_of(raised.LMRateLimitError("flagged: too many requests")) == ""


def test_no_rung_is_made_that_is_not_needed() -> None:
    def lesser() -> Any:
        raise AssertionError("asked for less without an objection")
        yield Rung("x", Knowledge())

    assert asked_with_less(lambda k, _: (k, None), Knowledge("a"), lesser()) == (Knowledge("a"), ())


def test_a_watch_sees_its_own_calls_alone(scripted: Any) -> None:
    lm, _ = scripted({})
    with dspy.context(lm=lm), watching() as outer:
        assert not outer.filtered
    assert outer.history == []

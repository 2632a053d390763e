from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import dspy

from lynx_dspy import config
from lynx_dspy.config import LynxConfig
from lynx_dspy.lm.adapter import adapter_for
from lynx_dspy.modules.generator import Align, Formulate
from lynx_dspy.modules.verifier import Compare

INPUTS = {"dialect": "sqlite", "syntax": "", "grounding": "t(a)", "intent": "", "question": "a?"}


def ask(lm: dspy.BaseLM, settings: LynxConfig, **changed: Any) -> dspy.Prediction:
    with config.using(settings), dspy.context(lm=lm, adapter=adapter_for(lm, "json")):
        return Formulate()(**INPUTS, **changed)


def test_a_stage_that_is_left_out_costs_no_call(scripted: Any) -> None:
    lm, engine = scripted({})
    reply = ask(lm, LynxConfig(stages=frozenset()))
    assert reply.code == ""
    assert not engine.prompts


def test_a_stage_with_nothing_to_do_costs_no_call(scripted: Any) -> None:
    lm, engine = scripted({})
    with config.using(LynxConfig()), dspy.context(lm=lm, adapter=adapter_for(lm, "json")):
        assert Align()(elements="t(a)", concepts=[], question="a?").links == []
        assert Compare()(explanation="", intent="", question="a?").consistent is None
    assert not engine.prompts


def test_an_unreadable_reply_is_asked_for_again(scripted: Any) -> None:
    lm, engine = scripted({"generator.formulate": ["{", {"analysis": "", "code": "SELECT a"}]})
    reply = ask(lm, LynxConfig())
    assert reply.code == "SELECT a"
    assert not reply.get("parse_failed")
    assert len(engine.prompts["generator.formulate"]) == 2


def test_a_prompt_that_is_too_long_degrades_to_empty_fields(scripted: Any) -> None:
    error = dspy.lm15.ContextLengthError("too long", provider="test")
    lm, _ = scripted({"generator.formulate": [error]})
    reply = ask(lm, LynxConfig())
    assert (reply.code, reply.parse_failed) == ("", True)


def test_an_omitted_output_is_not_asked_for(scripted: Any) -> None:
    lm, engine = scripted({"generator.formulate": [{"code": "SELECT a"}]})
    reply = ask(lm, LynxConfig(omitted_outputs=frozenset({"analysis"})))
    assert reply.code == "SELECT a"
    assert "analysis" not in engine.prompts["generator.formulate"][0].casefold()


def test_empty_inputs_are_not_shown(scripted: Any) -> None:
    lm, engine = scripted({"generator.formulate": [{"analysis": "", "code": "SELECT a"}]})
    ask(lm, LynxConfig())
    shown = engine.prompts["generator.formulate"][0].rpartition("Dialect: sqlite")[2]
    assert "Syntax:" not in shown
    assert "Grounding: t(a)" in shown


class Silent(dspy.BaseLM):
    """A server that answers, with no choice in its answer."""

    def forward(self, prompt: Any = None, messages: Any = None, **options: Any) -> Any:
        return SimpleNamespace(choices=[], usage={}, model="silent")


def test_an_answer_without_a_choice_degrades_to_empty_fields() -> None:
    reply = ask(Silent("test/silent"), LynxConfig())
    assert (reply.code, reply.parse_failed) == ("", True)


def test_brackets_without_end_are_an_unreadable_reply(scripted: Any) -> None:
    lm, _ = scripted({"generator.formulate": ["[" * 100_000, '{"code":' * 20_000]})
    assert ask(lm, LynxConfig()).parse_failed


def test_half_a_character_in_a_reply_is_replaced(scripted: Any) -> None:
    lm, _ = scripted({"generator.formulate": [r'{"analysis": "\ud800", "code": "SELECT \udfff"}']})
    reply = ask(lm, LynxConfig())
    assert (reply.analysis, reply.code) == ("?", "SELECT ?")

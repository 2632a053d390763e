"""A program and a model come out of JSON as they went in; keys stay here."""

from __future__ import annotations

import json
from types import ModuleType

import dspy
import pytest

import lynx_dspy as lynx
from lynx_dspy.errors import BadInput
from lynx_dspy.lm import describe
from lynx_dspy.modules.critic import Critic
from lynx_dspy.optimize.harvest import Traced
from lynx_dspy.optimize.search import program_hash
from lynx_dspy.optimize.shipping import packed, packed_lm, unpacked, unpacked_lm


def through_json(program: dspy.Module) -> tuple[dict[str, object], dspy.Module]:
    record = json.loads(json.dumps(packed(program)))
    return record, unpacked(record)


@pytest.mark.parametrize("without", [(), ("verification",), ("ssd-saa", "delta-memory")])
def test_a_program_of_known_parts_is_plain_json(
    without: tuple[str, ...], counting: ModuleType
) -> None:
    program = lynx.ablate(without, counting.program(max_rounds=3))
    stage = program.generator.formulate
    stage.signature = stage.signature.with_instructions("Write one query.\nNothing else.")
    stage.demos = [dspy.Example(question="How many?", code="SELECT 1")]
    record, again = through_json(program)
    assert record.keys() == {"plain"}
    assert isinstance(again, lynx.Lynx) and program_hash(again) == program_hash(program)
    assert again.config == program.config


def test_a_program_without_a_config_keeps_none() -> None:
    record, again = through_json(lynx.Lynx())
    assert record.keys() == {"plain"}
    assert isinstance(again, lynx.Lynx) and again.config is None


def test_what_plain_json_would_lose_is_pickled() -> None:
    class Own(lynx.Lynx):
        pass

    assert packed(Own()).keys() == {"pickle"}
    program = lynx.Lynx()
    program.generator.limit = 7
    record, again = through_json(program)
    assert record.keys() == {"pickle"} and again.generator.limit == 7


def test_a_traced_program_is_traced_there_too() -> None:
    record, again = through_json(Traced(lynx.Lynx()))
    assert record.keys() == {"traced"} and isinstance(again, Traced)


def test_what_cannot_be_sent_is_told() -> None:
    program = lynx.Lynx(critic=Critic())
    program.generator.formulate.lm = dspy.LM("openai/x")
    with pytest.raises(BadInput, match=r"generator\.formulate has a language model of its own"):
        packed(program)


def test_models_are_made_again_as_they_were_asked_for(counting: ModuleType) -> None:
    served = lynx.lm("openai/tiny@http://127.0.0.1:1/v1", temperature=0.5, cache=False, affinity=1)
    plain = dspy.LM("openai/gpt-4o", temperature=0.2, max_tokens=77)
    for model in (served, plain, served.copy(temperature=0.9, seed=3)):
        again = unpacked_lm(json.loads(json.dumps(packed_lm(model))))
        assert describe(again) == describe(model)
        assert (again.kwargs, again.cache) == (model.kwargs, model.cache)


def test_keys_are_never_sent(monkeypatch: pytest.MonkeyPatch, counting: ModuleType) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abcdefghijklmnop")
    monkeypatch.setenv("LYNX_LM_KEY", "qrstuvwxyz")
    for name in ("openai/gpt-4o", "openai/tiny@http://127.0.0.1:1/v1"):
        sent = json.dumps(packed_lm(lynx.lm(name)))
        assert "sk-abc" not in sent and "qrst" not in sent
        with pytest.raises(BadInput, match="api_key"):
            packed_lm(lynx.lm(name, api_key="sk-abcdefghijklmnop"))
    with pytest.raises(BadInput, match="cannot be made in another process"):
        packed_lm(counting.model(counting.CountingEngine()))

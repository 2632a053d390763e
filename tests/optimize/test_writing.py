"""The writer's replies are counted, kept, and given again in the same order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError, ContextWindowExceededError

from lynx_dspy.errors import ModelError
from lynx_dspy.optimize.budget import Budget, Meter
from lynx_dspy.optimize.writing import Halt, Lenient, writing


class Numbering:
    """Replies with the number of the call; draws are those that it was asked to use."""

    supported_params = frozenset({"seed"})

    def __init__(self, fails: Exception | None = None) -> None:
        self.fails, self.draws = fails, list[Any]()

    def complete(self, request: dspy.lm15.Request) -> dspy.lm15.Response:
        self.draws.append(request.config.seed)
        if self.fails is not None:
            raise self.fails
        return dspy.lm15.Response(
            id=None,
            model="numbering",
            message=dspy.lm15.Message.assistant(f"reply {len(self.draws)}"),
            finish_reason="stop",
            usage=dspy.lm15.Usage(input_tokens=7, output_tokens=2, total_tokens=9),
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Numbering:
        return self


def model(engine: Numbering) -> dspy.LM:
    return dspy.LM("test/numbering", engine=engine, cache=False, num_retries=0, temperature=0.0)


def asked(engine: Numbering, folder: Path, meter: Meter, prompts: list[str]) -> list[str]:
    with writing(model(engine), folder, "gepa", meter, 1.0) as writer:
        return [writer(prompt)[0] for prompt in prompts]


def test_the_same_request_draws_anew_and_replays_in_order(tmp_path: Path) -> None:
    engine, meter = Numbering(), Meter(Budget())
    assert asked(engine, tmp_path, meter, ["a", "a", "b"]) == ["reply 1", "reply 2", "reply 3"]
    assert len(set(engine.draws)) == 3
    assert (meter.spent.calls, meter.spent.tokens) == (3, 27)
    again, later = Numbering(), Meter(Budget())
    assert asked(again, tmp_path, later, ["a", "b", "a", "c"]) == [
        "reply 1",
        "reply 3",
        "reply 2",
        "reply 1",
    ]
    assert len(again.draws) == 1 and later.spent.calls == 4


def test_a_spent_budget_halts_after_the_reply_is_kept(tmp_path: Path) -> None:
    engine = Numbering()
    with pytest.raises(Halt):
        asked(engine, tmp_path, Meter(Budget(lm_calls=2)), ["a", "b", "c"])
    assert len(engine.draws) == 2
    assert asked(Numbering(), tmp_path, Meter(Budget()), ["a", "b"]) == ["reply 1", "reply 2"]


def test_what_cannot_be_asked_halts_and_what_is_too_long_does_not(tmp_path: Path) -> None:
    refused = Numbering(dspy.lm15.AuthError("401"))
    with pytest.raises(Halt) as halt:
        asked(refused, tmp_path, Meter(Budget()), ["a"])
    assert isinstance(halt.value.cause, ModelError)
    with pytest.raises(ContextWindowExceededError):
        asked(Numbering(dspy.lm15.ContextLengthError("long")), tmp_path, Meter(Budget()), ["a"])


def test_one_text_may_come_without_markers() -> None:
    one, two = dspy.Signature("a -> text"), dspy.Signature("a -> text, more")
    assert Lenient().parse(one, " Write SQL. ") == {"text": "Write SQL."}
    assert Lenient().parse(one, "[[ ## text ## ]]\nWrite.\n[[ ## completed ## ]]") == {
        "text": "Write."
    }
    for signature, reply in ((one, "  "), (two, "Write SQL.")):
        with pytest.raises(AdapterParseError):
            Lenient().parse(signature, reply)

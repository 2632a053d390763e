"""Every call is counted once, under its stage and round, whatever LM answers it."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import uuid
from collections.abc import Callable
from typing import Any, ClassVar

import dspy
import pytest
from dspy import lm15

from lynx_dspy.lm.ledger import Call, Ledger, _call_of, at_round
from lynx_dspy.values import Usage

Answer = Callable[[lm15.Request], str]


class Engine:
    """Answers by a function; reports 10 prompt and 4 completion tokens unless told not to."""

    def __init__(self, answer: Answer, counts: bool = True) -> None:
        self.answer, self.counts, self.calls = answer, counts, 0

    def complete(self, request: lm15.Request) -> lm15.Response:
        self.calls += 1
        usage = lm15.Usage(10, 4) if self.counts else lm15.Usage()
        message = lm15.Message.assistant(self.answer(request))
        return lm15.Response(None, request.model, message, "stop", usage)

    def __deepcopy__(self, memo: dict[int, Any]) -> Engine:
        return self


class AsyncEngine:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def complete(self, request: lm15.Request) -> lm15.Response:
        return self.engine.complete(request)


class Named(dspy.Predict):
    """What the ledger expects of a stage."""

    stage_name = "generator.formulate"


class Program(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.named, self.plain = Named("question -> answer"), dspy.Predict("question -> answer")

    def forward(self, question: str) -> dspy.Prediction:
        self.named(question=question)
        with at_round(2):
            return self.plain(question=question)


@pytest.fixture
def lm() -> dspy.LM:
    engine = Engine(lambda request: "[[ ## answer ## ]]\n42\n[[ ## completed ## ]]")
    name = f"test/{uuid.uuid4()}"
    return dspy.LM(name, engine=engine, async_engine=AsyncEngine(engine), temperature=0.0)


def test_calls_are_booked_by_stage_and_round(lm: dspy.LM) -> None:
    ledger = Ledger()
    with dspy.context(lm=lm), ledger.recording():
        Program()(question="a")
    assert [(c.stage, c.round) for c in ledger.calls] == [
        ("generator.formulate", 0),
        ("Predict", 2),
    ]
    assert ledger.calls[0].finish_reason == "stop" and ledger.calls[0].seconds > 0


def test_a_cache_hit_is_logical_but_not_billed(lm: dspy.LM) -> None:
    ledger = Ledger()
    with dspy.context(lm=lm), ledger.recording():
        Named("question -> answer")(question="b")
        Named("question -> answer")(question="b")
    assert [c.cached for c in ledger.calls] == [False, True]
    assert ledger.report().stages == {"generator.formulate": Usage(2, 20, 8, 14)}
    assert ledger.report().total.total_tokens == 28


def test_threads_of_dspy_and_plain_threads_are_counted(lm: dspy.LM) -> None:
    ledger, predict = Ledger(), Named("question -> answer")
    with dspy.context(lm=lm), ledger.recording():
        rows = [(predict, dspy.Example(question=str(n)).with_inputs("question")) for n in range(8)]
        dspy.Parallel(num_threads=4, disable_progress_bar=True)(rows)
        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: context.run(predict, question="plain"))
        thread.start()
        thread.join()
    assert len(ledger.calls) == 9 and ledger.report().total.billed_tokens == 9 * 14


def test_ledgers_of_questions_that_run_side_by_side_stay_apart(lm: dspy.LM) -> None:
    def ask(n: int) -> Ledger:
        with Ledger().recording() as ledger:
            for k in range(n):
                Named("question -> answer")(question=f"{n}.{k}")
        return ledger

    class Asker(dspy.Module):
        def forward(self, n: int) -> Ledger:
            return ask(n)

    whole = Ledger()
    with dspy.context(lm=lm), whole.recording():
        rows = [(Asker(), dspy.Example(n=n).with_inputs("n")) for n in range(1, 5)]
        ledgers = dspy.Parallel(num_threads=4, disable_progress_bar=True)(rows)
    assert [len(ledger.calls) for ledger in ledgers] == [1, 2, 3, 4]
    assert len(whole.calls) == 10


def test_async_calls_and_bare_calls_are_counted(lm: dspy.LM) -> None:
    ledger = Ledger()
    with dspy.context(lm=lm), ledger.recording():
        asyncio.run(Named("question -> answer").acall(question="async"))
        lm("bare")
    assert [c.stage for c in ledger.calls] == ["generator.formulate", "lm"]


def test_an_lm_of_the_old_kind_is_counted() -> None:
    class Old(dspy.BaseLM):
        def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
            from dspy.clients.call_result import attributes

            usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
            choice = {"message": {"content": "hi"}, "finish_reason": "length"}
            return attributes({"model": "old", "choices": [choice], "usage": usage})

    with Ledger().recording() as ledger:
        Old("old/one")("x")
    [call] = ledger.calls
    assert (call.prompt_tokens, call.completion_tokens, call.finish_reason) == (3, 2, "length")


def test_counts_that_a_model_does_not_report_are_estimated() -> None:
    lm = dspy.LM(f"test/{uuid.uuid4()}", engine=Engine(lambda r: "one two", counts=False))
    with Ledger().recording() as ledger:
        lm("SELECT name FROM customer")
    [call] = ledger.calls
    assert call.estimated and (call.prompt_tokens, call.completion_tokens) == (5, 2)


def test_calls_are_counted_with_history_switched_off(lm: dspy.LM) -> None:
    with dspy.context(lm=lm, disable_history=True), Ledger().recording() as ledger:
        Named("question -> answer")(question="c")
    [call] = ledger.calls
    assert call.estimated and call.prompt_tokens > 10 and call.stage == "generator.formulate"


def test_failed_calls_and_calls_outside_are_not_booked(lm: dspy.LM) -> None:
    def fail(request: lm15.Request) -> str:
        raise lm15.ServerError("down")

    broken = dspy.LM(f"test/{uuid.uuid4()}", engine=Engine(fail), num_retries=0)
    with Ledger().recording() as ledger, pytest.raises(dspy.LMServerError):
        broken("x")
    lm("outside")
    assert ledger.calls == ()


def test_usage_of_a_call() -> None:
    call = Call("s", 0, 5, 2, cached=True, seconds=0.1, finish_reason="stop")
    assert call.usage == Usage(1, 5, 2, 0)


def test_a_replayed_call_without_counts_is_not_billed() -> None:
    class Replay:
        usage: ClassVar[dict[str, int]] = {}
        cache_hit = True

    entry = {"response": Replay(), "usage": {}, "messages": [{"content": "how many rows"}]}
    call = _call_of({**entry, "outputs": ["SELECT 1"]}, 0.0)
    assert call.cached
    assert call.prompt_tokens > 0
    assert call.usage.billed_tokens == 0

"""Token ledger: what each stage cost, by round and question, in threads and on cache hits.

DSPy appends every finished call to the history of each module on the caller stack, in the thread
that made the call. A ledger stands on that stack as one more caller, so any `dspy.LM` is counted
(scripted engines, API models, a user's own) without being wrapped. A callback measures the time.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.utils.callback import ACTIVE_CALL_ID, BaseCallback

from lynx_dspy.tokens import estimate
from lynx_dspy.values import Usage, UsageReport

_round: ContextVar[int] = ContextVar("lynx_round", default=0)


@contextmanager
def at_round(number: int) -> Iterator[None]:
    """Book the calls made inside the block under this round (0 is the first program)."""
    token = _round.set(number)
    try:
        yield
    finally:
        _round.reset(token)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a model. `cached` calls cost nothing; `seconds` is wall time with queueing.

    `estimated` says that the model reported no counts and `tokens.estimate` stands in.
    """

    stage: str
    round: int
    prompt_tokens: int
    completion_tokens: int
    cached: bool
    seconds: float
    finish_reason: str
    estimated: bool = False

    @property
    def usage(self) -> Usage:
        total = self.prompt_tokens + self.completion_tokens
        return Usage(1, self.prompt_tokens, self.completion_tokens, 0 if self.cached else total)


class Ledger:
    """Collects the calls made inside `recording()`. One ledger a question; ledgers may nest."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._lock = threading.Lock()

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls so far, in the order in which they ended."""
        with self._lock:
            return tuple(self._calls)

    def report(self) -> UsageReport:
        """The usage by stage: dotted predictor name, else the class name of the predictor."""
        stages: defaultdict[str, Usage] = defaultdict(Usage)
        for call in self.calls:
            stages[call.stage] += call.usage
        return UsageReport(dict(stages))

    @contextmanager
    def recording(self) -> Iterator[Ledger]:
        """Collect what is called inside, also from threads that carry the context with them."""
        tap = _Tap(self)
        callers = [*(dspy.settings.caller_modules or []), tap]
        callbacks = [*dspy.settings.callbacks, tap.clock]
        with dspy.context(caller_modules=callers, callbacks=callbacks):
            yield self

    def _add(self, call: Call) -> None:
        with self._lock:
            self._calls.append(call)


class _Tap:
    """Looks like a calling module to DSPy: it has a history."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.clock = _Clock(self)
        self.history = _Inbox(self)

    def receive(self, entry: Mapping[str, Any]) -> None:
        self.ledger._add(_call_of(entry, self.clock.seconds_of_current_call()))

    def receive_unrecorded(self, inputs: Mapping[str, Any], outputs: Any, seconds: float) -> None:
        """With history switched off DSPy says nothing of counts, so they are estimated."""
        entry = {"prompt": inputs.get("prompt"), "messages": inputs.get("messages")}
        self.ledger._add(_call_of({**entry, "outputs": outputs}, seconds))


class _Inbox(list[dict[str, Any]]):
    """A history that hands every entry on and stays empty."""

    def __init__(self, tap: _Tap) -> None:
        super().__init__()
        self._tap = tap

    def append(self, entry: dict[str, Any]) -> None:
        self._tap.clock.mark_recorded()
        self._tap.receive(entry)


class _Clock(BaseCallback):
    """When each running call began, and whether its history entry has come."""

    def __init__(self, tap: _Tap) -> None:
        self._tap = tap
        self._running: dict[str, tuple[float, Mapping[str, Any]]] = {}
        self._recorded: set[str] = set()

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self._running[call_id] = (time.perf_counter(), inputs)

    def on_lm_end(
        self,
        call_id: str,
        outputs: dict[str, Any] | None,
        exception: BaseException | None = None,
    ) -> None:
        began, inputs = self._running.pop(call_id)
        recorded = call_id in self._recorded
        self._recorded.discard(call_id)
        if exception is None and not recorded:
            self._tap.receive_unrecorded(inputs, outputs, time.perf_counter() - began)

    def mark_recorded(self) -> None:
        self._recorded.add(ACTIVE_CALL_ID.get() or "")

    def seconds_of_current_call(self) -> float:
        began, _ = self._running.get(ACTIVE_CALL_ID.get() or "", (time.perf_counter(), {}))
        return time.perf_counter() - began


def _call_of(entry: Mapping[str, Any], seconds: float) -> Call:
    answers = _answers(entry.get("response"))
    billed = entry.get("usage") or {}
    prompt, completion = _tokens(billed)
    replayed = any(_field(a, "cache_hit") for a in answers)
    cached = replayed or (not billed and any(sum(_tokens(_field(a, "usage"))) for a in answers))
    if cached:
        pairs = [_tokens(_field(answer, "usage")) for answer in answers]
        prompt, completion = (sum(column) for column in zip(*pairs, strict=True))
        if not (prompt or completion):
            prompt, completion = _remembered(entry)
    elif prompt or completion:
        _remember(entry, answers, (prompt, completion))
    estimated = not (prompt or completion)
    if estimated:
        prompt, completion = _estimates(entry)
    return Call(
        stage=_stage(),
        round=_round.get(),
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached=cached,
        seconds=seconds,
        finish_reason=finish_reason(entry),
        estimated=estimated,
    )


def _remember(entry: Mapping[str, Any], answers: Sequence[Any], counts: tuple[int, int]) -> None:
    """Keep the counts beside the reply: DSPy's cache drops those of replies through LiteLLM."""
    if not any(isinstance(answer, dspy.lm15.Response) for answer in answers):
        dspy.cache.put(_question(entry), counts)


def _remembered(entry: Mapping[str, Any]) -> tuple[int, int]:
    """The counts that the reply had when it was billed; zeros if they are not known."""
    kept = dspy.cache.get(_question(entry))
    return (int(kept[0]), int(kept[1])) if kept else (0, 0)


def _question(entry: Mapping[str, Any]) -> dict[str, Any]:
    asked = {name: entry.get(name) for name in ("model", "prompt", "messages", "kwargs")}
    return {"lynx": "token counts", **asked}


def _stage() -> str:
    """The innermost caller that names its stage, else the innermost caller's class."""
    callers = [c for c in dspy.settings.caller_modules or [] if not isinstance(c, _Tap)]
    named = (c.stage_name for c in reversed(callers) if hasattr(c, "stage_name"))
    return next(named, type(callers[-1]).__name__ if callers else "lm")


def _answers(response: Any) -> tuple[Any, ...]:
    """The response, or the responses of a call that asked for several."""
    if response is None:
        return ()
    return response if isinstance(response, tuple) else (response,)


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _tokens(usage: Any) -> tuple[int, int]:
    """Prompt and completion counts under the names of either interface of DSPy.

    >>> _tokens({"prompt_tokens": 7, "completion_tokens": 2})
    (7, 2)
    """
    prompt = _field(usage, "prompt_tokens") or _field(usage, "input_tokens") or 0
    completion = _field(usage, "completion_tokens") or _field(usage, "output_tokens") or 0
    return int(prompt), int(completion)


def finish_reason(entry: Mapping[str, Any]) -> str:
    """How the reply of a history entry ended, as `stop` or `length`; empty if that is not said."""
    answers = _answers(entry.get("response"))
    return next((reason for answer in answers if (reason := _finish_reason(answer))), "")


def _finish_reason(answer: Any) -> str:
    reason = _field(answer, "finish_reason")
    if not reason:
        choices = _field(answer, "choices") or [None]
        reason = _field(choices[0], "finish_reason")
    return str(reason or "")


def _estimates(entry: Mapping[str, Any]) -> tuple[int, int]:
    messages = entry.get("messages") or [{"content": entry.get("prompt") or ""}]
    outputs = [_field(out, "text") or out for out in entry.get("outputs") or ()]
    prompt = sum(estimate(str(_field(message, "content"))) for message in messages)
    return prompt, sum(estimate(str(output)) for output in outputs)

"""Ask: one question to a program, within its deadline, in spite of a service that fails at times.

An error of the service is never the program's: it is retried, and a question that could not be
asked is `unavailable`. What no waiting can help (a refused key, a model that is not there) stops
the run.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

import dspy
from dspy.utils import exceptions as of

from lynx_dspy.errors import DatabaseError, LynxError, ModelError
from lynx_dspy.lm import explain, redact
from lynx_dspy.lm.ledger import Call, Ledger
from lynx_dspy.optimize.records import UNAVAILABLE, StageUse
from lynx_dspy.progress import listen
from lynx_dspy.values import Status

_LINGER_SECONDS = 60.0
"""How long a question past its deadline may go on with its present call before it is left alone."""

_HOPELESS = (
    of.LMConfigurationError,
    of.LMAuthError,
    of.LMBillingError,
    of.LMUnsupportedModelError,
)

Program = Callable[..., dspy.Prediction]


@dataclass(frozen=True, slots=True)
class Patience:
    """What is done about a failing service.

    Waits double from `first_wait`, or are what the service asks for (Retry-After); a service that
    asks for more than `longest_wait` is taken as unavailable.
    """

    retries: int = 4
    first_wait: float = 2.0
    longest_wait: float = 600.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of asking. Without an `answer`, `status` and `error` say why."""

    answer: dspy.Prediction | None
    seconds: float
    stages: list[StageUse]
    status: str = ""
    error: str = ""
    service_failed: bool = False


class Gate:
    """Holds back all threads while the service wants to be left in peace, and stops them."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self._opens = 0.0
        self._lock = threading.Lock()

    def shut(self, seconds: float) -> None:
        """Let nobody through for `seconds` from now."""
        with self._lock:
            self._opens = max(self._opens, time.monotonic() + seconds)

    def left(self) -> float:
        """Seconds until it opens; 0 if it is open."""
        return max(0.0, self._opens - time.monotonic())

    def pass_through(self) -> None:
        """Wait until the gate is open. Raises `Stopped` when the run is over."""
        while (left := self.left()) > 0:
            if self.stopped.wait(left):
                break
        if self.stopped.is_set():
            raise Stopped


class SharedGate(Gate):
    """A gate that opens and shuts with those of other processes.

    `far` gives the seconds until all of them open, `tell` shuts all of them.
    """

    def __init__(self, far: Callable[[], float], tell: Callable[[float], None]) -> None:
        super().__init__()
        self._far, self._tell = far, tell

    def shut(self, seconds: float) -> None:
        super().shut(seconds)
        self._tell(seconds)

    def left(self) -> float:
        return max(super().left(), self._far())


class Stopped(Exception):
    """Raised inside a program, at its next stage, when nobody waits for its answer any more."""


@dataclass(slots=True)
class _Try:
    """One attempt at asking, with what it cost."""

    ledger: Ledger = field(default_factory=Ledger)
    abandoned: threading.Event = field(default_factory=threading.Event)


def ask(
    program: Program,
    inputs: Mapping[str, Any],
    *,
    deadline: float | None,
    patience: Patience,
    gate: Gate,
) -> Reply:
    """The program's answer to `inputs`, or why there is none within `deadline` seconds.

    Waiting for a service to recover does not count against the deadline. `dspy.context` of the
    calling thread applies. Raises `ModelError` where waiting cannot help, and `Stopped` when the
    gate stops the run.
    """
    earlier: list[Call] = []
    retried = 0
    while True:
        gate.pass_through()
        attempt, started = _Try(), time.perf_counter()
        try:
            answer = _within(deadline, program, inputs, attempt, gate)
        except (ModelError, of.LMError) as error:
            earlier += attempt.ledger.calls
            wait = _wait(error, retried, patience)
            if wait is None:
                return _refused(error, time.perf_counter() - started, earlier)
            gate.shut(wait)
            retried += 1
            continue
        seconds = time.perf_counter() - started
        stages = stage_uses(attempt.ledger.calls, earlier)
        if isinstance(answer, _Failure):
            return Reply(None, seconds, stages, answer.status, answer.error)
        return Reply(answer, seconds, stages)


@dataclass(frozen=True, slots=True)
class _Failure:
    """The program itself failed."""

    status: str
    error: str


def _within(
    seconds: float | None, program: Program, inputs: Mapping[str, Any], attempt: _Try, gate: Gate
) -> dspy.Prediction | _Failure:
    if seconds is None:
        return _answer(program, inputs, attempt, gate)
    done: Future[dspy.Prediction | _Failure] = Future()
    context = copy_context()

    def work() -> None:
        try:
            done.set_result(context.run(_answer, program, inputs, attempt, gate))
        except BaseException as error:  # noqa: BLE001 - handed on to the thread that waits
            done.set_exception(error)

    thread = threading.Thread(target=work, name="lynx-question", daemon=True)
    thread.start()
    try:
        return done.result(timeout=seconds)
    except FutureTimeout:
        attempt.abandoned.set()
        thread.join(_LINGER_SECONDS)
        return _Failure(Status.TIMEOUT, f"no answer within the deadline of {seconds:g} s")


def _answer(
    program: Program, inputs: Mapping[str, Any], attempt: _Try, gate: Gate
) -> dspy.Prediction | _Failure:
    def stop_if_unwanted(stage: str, text: str) -> None:
        if attempt.abandoned.is_set() or gate.stopped.is_set():
            raise Stopped

    try:
        with attempt.ledger.recording(), listen(stop_if_unwanted):
            answer = program(**inputs)
        if isinstance(answer, dspy.Prediction) and answer.get("fault"):
            raise answer.fault  # what was found before the service failed is not scored
    except of.ContextWindowExceededError as error:
        return _Failure(Status.ERROR, explain(error))
    except (ModelError, of.LMError, Stopped):
        raise
    except DatabaseError as error:
        return _Failure(UNAVAILABLE, str(error))
    except LynxError as error:
        return _Failure(Status.ERROR, str(error))
    except Exception as error:  # noqa: BLE001 - any program may be evaluated; one question fails
        return _Failure(Status.ERROR, redact(f"{type(error).__name__}: {error}"))
    if not isinstance(answer, dspy.Prediction):
        return _Failure(Status.ERROR, f"the program gave {type(answer).__name__}, no Prediction")
    return answer


def _wait(error: Exception, retried: int, patience: Patience) -> float | None:
    """Seconds to wait before the next try, None if there is to be none.

    Raises `ModelError` where waiting cannot help.
    """
    cause = error if isinstance(error, of.LMError) else error.__cause__
    if not isinstance(cause, of.LMError) or isinstance(cause, _HOPELESS):
        raise error if isinstance(error, ModelError) else ModelError(explain(error))
    if retried == patience.retries or not of.is_retryable_lm_error(cause):
        return None
    asked_for: float | None = cause.retry_after
    if asked_for is not None:
        return asked_for if asked_for <= patience.longest_wait else None
    backoff = patience.first_wait * 2**retried * random.uniform(0.75, 1.25)
    return float(min(backoff, patience.longest_wait))


def _refused(error: Exception, seconds: float, calls: Iterable[Call]) -> Reply:
    text = explain(error)
    if isinstance(error.__cause__, of.ContextWindowExceededError):
        return Reply(None, seconds, stage_uses(calls), Status.ERROR, text)
    return Reply(None, seconds, stage_uses(calls), UNAVAILABLE, text, service_failed=True)


def stage_uses(calls: Iterable[Call], earlier: Iterable[Call] = ()) -> list[StageUse]:
    """Calls by stage and round, in the order in which these first ended.

    What was billed for `earlier` tries of the question is added: the last try repeats them from the
    cache, so their other counts are in it already.
    """
    uses: dict[tuple[str, int], StageUse] = {}
    for call in calls:
        use = uses.setdefault((call.stage, call.round), _no_use(call))
        use["calls"] += 1
        use["prompt_tokens"] += call.prompt_tokens
        use["completion_tokens"] += call.completion_tokens
        use["billed_tokens"] += call.usage.billed_tokens
        use["seconds"] = round(use["seconds"] + call.seconds, 4)
        use["cut"] += call.finish_reason == "length"
    for call in earlier:
        use = uses.setdefault((call.stage, call.round), _no_use(call))
        use["billed_tokens"] += call.usage.billed_tokens
    return list(uses.values())


def _no_use(call: Call) -> StageUse:
    return StageUse(
        stage=call.stage,
        round=call.round,
        calls=0,
        prompt_tokens=0,
        completion_tokens=0,
        billed_tokens=0,
        seconds=0.0,
        cut=0,
    )

"""What runs in a Ray worker: one process that asks one question at a time.

It is an ordinary class, and knows nothing of Ray: `ray_pool` makes actors of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from lynx_dspy.errors import BadInput, LynxError, ModelError

Fields = dict[str, Any]


class Told(NamedTuple):
    """What a worker says. `refusal` is why the whole run cannot go on, of the kind `kind`."""

    record: Fields | None = None
    service_failed: bool = False
    answer: Any = None
    refusal: str = ""
    kind: str = ""

    def raise_refusal(self) -> None:
        """Raise it here as it was raised there. Raises `ModelError` or `BadInput`."""
        if self.refusal:
            raise (ModelError if self.kind == "model" else BadInput)(self.refusal)


class Valve:
    """Until when the service wants to be left in peace; one for all workers of a run."""

    def __init__(self) -> None:
        from lynx_dspy.optimize.asking import Gate

        self._gate = Gate()

    def shut(self, seconds: float) -> None:
        self._gate.shut(seconds)

    def left(self) -> float:
        """Seconds from now; the clocks of machines differ."""
        return self._gate.left()


class Reachable(Protocol):
    """What a worker sees of the valve."""

    def left(self) -> float: ...

    def shut(self, seconds: float) -> None: ...


class Asker:
    """Asks a program questions, as a thread of `evaluate` does, and gives the records back.

    `valve` reaches the valve of the run. `folder` is the driver's working folder: where it
    exists here too, relative paths mean the same.
    """

    def __init__(self, valve: Reachable, folder: str = "") -> None:
        import dspy

        if folder and Path(folder).is_dir():
            os.chdir(folder)
        dspy.configure_cache(memory_max_entries=2_000)
        self._valve = valve
        self._stack = ExitStack()
        self._models: dict[str, Any] = {}

    def begin(self, job: str) -> Told:
        """Take up a program, a model and the terms of `job_text`, in the place of those before."""
        from lynx_dspy.optimize.asking import Patience
        from lynx_dspy.optimize.evaluate import Terms, asker
        from lynx_dspy.optimize.runconfig import code_hash
        from lynx_dspy.optimize.shipping import unpacked

        self._stack.close()
        record = json.loads(job)
        try:
            if record["code"] != code_hash():
                raise BadInput("A Ray worker has another version of lynx-dspy than this process.")
            terms = record["terms"]
            terms["patience"] = Patience(**terms["patience"])
            terms["described"] = tuple(terms["described"])
            self._model = self._model_of(record)
            self._seen: list[Any] | None = [] if record["observed"] else None
            made = asker(unpacked(record["program"]), Terms(**terms), self._gate(), 1, self._see)
            self._ask = self._stack.enter_context(made)
        except LynxError as error:
            return _refused(error)
        return Told()

    def ask(self, fields: Mapping[str, Any]) -> Told:
        """The record of the question of these fields, and its answer if they are observed."""
        import dspy
        from dspy.clients import base_lm

        from lynx_dspy.optimize.evaluate import asking_of

        try:
            with asking_of(self._model):
                finished = self._ask(dspy.Example(**fields))
        except LynxError as error:
            return _refused(error)
        del base_lm.GLOBAL_HISTORY[:]
        answer = self._seen.pop() if self._seen else None
        return Told(dict(finished.record), finished.service_failed, answer)

    def process(self) -> int:
        """The process that it runs in."""
        return os.getpid()

    def _see(self, example: Any, answer: Any) -> None:
        if self._seen is not None:
            self._seen.append(answer)

    def _gate(self) -> Any:
        from lynx_dspy.optimize.asking import SharedGate

        return SharedGate(self._valve.left, self._valve.shut)

    def _model_of(self, record: Mapping[str, Any]) -> Any:
        """The model, loaded once; it must be the driver's, down to the digest of its weights."""
        from lynx_dspy.lm import describe
        from lynx_dspy.optimize.shipping import unpacked_lm

        key = json.dumps(record["lm"], sort_keys=True)
        if key not in self._models:
            model = unpacked_lm(record["lm"])
            if describe(model) != record["about"]:
                raise ModelError(
                    f"A Ray worker has another model than this process: {describe(model)} there, "
                    f"{record['about']} here."
                )
            self._models = {key: model}
        return self._models[key]


def job_text(program: Any, model: Any, terms: Any, observed: bool) -> str:
    """What `begin` takes: all that workers are told, as JSON. Raises `BadInput`."""
    from lynx_dspy.lm import describe
    from lynx_dspy.optimize.runconfig import code_hash
    from lynx_dspy.optimize.shipping import packed, packed_lm

    return json.dumps(
        {
            "program": packed(program),
            "lm": packed_lm(model),
            "about": describe(model),
            "terms": asdict(terms),
            "observed": observed,
            "code": code_hash(),
        }
    )


def _refused(error: LynxError) -> Told:
    return Told(refusal=str(error), kind="model" if isinstance(error, ModelError) else "input")

"""A stage: one named predictor that never raises for what a model replies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import dspy
from dspy.utils.exceptions import AdapterParseError, LMProviderError

from lynx_dspy import config
from lynx_dspy.lm.adapter import with_shared_first
from lynx_dspy.modules.fallback import CONTENT_FILTER, reason_of, watching
from lynx_dspy.modules.nearest import NearestDemos
from lynx_dspy.progress import report
from lynx_dspy.texts import encodable

StandIn = Callable[..., dict[str, Any]]

_BLANK: dict[object, object] = {str: "", bool: None, list[str]: ()}


class Stage(dspy.Predict):
    """A predictor of the table in DESIGN: asks its signature, or answers by rule.

    A stage that the current config leaves out, or that has nothing to work on, answers through its
    `stand_in` and costs no call. A reply that cannot be read is asked for again with a new rollout;
    after that the outputs are empty and `parse_failed` is set. So they are, with the reason as
    `objection`, when the provider refuses the prompt for its length or content.
    """

    stage_name: ClassVar[str]
    asks: ClassVar[type[dspy.Signature]]
    stand_in: ClassVar[StandIn]
    says: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    nearest: NearestDemos | None = None
    """Demos to pick the nearest of for each question; they follow `demos`."""

    def __init__(self) -> None:
        super().__init__(self.asks)

    def forward(self, **inputs: Any) -> dspy.Prediction:
        if not self._asked(inputs):
            return dspy.Prediction(**type(self).stand_in(**inputs))
        report(self.stage_name, self.says)
        if self.nearest is None:
            return self._ask(inputs)
        inputs["demos"] = [*self.demos, *self.nearest.pick()]
        adapter = with_shared_first(dspy.settings.adapter, self.nearest.shared)
        with dspy.context(adapter=adapter):
            return self._ask(inputs)

    def _ask(self, inputs: dict[str, Any]) -> dspy.Prediction:
        settings = config.current()
        overrides = inputs.pop("config", {})
        signature = self._asked_for(settings.omitted_outputs)
        for rollout in range(settings.parse_retries + 1):
            decoding = {"max_tokens": settings.stage_max_tokens, **overrides}
            if rollout:
                again = settings.retry_temperature
                decoding |= {"rollout_id": -rollout, "temperature": again}
            with watching() as watch:
                try:
                    reply = self._reply(**inputs, signature=signature, config=_seeded(decoding))
                except LMProviderError as error:
                    if reason := reason_of(error):
                        return self._empty(objection=reason)
                    raise
            if watch.filtered:
                return self._empty(objection=CONTENT_FILTER)
            if signature.output_fields.keys() <= set(reply.keys()):  # some servers choose nothing
                return _cleaned(reply)
        return self._empty()

    def _reply(self, **call: Any) -> dspy.Prediction:
        """What the model replies; without fields if that cannot be read."""
        try:
            return super().forward(**call)
        except (AdapterParseError, RecursionError):  # RecursionError: thousands of brackets
            return dspy.Prediction()

    def _asked(self, inputs: dict[str, Any]) -> bool:
        if self.stage_name not in config.current().stages:
            return False
        return not self.needs or any(inputs.get(name) for name in self.needs)

    def _asked_for(self, omitted: frozenset[str]) -> type[dspy.Signature]:
        signature: type[dspy.Signature] = self.signature
        for name in omitted & signature.output_fields.keys():
            signature = signature.delete(name)
        return signature

    def _empty(self, **marks: str) -> dspy.Prediction:
        blank: dict[str, object] = {
            name: _BLANK.get(info.annotation, "")
            for name, info in self.signature.output_fields.items()
        }
        return dspy.Prediction(**blank, parse_failed=True, **marks)


def _cleaned(reply: dspy.Prediction) -> dspy.Prediction:
    """A JSON reply can spell half a character, with which no further prompt could be sent."""
    for name, value in reply.items():
        if isinstance(value, str):
            reply[name] = encodable(value)
        elif isinstance(value, list):
            reply[name] = [encodable(item) if isinstance(item, str) else item for item in value]
    return reply


def _seeded(decoding: dict[str, Any]) -> dict[str, Any]:
    """A rollout as a seed where the engine takes one: the same rollout gives the same reply."""
    rollout = decoding.get("rollout_id")
    engine = getattr(dspy.settings.lm, "engine", None)
    if rollout is None or "seed" not in getattr(engine, "supported_params", ()):
        return decoding
    return {**decoding, "seed": rollout % 2**31}

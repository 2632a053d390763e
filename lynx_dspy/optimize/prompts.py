"""The prompts of a program for a fixed probe: what a model would be sent, stage by stage.

Each predictor is really called, with a language model that only writes down what it gets. So the
prompts hold whatever decides them: instructions, demos, field texts, adapter, config, picked demos.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, get_origin

import dspy
from dspy.utils.exceptions import LMError

from lynx_dspy import config as configs
from lynx_dspy.config import STAGES, LynxConfig
from lynx_dspy.lm.adapter import adapter_for
from lynx_dspy.optimize.plainjson import digest_of
from lynx_dspy.optimize.states import predictors

Messages = list[dict[str, Any]]


def rendered(program: dspy.Module, config: LynxConfig) -> dict[str, Messages]:
    """The messages of each predictor, by dotted path; a content is a list of lines.

    `config` names the adapter. Stages that it leaves out are rendered too.
    """
    engine = _Scribe()
    lm = dspy.LM("lynx/probe", engine=engine, cache=False, num_retries=0)
    asking = config.with_(stages=frozenset(STAGES), parse_retries=0)
    prompts: dict[str, Messages] = {}
    quiet = {"callbacks": [], "disable_history": True, "trace": None}
    adapter = adapter_for(lm, config.adapter or None)
    with configs.using(asking), dspy.context(lm=lm, adapter=adapter, **quiet):
        for path, predictor in predictors(program).items():
            engine.requests.clear()
            with suppress(LMError):
                predictor(**_probe(predictor.signature), lm=lm)
            prompts[path] = _messages(engine.requests[0])
    return prompts


def prompts_hash(prompts: dict[str, Messages]) -> str:
    """One hash over all prompts."""
    return digest_of(prompts)


class _Scribe:
    """A model that writes down every request and never replies."""

    supported_params = frozenset({"response_format"})
    supports_response_schema = True

    def __init__(self) -> None:
        self.requests: list[dspy.lm15.Request] = []

    def complete(self, request: dspy.lm15.Request) -> dspy.lm15.Response:
        self.requests.append(request)
        raise dspy.lm15.InvalidRequestError("only the prompt was wanted")

    def __deepcopy__(self, memo: dict[int, Any]) -> _Scribe:
        return self


def _probe(signature: type[dspy.Signature]) -> dict[str, Any]:
    """An input for each field that says which it is."""
    return {
        name: [f"<{name}>"] if get_origin(info.annotation) is list else f"<{name}>"
        for name, info in signature.input_fields.items()
    }


def _messages(request: dspy.lm15.Request) -> Messages:
    system = [("system", request.system)] if request.system else []
    turns = [(str(message.role), message.text or "") for message in request.messages]
    return [{"role": role, "lines": str(text).split("\n")} for role, text in (*system, *turns)]

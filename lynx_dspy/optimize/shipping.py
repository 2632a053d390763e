"""A program and a language model as plain JSON, for another process that asks with them.

A `Lynx` of this package's parts is made again there from its parts left out, config, states and
files, which is checked here. Only a program of other parts or settings is pickled. Keys are never
sent: the other process has its own environment.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from functools import reduce
from typing import Any

import dspy
from pydantic import TypeAdapter

from lynx_dspy.ablations import ablate
from lynx_dspy.config import LynxConfig
from lynx_dspy.errors import ArtifactError, BadInput
from lynx_dspy.lm import lm as lm_of
from lynx_dspy.optimize import states
from lynx_dspy.optimize.artifact import ablations_of
from lynx_dspy.optimize.harvest import Traced
from lynx_dspy.optimize.manifest import config_json
from lynx_dspy.optimize.search import program_hash
from lynx_dspy.program import Lynx

Json = dict[str, Any]

_SETTING = (str, int, float, bool, tuple, frozenset, type(None))
_NO_SETTINGS = frozenset({"callbacks", "history", "_compiled", "stage"})
"""`stage` of a predictor is a random name that DSPy gives it."""
_KEYS = frozenset({"api_key", "headers", "extra_headers", "azure_ad_token_provider"})


def packed(program: dspy.Module) -> Json:
    """The program in JSON values. Raises `BadInput` for one that cannot leave this process."""
    if isinstance(program, Traced):
        return {"traced": packed(program.program)}
    for path, predictor in states.predictors(program).items():
        if predictor.lm is not None:
            raise BadInput(f"{path} has a language model of its own, which is not sent elsewhere.")
    record = _plain(program) if isinstance(program, Lynx) else None
    return {"plain": record} if record is not None else {"pickle": _pickled(program)}


def unpacked(record: Mapping[str, Any]) -> dspy.Module:
    """The program that `packed` gave, from a process that is trusted."""
    if "traced" in record:
        return Traced(unpacked(record["traced"]))
    if "plain" in record:
        return _made(record["plain"])
    import cloudpickle

    program: dspy.Module = cloudpickle.loads(base64.b64decode(record["pickle"]))
    return program


def packed_lm(model: dspy.LM) -> Json:
    """The model in JSON values: as `lynx.lm` was asked for it, else as DSPy describes it.

    Raises `BadInput` for a model with a key of its own, or one that nothing describes.
    """
    name, options = getattr(model, "lynx_asked", ("", {}))
    keys = sorted(_KEYS & {k for k, v in {**options, **model.kwargs}.items() if v})
    if keys:
        raise BadInput(
            f"{', '.join(keys)} of {model.model} are not sent to other machines. Set the key in "
            "the environment of each of them."
        )
    if not name and not isinstance(model.engine, str):
        raise BadInput(
            f"{model.model} cannot be made in another process. Use lynx.lm(NAME), or dspy.LM(NAME)."
        )
    made = {"name": name, "options": options} if name else {"state": model.dump_state()}
    record = {**made, "kwargs": model.kwargs, "cache": model.cache}
    try:
        return dict(json.loads(json.dumps(record)))
    except (TypeError, ValueError) as error:
        raise BadInput(f"The options of {model.model} cannot be sent elsewhere: {error}.") from None


def unpacked_lm(record: Mapping[str, Any]) -> dspy.LM:
    """The model that `packed_lm` gave. Raises `ModelError` where it cannot be used."""
    if "name" in record:
        model = lm_of(record["name"], **record["options"])
    else:
        model = dspy.BaseLM.load_state(record["state"])
    model.kwargs, model.cache = dict(record["kwargs"]), record["cache"]
    return model


def _plain(program: Lynx) -> Json | None:
    """What the program is made again from; None where something would be lost."""
    config = program.config
    try:
        record = {
            "without": sorted(ablations_of(program)),
            "config": config_json(config) if config is not None else None,
            "files": dict(program.artifact_files()),
            "states": {p: states.state_of(p, one) for p, one in states.predictors(program).items()},
        }
        record = json.loads(json.dumps(record))
        again = _made(record)
    except (ArtifactError, TypeError, ValueError):
        return None
    same = program_hash(again) == program_hash(program) and _settings(again) == _settings(program)
    return record if same and type(again) is type(program) else None


def _made(record: Mapping[str, Any]) -> Lynx:
    program = ablate(record["without"])
    if record["config"] is not None:
        program.config = TypeAdapter(LynxConfig).validate_python(record["config"])
    if record["files"]:
        program.restore_files(record["files"])
    kept = states.predictors(program)
    if kept.keys() != record["states"].keys():
        raise ArtifactError("The program here has other predictors than the one that was sent.")
    for path, state in record["states"].items():
        states.restore(path, kept[path], state)
    return program


def _settings(program: Lynx) -> Json:
    """The plain attributes of every part: numbers and texts that its constructor was given."""
    found: Json = {}
    for path in states.module_graph(program):
        names = () if path == "program" else path.split(".")
        part = reduce(getattr, names, program)
        for name, value in vars(part).items():
            if name not in _NO_SETTINGS and isinstance(value, _SETTING):
                found[f"{path}.{name}"] = value
    return found


def _pickled(program: dspy.Module) -> str:
    import cloudpickle

    try:
        return base64.b64encode(cloudpickle.dumps(program)).decode("ascii")
    except (TypeError, AttributeError, ValueError) as error:
        raise BadInput(
            f"{type(program).__name__} cannot be sent to another process: {error}."
        ) from None

"""What compiling changes in a program: instructions, demos, field texts and decoding of its stages.

DSPy's own `save` leaves out what these states hold and compare: a predictor's `config`, sub-modules
marked as compiled, field names and types; and it loads one program's states into another's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any

import dspy

from lynx_dspy.config import LynxConfig
from lynx_dspy.errors import ArtifactError
from lynx_dspy.optimize.plainjson import digest_of

_NO_PARTS = frozenset({"callbacks", "history", "config"})

_SHAPE: dict[str, type] = {"instructions": list, "demos": list, "config": dict, "fields": dict}

DECODING: dict[str, type | tuple[type, ...]] = {
    "temperature": (int, float),
    "top_p": (int, float),
    "top_k": int,
    "max_tokens": int,
    "n": int,
    "seed": int,
    "rollout_id": int,
    "presence_penalty": (int, float),
    "frequency_penalty": (int, float),
    "reasoning_effort": str,
    "stop": (str, list),
}
"""Options that a state may hold. An address among them would send prompts, and keys, elsewhere."""

State = dict[str, Any]


def module_graph(program: dspy.Module) -> dict[str, str]:
    """Each part of the program with its class, by dotted path; the program itself is `program`.

    Rules and other functions go by their name, so that one stand-in is not taken for another.
    """
    return {path: _kind(part) for path, part in _parts(program, "")}


def predictors(program: dspy.Module) -> dict[str, dspy.Predict]:
    """The predictors by dotted path, also in sub-modules that DSPy leaves out as compiled."""
    return {path: part for path, part in _parts(program, "") if isinstance(part, dspy.Predict)}


def fields_of(signature: type[dspy.Signature]) -> str:
    """Names, types and order of the fields, for people.

    >>> fields_of(dspy.Signature("question, terms: list[str] -> code"))
    'question: str, terms: list[str] -> code: str'
    """
    return " -> ".join(
        ", ".join(f"{name}: {_type_name(info.annotation)}" for name, info in part.items())
        for part in (signature.input_fields, signature.output_fields)
    )


def signature_hash(fields: str) -> str:
    """The hash of `fields_of` a signature."""
    return digest_of(fields)


def state_of(path: str, predictor: dspy.Predict) -> State:
    """The state of one predictor in JSON values. Raises `ArtifactError` for what is not plain.

    Demos keep the predictor's own fields: nothing else gets into a prompt, and optimizers copy
    whole training rows, golds included.
    """
    if predictor.fields:
        raise ArtifactError(f"{path} holds decision fields of DSPy, which artifacts cannot keep.")
    _require_decoding(path, predictor.config)
    signature = predictor.signature
    kept = {*signature.fields, "augmented"}
    demos = [{k: v for k, v in dict(demo).items() if k in kept} for demo in predictor.demos]
    state = {
        "instructions": signature.instructions.split("\n"),
        "demos": demos,
        "config": dict(predictor.config),
        "fields": {
            name: {"desc": _extra(info, "desc"), "prefix": _extra(info, "prefix")}
            for name, info in signature.fields.items()
        },
    }
    return {name: plain(f"{path}.{name}", value) for name, value in state.items()}


def checked(path: str, state: object) -> State:
    """`state` if it has the shape that `state_of` gives; else raises `ArtifactError`."""
    if not isinstance(state, dict) or state.keys() != _SHAPE.keys():
        raise ArtifactError(f"{path}: a state has the keys {', '.join(_SHAPE)}, and no others.")
    for name, kind in _SHAPE.items():
        if not isinstance(state[name], kind):
            raise ArtifactError(f"{path}.{name} is a {type(state[name]).__name__}.")
    for name, kind in (("instructions", str), ("demos", dict)):
        if not all(isinstance(one, kind) for one in state[name]):
            raise ArtifactError(f"{path}.{name} holds something else than a {kind.__name__}.")
    _require_decoding(path, state["config"])
    return state


def restore(path: str, predictor: dspy.Predict, state: object) -> None:
    """Give the predictor a state that `state_of` made. Raises `ArtifactError` for another shape."""
    state = checked(path, state)
    signature = predictor.signature
    for name, texts in _field_texts(path, signature, state["fields"]):
        signature = signature.with_updated_fields(name, **texts)
    instructions = "\n".join(state["instructions"])
    if instructions != signature.instructions:
        signature = signature.with_instructions(instructions)
    predictor.signature = signature
    predictor.demos = [_demo(path, signature, demo) for demo in state["demos"]]
    predictor.config = dict(state["config"])


def _require_decoding(path: str, options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if name not in DECODING:
            raise ArtifactError(
                f"{path}.config.{name} is no option of decoding that artifacts keep. Known: "
                f"{', '.join(DECODING)}."
            )
        if value is not None and not isinstance(value, DECODING[name]):
            raise ArtifactError(f"{path}.config.{name} is a {type(value).__name__}.")


def _parts(part: object, path: str) -> Iterator[tuple[str, object]]:
    yield path or "program", part
    if isinstance(part, dspy.Predict) or not hasattr(part, "__dict__") or _is_function(part):
        return
    for name, inner in vars(part).items():
        if name.startswith("_") or name in _NO_PARTS or not _is_part(inner):
            continue
        yield from _parts(inner, f"{path}.{name}" if path else name)


def _is_part(value: object) -> bool:
    """Modules, the package's own small parts, and rules; not numbers, texts and other settings."""
    own = type(value).__module__.startswith("lynx_dspy.") and hasattr(value, "__dict__")
    callable_part = callable(value) and hasattr(value, "__dict__")
    return not isinstance(value, LynxConfig) and (
        isinstance(value, dspy.Module) or own or callable_part
    )


def _is_function(value: object) -> bool:
    return isinstance(value, FunctionType | type)


def _kind(part: object) -> str:
    return str(getattr(part, "__name__", None) or type(part).__name__)


def _type_name(annotation: Any) -> str:
    return (
        annotation.__name__
        if isinstance(annotation, type) and not hasattr(annotation, "__args__")
        else str(annotation).replace("typing.", "")
    )


def _extra(info: Any, name: str) -> str:
    extra = info.json_schema_extra
    return str(extra.get(name, "")) if isinstance(extra, dict) else ""


def plain(path: str, value: Any) -> Any:
    """The value as JSON gives it back. Raises `ArtifactError` naming what JSON cannot hold."""
    if isinstance(value, Mapping):
        return {str(k): plain(f"{path}.{k}", v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(f"{path}.{i}", v) for i, v in enumerate(value)]
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        raise ArtifactError(
            f"{path} holds a {type(value).__name__}, which plain JSON cannot keep. Use texts, "
            "numbers, yes or no, and lists of them."
        ) from None


def _field_texts(
    path: str, signature: type[dspy.Signature], stored: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, str]]]:
    """The fields whose texts an optimizer changed, with the new ones."""
    if stored.keys() != signature.fields.keys():
        raise ArtifactError(
            f"{path}.fields has {', '.join(stored)}; this program {', '.join(signature.fields)}."
        )
    for name, texts in stored.items():
        if not isinstance(texts, dict) or not all(isinstance(t, str) for t in texts.values()):
            raise ArtifactError(f"{path}.fields.{name} does not hold texts.")
        if texts.keys() != {"desc", "prefix"}:
            raise ArtifactError(f"{path}.fields.{name} has other keys than desc and prefix.")
        info = signature.fields[name]
        if any(text != _extra(info, key) for key, text in texts.items()):
            yield name, texts


def _demo(path: str, signature: type[dspy.Signature], demo: object) -> dspy.Example:
    known = {*signature.fields, "augmented"}
    if not isinstance(demo, dict) or not demo.keys() <= known:
        raise ArtifactError(f"{path}.demos holds what is no demo of this stage.")
    for name, value in demo.items():
        if isinstance(value, dict):
            raise ArtifactError(f"{path}.demos: {name} holds an object; texts and lists are used.")
    return dspy.Example(**demo).with_inputs(*(n for n in signature.input_fields if n in demo))

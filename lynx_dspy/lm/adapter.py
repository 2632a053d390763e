"""How a stage's signature becomes a prompt and a reply becomes fields, with little scaffolding.

`fenced` is the paper's output format (III-C): a short analysis, then one fenced program. `json` is
one flat JSON object, enforced while decoding where the model can. `chat` is DSPy's own. All of
them put stable text first (instructions, demos, inputs in signature order), for prefix caches.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Literal, get_args, get_origin

import dspy
from dspy.adapters.utils import parse_value
from dspy.utils.exceptions import AdapterParseError
from pydantic.fields import FieldInfo

from lynx_dspy.errors import UnknownName
from lynx_dspy.lm.extract import without_reasoning
from lynx_dspy.lm.languages import language_of, program_in

PROGRAM = "code"
"""Output fields of this name hold a program."""

_MAX_CHARS = {PROGRAM: 4_000}
_MAX_CHARS_ELSE = 800
_MAX_ITEMS = 16
_ITEM = re.compile(r"^[ \t]*(?:[-*•]|\d+[.)])[ \t]+(.+?)[ \t]*$", re.M)
_NOTHING = frozenset({"", "none", "n/a", "empty", "[]", "-", "(none)", "no terms"})
_YES_NO = re.compile(r"\b(yes|true|no|false)\b", re.I)
_TRUE = frozenset({"yes", "true"})
_FENCED_BLOCK = re.compile(r"`{3}.*?(?:`{3}|\Z)", re.S)

Signature = type[dspy.Signature]
Message = dict[str, Any]


class _Compact(ABC):
    """What both compact adapters share: the system message, inputs as labelled text, demos."""

    shared: tuple[str, ...] = ()
    """Inputs that stand before the demos: what stays the same while the demos change."""

    def format(
        self, signature: Signature, demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[Message]:
        """System message, demos as turns, request; `shared` inputs open the first turn."""
        own = {name: value for name, value in inputs.items() if name not in self.shared}
        # DSPy wraps the `parse` of every subclass of its adapters, so this is none of them.
        messages: list[Message] = super().format(signature, demos, own)  # type: ignore[misc]
        common = {name: inputs[name] for name in self.shared if name in inputs}
        lead = self.format_user_message_content(signature, common)
        if lead:
            first = messages[1] if len(messages) > 1 else {"role": "user", "content": ""}
            text = "\n\n".join(part for part in (lead, first["content"]) if part)
            messages[1:2] = [{**first, "content": text}]
        return messages

    def format_system_message(self, signature: Signature) -> str:
        given = _described(signature.input_fields)
        task = " ".join(signature.instructions.split())
        return "\n\n".join(part for part in (task, given, self.format_request(signature)) if part)

    @abstractmethod
    def format_request(self, signature: Signature) -> str:
        """The words that ask for the outputs."""

    def format_assistant_message_content(
        self,
        signature: Signature,
        outputs: dict[str, Any],
        missing_field_message: str | None = None,
    ) -> str:
        """The outputs as the model is to write them; JSON unless an adapter says otherwise."""
        return json.dumps({n: outputs[n] for n in signature.output_fields}, ensure_ascii=False)

    def format_user_message_content(
        self,
        signature: Signature,
        inputs: dict[str, Any],
        prefix: str = "",
        suffix: str = "",
        main_request: bool = False,
    ) -> str:
        given = [name for name in signature.input_fields if _as_text(inputs.get(name, "")).strip()]
        parts = [_labelled(name, inputs[name]) for name in given]
        return "\n\n".join(part for part in (prefix, *parts, suffix) if part)

    def format_demos(self, signature: Signature, demos: list[dict[str, Any]]) -> list[Message]:
        """User and assistant turns; a demo without all outputs would teach a wrong form.

        Inputs that a demo lacks are left out of its turn: a demo need not repeat a schema.
        """
        messages: list[Message] = []
        for demo in demos:
            if any(demo.get(name) is None for name in signature.output_fields):
                continue
            asked = self.format_user_message_content(signature, demo)
            told = self.format_assistant_message_content(signature, demo)
            messages += [
                {"role": "user", "content": asked},
                {"role": "assistant", "content": told},
            ]
        return messages


class FencedAdapter(_Compact, dspy.Adapter):
    """Labelled lines, lists as `- item` lines, and the program in one fence."""

    def format_request(self, signature: Signature) -> str:
        lines = [_wanted_line(name, info) for name, info in signature.output_fields.items()]
        return "Reply in this form:\n" + "\n".join(lines)

    def format_assistant_message_content(
        self,
        signature: Signature,
        outputs: dict[str, Any],
        missing_field_message: str | None = None,
    ) -> str:
        names = [name for name in signature.output_fields if outputs.get(name) is not None]
        fields = signature.output_fields
        return "\n".join(_answered(name, fields[name], outputs[name]) for name in names)

    def parse(self, signature: Signature, completion: str) -> dict[str, Any]:
        """The output fields, as tolerantly as can be.

        Raises `AdapterParseError` if the reply lacks the program, a yes or no, or any field at all.
        """
        fields = _from_json(signature, completion) or self._from_lines(signature, completion)
        missing = signature.output_fields.keys() - fields.keys()
        if missing:
            raise _unreadable(self, signature, completion, f"no {', '.join(sorted(missing))}")
        return {name: fields[name] for name in signature.output_fields}

    def _from_lines(self, signature: Signature, completion: str) -> dict[str, Any]:
        text = without_reasoning(completion)
        program = signature.output_fields.get(PROGRAM)
        code = program_in(completion, program) if program else ""
        rest = _FENCED_BLOCK.sub("", text).replace(code, "") if code else text
        sections = _sections(signature, rest)
        fields = {
            name: value
            for name, info in signature.output_fields.items()
            if name != PROGRAM
            and name in sections
            and (value := _read(info, sections[name])) is not None
        }
        if code:
            fields[PROGRAM] = code
        if fields:
            fields = {**_blanks(signature), **fields}
        return fields


class CompactJSONAdapter(_Compact, dspy.JSONAdapter):
    """One flat JSON object; its schema binds the decoder where the model supports that."""

    def __init__(self) -> None:
        super().__init__(use_native_function_calling=False)

    def format_request(self, signature: Signature) -> str:
        lines = [f"{name}: {_hint(name, info)}" for name, info in signature.output_fields.items()]
        return "Reply with a JSON object:\n" + "\n".join(lines)

    def parse(self, signature: Signature, completion: str) -> dict[str, Any]:
        """As `dspy.JSONAdapter`, but texts and lists may be missing beside others (as when fenced).

        A program that was cut off is no program.
        """
        text = without_reasoning(completion)
        if PROGRAM in signature.output_fields and _is_cut(text):
            raise _unreadable(self, signature, completion, "the JSON object is cut off")
        try:
            fields: dict[str, Any] = super().parse(signature, text)
        except AdapterParseError as error:
            fields = {**_blanks(signature), **(error.parsed_result or {})}
            if not error.parsed_result or signature.output_fields.keys() - fields.keys():
                raise
        if PROGRAM in fields:
            code = fields[PROGRAM] or ""
            found = program_in(code, signature.output_fields[PROGRAM])
            fields[PROGRAM] = found or code.strip().rstrip(";")
        return fields

    def _prepare_response_format(
        self, lm: dspy.BaseLM, lm_kwargs: dict[str, Any], signature: Signature
    ) -> None:
        """DSPy's hook (private, pinned by a test) with a schema that bounds the texts.

        Lengths go to own engines only: some APIs refuse a strict schema with them.
        """
        if "response_format" not in lm.supported_params or not lm.supports_response_schema:
            super()._prepare_response_format(lm, lm_kwargs, signature)
            return
        bounded = not isinstance(getattr(lm, "engine", "auto"), str)
        named = {"name": "reply", "schema": reply_schema(signature, bounded), "strict": True}
        lm_kwargs["response_format"] = {"type": "json_schema", "json_schema": named}


KINDS: dict[str, Callable[[], dspy.Adapter]] = {
    "fenced": FencedAdapter,
    "json": CompactJSONAdapter,
    "chat": dspy.ChatAdapter,
}
"""The adapters by name."""


def adapter_for(lm: dspy.BaseLM, kind: str | None = None) -> dspy.Adapter:
    """The adapter of this kind; without one, JSON for engines that enforce a schema, else fenced.

    Raises `UnknownName` for a kind that is not in `KINDS`.
    """
    if kind is None:
        own = not isinstance(getattr(lm, "engine", "auto"), str)
        kind = "json" if own and lm.supports_response_schema else "fenced"
    if kind not in KINDS:
        raise UnknownName("adapter", kind, KINDS)
    return KINDS[kind]()


def with_shared_first(adapter: dspy.Adapter, shared: tuple[str, ...]) -> dspy.Adapter:
    """The adapter with these inputs before the demos; `chat` keeps DSPy's own order."""
    if not shared or not isinstance(adapter, _Compact):
        return adapter
    changed = copy(adapter)
    changed.shared = shared
    return changed


def reply_schema(signature: Signature, bounded: bool) -> dict[str, Any]:
    """The JSON schema of the outputs: flat, all required, texts and lists bounded on request."""
    properties = {
        name: _property(name, info, bounded) for name, info in signature.output_fields.items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_SIMPLE: dict[object, dict[str, Any]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
}


def _property(name: str, info: FieldInfo, bounded: bool) -> dict[str, Any]:
    kind = info.annotation
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    text: dict[str, Any] = {"type": "string"}
    if get_origin(kind) is list:
        items = text | ({"maxLength": _MAX_CHARS_ELSE // 4} if bounded else {})
        return {"type": "array", "items": items} | ({"maxItems": _MAX_ITEMS} if bounded else {})
    return text | ({"maxLength": _MAX_CHARS.get(name, _MAX_CHARS_ELSE)} if bounded else {})


def _label(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _described(fields: Mapping[str, FieldInfo]) -> str:
    """One line for each input that has a description of its own."""
    lines = [f"{_label(n)}: {d}" for n, info in fields.items() if (d := _description(n, info))]
    return "\n".join(["You are given:", *lines]) if lines else ""


def _description(name: str, info: FieldInfo) -> str:
    extra = info.json_schema_extra
    text = str(extra.get("desc", "")) if isinstance(extra, dict) else ""
    return "" if text == f"${{{name}}}" else text


def _labelled(name: str, value: object) -> str:
    text = _as_text(value)
    return f"{_label(name)}:{chr(10) if chr(10) in text else ' '}{text}".rstrip()


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return "\n" + "\n".join(f"- {item}" for item in value) if value else "none"
    return str(value).strip()


def _hint(name: str, info: FieldInfo) -> str:
    """What to write in a field: its choices, else its description, else a word on its type."""
    kind = info.annotation
    if get_origin(kind) is Literal:
        return " | ".join(str(choice) for choice in get_args(kind))
    words = {bool: "true or false"}.get(kind) if isinstance(kind, type) else None
    described = _description(name, info)
    if get_origin(kind) is list:
        return f"list, {described}" if described else "list"
    return "; ".join(part for part in (words, described) if part) or "text"


def _wanted_line(name: str, info: FieldInfo) -> str:
    hint = _hint(name, info)
    if name == PROGRAM:
        return f"```{language_of(info)}\n{hint}\n```"
    if get_origin(info.annotation) is list:
        return f"{_label(name)}:\n- {_description(name, info) or 'item'}"
    return f"{_label(name)}: {hint.replace('true or false', 'yes or no')}"


def _answered(name: str, info: FieldInfo, value: object) -> str:
    if name == PROGRAM:
        return f"```{language_of(info)}\n{str(value).strip()}\n```"
    return _labelled(name, value)


def _sections(signature: Signature, text: str) -> dict[str, str]:
    """The text under each output's label; a lone output needs no label, nor does a first one."""
    names = [name for name in signature.output_fields if name != PROGRAM]
    if not names:
        return {}
    found = list(_labels(signature).finditer(text))
    if not found:
        alone = len(names) == 1 and text.strip()
        return {names[0]: text.strip()} if alone else {}
    ends = [*(mark.start() for mark in found[1:]), len(text)]
    sections: dict[str, str] = {}
    for mark, end in zip(found, ends, strict=True):
        name = re.sub(r"[ _]+", "_", mark["name"].lower())
        sections.setdefault(name, text[mark.end() : end].strip(" \t\n*"))
    lead = text[: found[0].start()].strip()
    if lead and names[0] not in sections:
        sections[names[0]] = lead
    return sections


def _labels(signature: Signature) -> re.Pattern[str]:
    """A label at the start of a line: `Name:`, `**Name**:`, `# Name`, `[[ ## name ## ]]`."""
    names = "|".join(re.escape(n).replace("_", "[ _]") for n in signature.output_fields)
    label = rf"(?:\[\[ ## )?[-*#`\"> \t]*(?P<name>{names})[*`\" \t]*(?:[:：][*`]*|## \]\])"
    return re.compile(f"^{label}", re.I | re.M)


def _read(info: FieldInfo, text: str) -> Any:
    """The value of a field as the model wrote it; None if it cannot be one."""
    kind = info.annotation
    if kind is bool:
        found = _YES_NO.search(text)
        return found[1].lower() in _TRUE if found else None
    if get_origin(kind) is Literal:
        choices = {str(choice).lower(): choice for choice in get_args(kind)}
        word = re.match(r"[\W_]*([\w-]+)", text)
        return choices.get(
            text.strip(" .`'\"").lower(), choices.get(word[1].lower() if word else "")
        )
    if get_origin(kind) is list:
        return _items(text)
    if kind is str:
        return text
    try:
        return parse_value(text, kind)
    except ValueError:
        return None


def _items(text: str) -> list[str]:
    """The items of a list, written as bullets, as JSON, or on one line with commas."""
    if text.strip(" .").lower() in _NOTHING:
        return []
    if bullets := _ITEM.findall(text):
        return [item for item in bullets if item.strip(" .").lower() not in _NOTHING]
    if text.lstrip().startswith("["):
        try:
            return [str(item) for item in json.loads(text)]
        except ValueError:
            text = text.strip(" []\n").replace('"', "")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    parts = lines[0].split(",") if len(lines) == 1 else lines
    return [part.strip() for part in parts if part.strip()]


def _blanks(signature: Signature) -> dict[str, Any]:
    """Fields that may be missing in a reply that holds others: texts and lists, no program."""
    fields = {n: i.annotation for n, i in signature.output_fields.items() if n != PROGRAM}
    texts: dict[str, Any] = {name: "" for name, kind in fields.items() if kind is str}
    return texts | {name: [] for name, kind in fields.items() if get_origin(kind) is list}


def _from_json(signature: Signature, completion: str) -> dict[str, Any] | None:
    """The fields of a reply that is a JSON object all the same."""
    text = without_reasoning(completion)
    text = re.sub(r"^`{3}\w*\s*|\s*`{3}$", "", text)
    if not text.startswith("{"):
        return None
    try:
        return CompactJSONAdapter().parse(signature, text)
    except AdapterParseError:
        return None


def _is_cut(text: str) -> bool:
    """Whether a JSON object was begun and not ended; repairing it would end a program early."""
    begun = text.find("{")
    if begun < 0:
        return False
    try:
        json.JSONDecoder().raw_decode(text, begun)
    except ValueError:
        return not text.rstrip("` \n").endswith("}")
    return False


def _unreadable(
    adapter: dspy.Adapter, signature: Signature, completion: str, why: str
) -> AdapterParseError:
    return AdapterParseError(
        adapter_name=type(adapter).__name__,
        signature=signature,
        lm_response=completion,
        message=f"The reply cannot be read: {why}.",
    )

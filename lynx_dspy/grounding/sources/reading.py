"""What every source of a schema gives, and files read without trust in how they were written."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.identifiers import literal
from lynx_dspy.values import Schema

SAMPLES = 3
"""Distinct sample values kept of a column."""

_BYTE_ORDER_MARKS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
_LONGEST_SAMPLE = 400
"""Characters of a cell that are looked at at all: some cells hold megabytes."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A schema with what its source left out, held twice or got wrong, a line each."""

    schema: Schema
    notes: tuple[str, ...] = ()


def read_text(path: Path) -> str:
    """The text of a file: by its byte order mark, else UTF-8, else Windows-1252.

    Raises `BadInput` if it cannot be read.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {error.strerror}.") from None
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if raw.startswith(mark):
            return raw.decode(encoding, errors="replace")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace")


def parse_json(text: str, source: str) -> Any:
    """A JSON value; bare NaN and control characters inside texts are let through.

    Raises `BadInput` that names the line.
    """
    try:
        return json.loads(text.removeprefix("\ufeff"), strict=False)
    except json.JSONDecodeError as error:
        raise BadInput(
            f"{source}, line {error.lineno}, column {error.colno} is not JSON ({error.msg})."
        ) from None
    except RecursionError:
        raise BadInput(f"{source} is JSON nested too deeply to be a schema.") from None


def samples(values: Iterable[Any], dialect: str, most: int = SAMPLES) -> tuple[str, ...]:
    """The first `most` distinct values as SQL literals; NULL, NaN and nested values are left out.

    >>> samples(["a", None, float("nan"), "a", {"b": 1}, 2], "sqlite")
    ("'a'", '2')
    """
    found: dict[Any, None] = {}
    for value in values:
        if len(found) == most:
            break
        nested = isinstance(value, dict | list | tuple | set)
        if nested or value in (None, "") or (isinstance(value, float) and math.isnan(value)):
            continue
        found[value[:_LONGEST_SAMPLE] if isinstance(value, str) else value] = None
    texts = (literal(value, dialect) for value in found)
    return tuple(dict.fromkeys(text for text in texts if text is not None))


def line(text: object) -> str:
    """Any value as one line of text; empty for what is no text.

    >>> line(" a\\n b "), line(None), line(float("nan"))
    ('a b', '', '')
    """
    return " ".join(text.split()) if isinstance(text, str) else ""

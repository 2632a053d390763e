"""JSON files from elsewhere: bounded, regular, plain values only, or one line that says why not."""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from lynx_dspy.errors import ArtifactError

MOST_BYTES = 64_000_000
"""Larger files are no demos and no prompts."""

_DEEPEST = 40
_BLOCK = 1 << 20
_DIGITS = 16


def read(path: Path, most_bytes: int = MOST_BYTES) -> Any:
    """The value in a JSON file.

    Raises `ArtifactError` for a file that is missing, a link, too large, not UTF-8, or holds what
    plain JSON does not: NaN, doubled keys, nesting without end, half characters.
    """
    raw = read_bytes(path, most_bytes)
    try:
        value = json.loads(
            raw.decode("utf-8"),
            parse_constant=_no_constant,
            parse_float=_finite,
            object_pairs_hook=_distinct,
        )
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise ArtifactError(f"{path} is not plain JSON: {reason}.") from None
    _check(path, value)
    return value


def read_bytes(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """The content of a regular file of at most `most_bytes`. Raises `ArtifactError`."""
    _require_plain(path, most_bytes)
    try:
        return path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"Cannot read {path}: {error.strerror}.") from None


def digest(path: Path) -> str:
    """The first 16 digits of the SHA-256 of a regular file, read as a stream."""
    _require_plain(path, None)
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            found.update(block)
    return found.hexdigest()[:_DIGITS]


def digest_of(value: Any) -> str:
    """The same for a JSON value, whatever the order of its keys.

    >>> digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    True
    """
    return text_digest(json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")))


def text_digest(text: str) -> str:
    """The same for a text, as it would be for a file that holds it."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:_DIGITS]


def dumped(value: Any) -> str:
    """A JSON value as it is stored: keys sorted, one value a line, so that a diff reads well."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text + "\n"


def line(value: Any) -> str:
    """A JSON value as one line of a `.jsonl` file."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a JSON value with its dotted path; keys are texts too.

    >>> list(texts({"a": ["x", 1]}))
    [('a', 'a'), ('a.0', 'x')]
    """
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            below = f"{path}.{key}" if path else str(key)
            yield below, str(key)
            yield from texts(inner, below)
    elif isinstance(value, list | tuple):
        for position, inner in enumerate(value):
            yield from texts(inner, f"{path}.{position}" if path else str(position))


def _require_plain(path: Path, most_bytes: int | None) -> None:
    try:
        found = os.lstat(path)
    except OSError as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise ArtifactError(f"Cannot read {path}: {reason}. Is this an artifact folder?") from None
    if not stat.S_ISREG(found.st_mode):
        raise ArtifactError(f"{path} is a link, a folder or a device; artifacts hold plain files.")
    if most_bytes is not None and found.st_size > most_bytes:
        raise ArtifactError(
            f"{path} has {found.st_size:,} bytes; at most {most_bytes:,} are read of such a file."
        )


def _check(path: Path, value: Any, depth: int = 0) -> None:
    if depth > _DEEPEST:
        raise ArtifactError(f"{path} is not plain JSON: it is nested too deep.")
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
            raise ArtifactError(f"{path} is not plain JSON: a text holds half a character.")
    elif isinstance(value, dict):
        for key, inner in value.items():
            _check(path, key, depth)
            _check(path, inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _check(path, inner, depth + 1)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is no finite number")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice[:40]!r} occurs twice")
    return record

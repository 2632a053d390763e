"""Documents of five kinds as Markdown text (docs/decisions/0006).

Whatever a file is, it becomes Markdown with headings, so that `chunking.py` alone decides where
passages begin. What is read is data: nothing in it is run, and nothing outside the file is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

LARGEST = 200_000_000
"""Bytes of a file beyond which it is not read."""

EXTRA = "lynx-dspy[documents]"


class Unreadable(Exception):
    """A document that cannot be used; the text says why, in a few words."""


class Kind(NamedTuple):
    """How one kind of document is read: `read` of `module`, which needs the packages `needs`."""

    module: str
    needs: tuple[str, ...] = ()


_TEXT = Kind("text")
_HTML = Kind("html", ("bs4", "lxml", "markdownify"))
_PDF = Kind("pdf", ("pypdf",))
_WORD = Kind("word", ("mammoth", *_HTML.needs))

KINDS: dict[str, Kind] = {
    ".md": _TEXT,
    ".markdown": _TEXT,
    ".txt": _TEXT,
    ".text": _TEXT,
    ".rst": _TEXT,
    ".html": _HTML,
    ".htm": _HTML,
    ".xhtml": _HTML,
    ".pdf": _PDF,
    ".docx": _WORD,
}
"""The kind of a document by the ending of its name."""


def known() -> str:
    """The endings that are read, for a message.

    >>> known().startswith(".md, .markdown")
    True
    """
    return ", ".join(KINDS)


def is_text(file: Path) -> bool:
    """Whether `file` is read as it is, which costs next to nothing."""
    return KINDS.get(file.suffix.lower()) is _TEXT


def read(file: Path, raw: bytes) -> str:
    """The document `file`, whose bytes are `raw`, as Markdown. Raises `Unreadable`."""
    kind = _kind(file)
    reader: Callable[[bytes], str] = import_module(f"{__name__}.{kind.module}").read
    try:
        text = reader(raw)
    except RecursionError as error:
        raise Unreadable("its parts are nested too deeply") from error
    if not text.strip():
        raise Unreadable("no text in it")
    return text


def content(file: Path) -> bytes:
    """The bytes of a document that can be read. Raises `Unreadable`, without opening it if so."""
    _kind(file)
    try:
        if file.stat().st_size > LARGEST:
            raise Unreadable(f"larger than {LARGEST // 1_000_000} MB")
        return file.read_bytes()
    except OSError as error:
        raise Unreadable(f"cannot be opened ({error.strerror})") from error


def _kind(file: Path) -> Kind:
    kind = KINDS.get(file.suffix.lower())
    if kind is None:
        raise Unreadable(f"files of type {file.suffix or 'no suffix'!r} are not read")
    absent = missing(kind.needs)
    if absent:
        raise Unreadable(f"{' and '.join(absent)} missing; `pip install '{EXTRA}'` brings it")
    return kind


def missing(packages: Iterable[str]) -> list[str]:
    """Those of `packages` that are not installed.

    >>> missing(["json", "surely_not_there"])
    ['surely_not_there']
    """
    return [package for package in packages if find_spec(package) is None]

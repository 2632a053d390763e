"""Markdown and plain text in whatever encoding, even several in one file."""

from __future__ import annotations

import codecs

from lynx_dspy.grounding.loaders import Unreadable

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks; that of UTF-32 begins like that of UTF-16."""

_LOOKED_AT = 4_096


def read(raw: bytes) -> str:
    """The text, without a byte order mark. Raises `Unreadable` for what is no text."""
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return raw.decode(encoding, errors="replace").removeprefix("\ufeff")
    if b"\0" in raw[:_LOOKED_AT]:
        raise Unreadable("not a text")
    return decoded(raw)


def decoded(raw: bytes) -> str:
    r"""UTF-8, and Windows-1252 for the lines that are not: files grow by hands with other tools.

    >>> decoded("naïve\n".encode() + "café".encode("cp1252"))
    'naïve\ncafé'
    """
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(_line(line) for line in raw.splitlines(keepends=True))


def _line(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace")

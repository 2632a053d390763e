"""Text from outside on its way to a terminal: a cell or a name may hold what steers one."""

from __future__ import annotations

import json
import re
from typing import Any

import click

_STEERS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and line feed, marks that turn the direction, half characters."""

_LONGEST_LINE = 1_000


def visible(text: str) -> str:
    r"""`text` with what steers a terminal, or cannot be encoded, spelled out.

    >>> print(visible("\x1b[31mred"), visible("\ud800"), visible("né"))
    \x1b[31mred \ud800 né
    """
    return _STEERS.sub(_spelled, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    r"""`text` as one line that fits a screen; the middle of a longer one is left out.

    >>> one_line("a\n b"), len(one_line("x" * 5_000))
    ('a b', 1000)
    """
    line = visible(" ".join(text.split()))
    if len(line) <= _LONGEST_LINE:
        return line
    tail = _LONGEST_LINE // 4
    return f"{line[: _LONGEST_LINE - tail - 3]} … {line[-tail:]}"


def echo_json(record: dict[str, Any]) -> None:
    """Print one JSON object in ASCII, which every encoding and every terminal takes."""
    click.echo(json.dumps(record, allow_nan=False))


def _spelled(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")

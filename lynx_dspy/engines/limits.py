"""What one run may use: a clock that really interrupts, and caps on rows, cells and bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from lynx_dspy.values import Limits, Row

_REPEAT_SECONDS = 0.05


@contextmanager
def deadline(seconds: float, interrupt: Callable[[], object]) -> Iterator[threading.Event]:
    """Call `interrupt` once `seconds` are over, and go on calling it until the block ends.

    Once would not do: an interrupt that arrives between two statements is lost. The event that
    is given is set when time ran out.
    """
    done, expired = threading.Event(), threading.Event()

    def watch() -> None:
        if done.wait(max(seconds, 0.0)):
            return
        expired.set()
        interrupt()
        while not done.wait(_REPEAT_SECONDS):
            interrupt()

    watcher = threading.Thread(target=watch, name="lynx-deadline", daemon=True)
    watcher.start()
    try:
        yield expired
    finally:
        done.set()
        watcher.join()


def collect(rows: Iterable[tuple[Any, ...]], limits: Limits) -> tuple[tuple[Row, ...], bool]:
    """Take rows up to the caps; the flag says whether a row or a part of a cell was left out.

    >>> collect([(1, "abcdef"), (2, "b")], Limits(max_rows=1, max_cell_chars=3))
    (((1, 'abc'),), True)
    """
    kept: list[Row] = []
    truncated = False
    room = limits.max_bytes
    for row in rows:
        if len(kept) == limits.max_rows:
            return tuple(kept), True
        cells = tuple(_plain(value, limits.max_cell_chars) for value in row)
        room -= sum(map(_size, cells))
        if room < 0:
            return tuple(kept), True
        truncated = truncated or any(map(_is_clipped, row, cells))
        kept.append(cells)
    return tuple(kept), truncated


def _plain(value: Any, longest: int) -> Any:
    """Hashable and clipped: lists become tuples, structs and maps tuples of pairs, UUIDs text."""
    if isinstance(value, str | bytes):
        return value[:longest]
    if isinstance(value, list | tuple):
        return tuple(_plain(item, longest) for item in value[:longest])
    if isinstance(value, dict):
        pairs = list(value.items())[:longest]
        return tuple((_plain(key, longest), _plain(item, longest)) for key, item in pairs)
    return str(value) if isinstance(value, UUID) else value


def _is_clipped(before: Any, after: Any) -> bool:
    if isinstance(before, dict):
        return len(before) > len(after) or any(
            map(_is_clipped, before.values(), (item for _, item in after))
        )
    if isinstance(before, list | tuple):
        return len(before) > len(after) or any(map(_is_clipped, before, after))
    return isinstance(before, str | bytes) and len(before) > len(after)


def _size(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value) + 50
    return 56 + sum(map(_size, value)) if isinstance(value, tuple) else 32

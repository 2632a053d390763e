"""How the stages tell a listener what they are doing, without knowing who listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, str], None]
_listener: ContextVar[Listener | None] = ContextVar("lynx_progress", default=None)


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Send every `report` made inside the block to `listener(stage, text)`.

    >>> with listen(lambda stage, text: print(f"{stage}: {text}")):
    ...     report("generator.ground", "grounding schema")
    generator.ground: grounding schema
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report(stage: str, text: str) -> None:
    """Say that `stage` (a dotted predictor name, or a part of the package) is at `text`."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, text)

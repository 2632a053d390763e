"""One run on a server that may not answer: it is waited for until its time is over, no longer."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from lynx_dspy.engines.failures import timed_out
from lynx_dspy.values import Outcome

T = TypeVar("T")

GRACE_SECONDS = 0.3
"""What a run gets to end by itself once it was told to."""


def _nothing() -> None:
    """What cancels a run that has not begun on the server."""


@dataclass(slots=True)
class Run:
    """A run and how to stop it: the engine sets `cancel` as soon as the server knows the query."""

    seconds: float
    cancel: Callable[[], object] = _nothing
    started: float = field(default_factory=time.perf_counter)
    expired: threading.Event = field(default_factory=threading.Event)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.started

    @property
    def remaining(self) -> float:
        """Seconds that are left, never below 0."""
        return max(0.0, self.seconds - self.elapsed)

    @property
    def timeout(self) -> Outcome:
        """The outcome of a run whose time is over."""
        return timed_out(self.seconds, self.elapsed)

    def watched(self, rows: Iterable[T]) -> Iterator[T]:
        """The rows, until time is over."""
        for row in rows:
            if self.expired.is_set():
                return
            yield row


def bounded(work: Callable[[Run], Outcome], seconds: float) -> Outcome:
    """What `work` gives within `seconds`, else a timeout, with the query cancelled on the server.

    A client that hangs is left behind in its thread, so this returns in time whatever it does.
    """
    run = Run(seconds)
    given: list[Outcome] = []
    raised: list[Exception] = []
    done = threading.Event()

    def work_on() -> None:
        try:
            given.append(work(run))
        except Exception as error:  # noqa: BLE001 - raised again below, where it can be caught
            raised.append(error)
        finally:
            done.set()

    context = contextvars.copy_context()
    _in_background(lambda: context.run(work_on), "lynx-run")
    if not done.wait(seconds):
        run.expired.set()
        _in_background(run.cancel, "lynx-cancel")
        done.wait(GRACE_SECONDS)
        return run.timeout
    if raised:
        raise raised[0]
    return given[0]


def _in_background(act: Callable[[], object], name: str) -> None:
    threading.Thread(target=act, name=name, daemon=True).start()

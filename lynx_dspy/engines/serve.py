"""The child's side of `worker.py`: limits on the process, then one answer for each request.

Messages are pickles in both directions, over pipes that nobody else holds: rows keep their types.
Both ends run this package's code, and the child has no more rights than its parent; it is there for
its limits, not as a sandbox against a broken engine. A request is a tuple of a service's name and
its arguments; a reply is a tuple of "ok" or "error" and a value.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

_PROCESS_BYTES = 3 * 1024**3

Services = Mapping[str, Callable[..., Any]]


def serve(prepare: Callable[[Any], Services], failures: tuple[type[Exception], ...]) -> None:
    """Hand the first message to `prepare`, then answer with the services that it gives.

    What is among `failures` is sent back as an error message; anything else ends the process,
    which the other side reads as a crash.
    """
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _limit_memory()

    def reply(kind: str, value: object) -> None:
        pickle.dump((kind, value), replies)
        replies.flush()

    def attempt(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except failures as error:
            return error

    services = attempt(lambda: prepare(pickle.load(requests)))
    if isinstance(services, Exception):
        return reply("error", str(services))
    reply("ok", None)
    while True:
        try:
            name, *arguments = pickle.load(requests)
        except EOFError:
            return
        answer = attempt(partial(services[name], *arguments))
        if isinstance(answer, Exception):
            reply("error", str(answer) or type(answer).__name__)
        else:
            reply("ok", answer)


def _limit_memory() -> None:
    """Cap what the process may allocate. Only Linux holds to it; elsewhere the clock alone does."""
    if sys.platform != "win32":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = _PROCESS_BYTES if hard == resource.RLIM_INFINITY else min(hard, _PROCESS_BYTES)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))

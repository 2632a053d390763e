"""The process that forks one process a program: pandas is imported once, programs share nothing.

It stays single-threaded and runs no program itself. Requests and answers are JSON lines over pipes
that its children do not hold. Nothing in it is secret: it is started without our environment, and
the tables are read by the children.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from typing import Any

import pyarrow as pa

from lynx_dspy.engines.python import child

_POLL = 0.004
_LOST = 70
"""Exit code of a child that broke before it could say anything."""


def main() -> None:
    """Answer each line of standard input with a line; ends with it."""
    requests, replies = sys.stdin, os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    _say(replies, {"ready": True})
    for line in requests:
        job = child.Job(**json.loads(line))
        _say(replies, _watched(_forked(job), job.seconds))


def _say(replies: Any, answer: dict[str, Any]) -> None:
    replies.write(json.dumps(answer) + "\n")
    replies.flush()


def _forked(job: child.Job) -> int:
    process = os.fork()
    if process == 0:
        try:
            child.run(job)
        finally:
            os._exit(_LOST)
    return process


def _watched(process: int, seconds: float) -> dict[str, Any]:
    """How the child ended; it and all that it may have started are killed by then."""
    started = time.monotonic()
    until = started + seconds
    expired = False
    while os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() >= until:
            expired = True
            break
        time.sleep(_POLL)
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "expired": expired,
        "seconds": time.monotonic() - started,
    }


if __name__ == "__main__":
    main()

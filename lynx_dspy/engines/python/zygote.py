"""The process that forks one process a program: pandas is imported once, programs share nothing.

It stays single-threaded and runs no program itself. Requests and answers are JSON lines over pipes
that its children do not hold. Nothing in it is secret: it is started without our environment, and
the tables are read by the children.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from typing import Any

import pyarrow as pa

from lynx_dspy.engines.python import child

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
        _say(replies, _watched(*_forked(job), job.seconds))


def _say(replies: Any, answer: dict[str, Any]) -> None:
    replies.write(json.dumps(answer) + "\n")
    replies.flush()


def _forked(job: child.Job) -> tuple[int, int]:
    """The child's process, and a pipe that ends when the last process that holds it does."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            child.run(job, keep=writing)
        finally:
            os._exit(_LOST)
    os.close(writing)
    return process, reading


def _watched(process: int, pipe: int, seconds: float) -> dict[str, Any]:
    """How the child ended; it and all that it may have started are killed by then.

    A child that lets go of the pipe is taken to have ended.
    """
    started = time.monotonic()
    ended, _, _ = select.select([pipe], [], [], seconds)
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    os.close(pipe)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "expired": not ended,
        "seconds": time.monotonic() - started,
    }


if __name__ == "__main__":
    main()

"""A child process that answers requests, and that can be killed when it does not."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import weakref
from typing import Any

from lynx_dspy.engines.limits import deadline

_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TZ", "TMPDIR", "TEMP", "LANG")


class WorkerDied(Exception):
    """The process ended before it answered; `expired` says that the clock had it killed."""

    def __init__(self, expired: bool) -> None:
        super().__init__("the engine's process ended before it answered")
        self.expired = expired


class WorkerError(Exception):
    """The process answered with an error message."""


class Worker:
    """`python -m module`, given `setup` and then one request at a time, from any thread."""

    def __init__(self, module: str, setup: object, open_seconds: float) -> None:
        self._lock = threading.Lock()
        self._process = _start(module)
        self._end = weakref.finalize(self, _stop, self._process)
        try:
            self._exchange(setup, open_seconds)
        except (WorkerDied, WorkerError):
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether the process can still answer."""
        return self._end.alive and self._process.poll() is None

    def ask(self, request: tuple[Any, ...], seconds: float) -> Any:
        """The answer to `request`; the process is killed after `seconds` without one.

        Raises `WorkerDied`, after which this object only raises that, and `WorkerError`.
        """
        with self._lock:
            return self._exchange(request, seconds)

    def close(self) -> None:
        """End the process and give back its pipes. Closing twice is allowed."""
        self._end()

    def _exchange(self, message: object, seconds: float) -> Any:
        process = self._process
        if process.stdin is None or process.stdout is None or process.stdin.closed:
            raise WorkerDied(False)
        with deadline(seconds, process.kill) as expired:
            try:
                pickle.dump(message, process.stdin)
                process.stdin.flush()
                kind, value = pickle.load(process.stdout)
            except (EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
                process.kill()
                process.wait()
                raise WorkerDied(expired.is_set()) from error
        if kind == "error":
            raise WorkerError(value)
        return value


def _start(module: str) -> subprocess.Popen[bytes]:
    """Start it with our import path, not the current folder's, and without our environment."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**kept, "PYTHONPATH": path},
        start_new_session=True,
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:  # a request that was never read is still in the buffer
                continue

"""Child processes that answer requests, and that are killed when they do not."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import weakref
from functools import partial
from typing import Any

from lynx_dspy.engines.limits import deadline

_MOST_WORKERS = 4
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TZ", "TMPDIR", "TEMP", "LANG")


class WorkerDied(Exception):
    """The process ended before it answered; `expired` says that the clock had it killed."""

    def __init__(self, expired: bool) -> None:
        super().__init__("the engine's process ended before it answered")
        self.expired = expired


class WorkerError(Exception):
    """The process answered with an error message."""


class Pool:
    """Workers of one kind, started when asked for and kept for the next request.

    Threads that ask at one time get a worker each, up to a handful; the others wait.
    """

    def __init__(self, module: str, setup: object, open_seconds: float = 60.0) -> None:
        self._start = partial(Worker, module, setup, open_seconds)
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(_MOST_WORKERS)
        self._idle: list[Worker] = []
        self._closed = False

    def ask(self, request: tuple[Any, ...], seconds: float) -> Any:
        """The answer to `request`; its worker is killed after `seconds` without one.

        Raises `WorkerDied` and `WorkerError`.
        """
        with self._turns:
            worker = self._take()
            usable = False
            try:
                answer = worker.ask(request, seconds)
                usable = True
                return answer
            except WorkerError:
                usable = True
                raise
            finally:
                self._give_back(worker, usable)

    @property
    def idle(self) -> tuple[Worker, ...]:
        """The workers that wait for a request."""
        return tuple(self._idle)

    def close(self) -> None:
        """End all workers. Closing twice is allowed."""
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle.pop().close()

    def _take(self) -> Worker:
        with self._lock:
            if self._closed:
                raise WorkerError("the database was closed; connect again")
            while self._idle:
                worker = self._idle.pop()
                if worker.alive:
                    return worker
                worker.close()
        return self._start()

    def _give_back(self, worker: Worker, usable: bool) -> None:
        with self._lock:
            if usable and not self._closed:
                self._idle.append(worker)
            else:
                worker.close()


class Worker:
    """`python -m module`, given `setup` and then one request at a time."""

    def __init__(self, module: str, setup: object, open_seconds: float) -> None:
        try:
            self.process = _start(module)
        except OSError as error:
            raise WorkerError(f"the engine's process cannot start: {error}") from error
        self._end = weakref.finalize(self, _stop, self.process)
        try:
            self.ask(setup, open_seconds)
        except WorkerDied as error:
            self.close()
            raise WorkerError("the engine's process ended while it opened the database") from error
        except WorkerError:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether the process can still answer."""
        return self._end.alive and self.process.poll() is None

    def close(self) -> None:
        """End the process and give back its pipes. Closing twice is allowed."""
        self._end()

    def ask(self, message: object, seconds: float) -> Any:
        """The answer to `message`; the process is killed after `seconds` without one.

        Raises `WorkerDied`, after which this object only raises that, and `WorkerError`.
        """
        process = self.process
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

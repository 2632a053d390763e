"""Run untrusted Python programs: each in a process of its own that is confined, then killed.

What the confinement is worth on which platform: `docs/decisions/` and `lynx doctor`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lynx_dspy.engines.limits import deadline
from lynx_dspy.engines.python.child import REPORT_FILE, RESULT_FILE, SCRATCH, Job
from lynx_dspy.engines.python.reading import Report, Table, Unreadable, read_report, read_result
from lynx_dspy.values import Limits

_MODULE = "lynx_dspy.engines.python.zygote"
_MOST_AT_A_TIME = 4
_OPEN_SECONDS = 60.0
_GRACE_SECONDS = 2.0
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TZ", "LANG")
_ONE_THREAD = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""A process that forks must have no other threads; Arrow's allocator starts one unasked."""

MEMORY_BYTES = 2 * 1024**3
"""What a program may take beyond what Python, pandas and NumPy take."""

PRINTED_CHARS = 10_000


class SandboxFault(Exception):
    """The sandbox could not run a program; that is not the program's fault."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a program: a table, or a report that says why there is none.

    `code` is the process's exit code (negative for a signal), `expired` that its time was over.
    """

    code: int
    expired: bool
    report: Report
    table: Table | None
    fault: str
    seconds: float


class Sandbox:
    """Runs programs over Parquet files. Threads that ask at one time get a process each.

    `tables` are the files by the name that programs know them by.
    """

    def __init__(self, tables: Mapping[str, Path], memory: int = MEMORY_BYTES) -> None:
        self._tables = {name: str(Path(file).resolve()) for name, file in tables.items()}
        self._memory = memory
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(_MOST_AT_A_TIME)
        self._idle: list[_Zygote] = [_Zygote()]  # it warms up while a model writes
        self._closed = False

    def run(self, code: str, limits: Limits | None = None) -> Ran:
        """Run one program to its end, or to the end of its time. Raises `SandboxFault`."""
        limits = limits or Limits()
        with self._turns, tempfile.TemporaryDirectory(prefix="lynx-run-") as folder:
            place = Path(folder).resolve()
            (place / SCRATCH).mkdir()
            job = Job(
                code=code,
                folder=str(place),
                tables=self._tables,
                seconds=limits.timeout_seconds,
                max_rows=limits.max_rows,
                max_cell_chars=limits.max_cell_chars,
                memory=self._memory,
                file=limits.max_bytes,
                printed=PRINTED_CHARS,
            )
            return _ran(place, self._ask(job), limits)

    def close(self) -> None:
        """End all processes. Closing twice is allowed."""
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle.pop().close()

    def _ask(self, job: Job) -> dict[str, Any]:
        zygote = self._take()
        usable = False
        try:
            answer = zygote.ask(asdict(job), job.seconds + _GRACE_SECONDS)
            usable = True
            return answer
        finally:
            self._give_back(zygote, usable)

    def _take(self) -> _Zygote:
        with self._lock:
            if self._closed:
                raise SandboxFault("the database was closed; connect again")
            while self._idle:
                zygote = self._idle.pop()
                if zygote.alive:
                    return zygote
                zygote.close()
        return _Zygote()

    def _give_back(self, zygote: _Zygote, usable: bool) -> None:
        with self._lock:
            if usable and not self._closed:
                self._idle.append(zygote)
            else:
                zygote.close()


class _Zygote:
    """`zygote.py` in a process, and the two pipes to it."""

    def __init__(self) -> None:
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        path = os.pathsep.join(entry for entry in sys.path if entry)
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", _MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                env={**kept, **_ONE_THREAD, "PYTHONPATH": path},
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxFault(f"the sandbox cannot start: {error}") from error
        self._end = weakref.finalize(self, _stop, self.process)
        self._is_ready = False

    @property
    def alive(self) -> bool:
        return self._end.alive and self.process.poll() is None

    def close(self) -> None:
        self._end()

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        if not self._is_ready:
            self._exchange("", _OPEN_SECONDS)
            self._is_ready = True
        return self._exchange(json.dumps(request) + "\n", seconds)

    def _exchange(self, line: str, seconds: float) -> dict[str, Any]:
        if self.process.stdin is None or self.process.stdout is None:
            raise SandboxFault("the sandbox has no pipes")
        with deadline(seconds, self.process.kill):
            try:
                self.process.stdin.write(line)
                self.process.stdin.flush()
                answer: dict[str, Any] = json.loads(self.process.stdout.readline())
            except (OSError, ValueError) as error:
                self.close()
                raise SandboxFault("the sandbox's process ended before it answered") from error
        return answer


def _stop(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def _ran(place: Path, ended: Mapping[str, Any], limits: Limits) -> Ran:
    code, expired, seconds = ended["code"], ended["expired"], ended["seconds"]
    try:
        report = read_report(place / REPORT_FILE)
        if report.error or report.kind or expired or code:
            return Ran(code, expired, report, None, "", seconds)
        table = read_result(place / RESULT_FILE, limits, limits.max_bytes)
    except Unreadable as fault:
        return Ran(code, expired, Report(), None, str(fault), seconds)
    return Ran(code, expired, report, table, "", seconds)

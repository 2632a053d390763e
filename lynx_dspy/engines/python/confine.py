"""Confine a process: one layer after the other, each as far as the machine offers it.

`python -m lynx_dspy.engines.python.confine` prints which layers hold here, as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lynx_dspy.engines.python import audit, kernel, landlock, seccomp

_FILES = 128
_PROCESSES = 64
_PAGE = resource.getpagesize()


@dataclass(frozen=True, slots=True)
class Caps:
    """What a process may use: bytes of memory and of one file, seconds on the processor."""

    memory: int = 2 * 1024**3
    file: int = 64 * 1024**2
    seconds: int = 31


Report = dict[str, str]


def confine(readable: Sequence[Path], caps: Caps) -> Report:
    """Confine this process for good; layer -> "on", or why it could not be had.

    `readable` are the only files and folders that it can read from now on.
    """
    report: Report = {}
    report["limits"] = _attempt(lambda: _limits(caps))
    report["network namespace"] = _attempt(kernel.leave_network)
    report["capabilities"] = _attempt(kernel.drop_capabilities)
    report["landlock"] = _attempt(lambda: landlock.restrict(readable))
    report["seccomp"] = _attempt(seccomp.restrict)
    if report["seccomp"] != ON:
        _attempt(_few_processes)
    audit.install(readable)
    report["audit hook"] = ON
    return report


ON = "on"


def _attempt(layer: Callable[[], None]) -> str:
    try:
        layer()
    except OSError as error:
        return f"off: {error.strerror or error}"
    return ON


def _limits(caps: Caps) -> None:
    """Memory counts from here on: what is loaded already is shared with the parent."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_CPU, caps.seconds)
    _lower(resource.RLIMIT_FSIZE, caps.file)
    _lower(resource.RLIMIT_NOFILE, _FILES)
    held = _held()
    _lower(resource.RLIMIT_DATA, held + caps.memory)
    _lower(resource.RLIMIT_AS, held + caps.memory)


def _held() -> int:
    """Bytes of address space in use; a guess where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE
    except OSError:
        return 1024**3


def _few_processes() -> None:
    _lower(resource.RLIMIT_NPROC, _PROCESSES)


def _lower(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


def probe() -> Report:
    """Which layers hold on this machine; asked of a process that ends at once."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        report = confine([Path(sys.prefix)], Caps())
        os.write(writing, json.dumps(report).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    found: Report = json.loads(text)
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(probe()))

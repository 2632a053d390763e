"""An audit hook (PEP 578): Python's own calls that a program may not make.

The hook holds for all of the process and cannot be taken out again. It sees what goes through
Python; code in C that opens a file by itself is the affair of Landlock and seccomp.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

MARK = "the sandbox allows no"

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_DENIED = (
    "_posixsubprocess.",
    "_winapi.",
    "ctypes.",
    "cpython.run_",
    "ensurepip.",
    "fcntl.",
    "ftplib.",
    "gc.get_",
    "glob.glob",
    "http.client.",
    "imaplib.",
    "msvcrt.",
    "nntplib.",
    "pickle.find_class",
    "poplib.",
    "pty.",
    "resource.",
    "shutil.",
    "signal.",
    "smtplib.",
    "socket.",
    "sqlite3.",
    "subprocess.",
    "sys.addaudithook",
    "sys.setprofile",
    "sys.settrace",
    "syslog.",
    "telnetlib.",
    "tempfile.",
    "urllib.",
    "webbrowser.",
    "winreg.",
)
"""Beginnings of the events that are never allowed."""

_ALLOWED_OF_OS = frozenset({"os.listdir", "os.scandir"})

# fmt: off
_NEVER_IMPORTED = frozenset({
    "_ctypes", "_multiprocessing", "_posixsubprocess", "_socket", "_sqlite3", "_ssl", "antigravity",
    "asyncio", "ctypes", "ensurepip", "fcntl", "ftplib", "http", "idlelib", "multiprocessing",
    "pip", "pty", "smtplib", "socket", "sqlite3", "ssl", "subprocess", "tkinter", "urllib.request",
    "venv", "webbrowser",
})
# fmt: on


class Denied(PermissionError):
    """What the hook raises; its text begins with `MARK`."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{MARK} {what}")


def install(readable: Sequence[Path]) -> None:
    """Begin to deny. Files may be read below `readable` only."""
    sys.addaudithook(_hook(tuple(os.path.realpath(path) for path in readable)))


def _hook(roots: tuple[str, ...]) -> Callable[[str, tuple[object, ...]], None]:
    below = tuple(f"{root}{os.sep}" for root in roots)
    exact = frozenset(roots)
    # A program that finds this module may change its globals, but not what is bound here.
    writes, denied, own, never, refused = _WRITES, _DENIED, _ALLOWED_OF_OS, _NEVER_IMPORTED, Denied
    fsdecode, realpath = os.fsdecode, os.path.realpath

    def is_readable(path: object) -> bool:
        text = realpath(fsdecode(path))  # type: ignore[arg-type]
        return text in exact or text.startswith(below)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, int):
                return
            if isinstance(flags, int) and flags & writes:
                raise refused(f"opening of a file to write ({path!r})")
            if not is_readable(path):
                raise refused(f"reading of {path!r}")
        elif event == "import":
            if str(arguments[0]) in never:
                raise refused(f"import of {arguments[0]}")
        elif event.startswith(denied):
            raise refused(event)
        elif event in own:
            if not is_readable(arguments[0] or "."):
                raise refused(f"{event} of {arguments[0]!r}")
        elif event.startswith("os."):
            raise refused(event)

    return hook

"""Landlock (Linux 5.13 and later): a process gives up all files but those it names, for good.

Source: the kernel's `Documentation/userspace-api/landlock.rst`. Needs no privilege. It says nothing
about looking at a file's size or owner (`stat`), which stays possible.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

from lynx_dspy.engines.python.kernel import NotOffered, no_new_privileges, system_call

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""ABI -> how many rights on files it knows; later ones know as many as the last."""
_NETWORK_SINCE, _SCOPES_SINCE = 4, 6
_TCP = 0b11
_SCOPES = 0b11
"""Neither abstract sockets nor signals leave the process's own domain."""


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scopes", ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """The kernel's Landlock ABI. Raises `NotOffered` where there is none."""
    return system_call(_CREATE, None, 0, _VERSION)


def restrict(readable: Iterable[Path]) -> None:
    """Let this process read below `readable` and touch no other file. Raises `NotOffered`."""
    abi = version()
    rights = (1 << _RIGHTS.get(abi, _RIGHTS[max(_RIGHTS)])) - 1
    rules = _Ruleset(
        rights,
        _TCP if abi >= _NETWORK_SINCE else 0,
        _SCOPES if abi >= _SCOPES_SINCE else 0,
    )
    size = 24 if abi >= _SCOPES_SINCE else 16 if abi >= _NETWORK_SINCE else 8
    handle = system_call(_CREATE, ctypes.byref(rules), size, 0)
    try:
        for path in readable:
            _allow(handle, path)
        no_new_privileges()
        system_call(_RESTRICT, handle, 0)
    finally:
        os.close(handle)


def _allow(ruleset: int, path: Path) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rights = _READ_FILE | _READ_DIR if path.is_dir() else _READ_FILE
        rule = _Beneath(rights, place)
        system_call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(place)


__all__ = ["NotOffered", "restrict", "version"]

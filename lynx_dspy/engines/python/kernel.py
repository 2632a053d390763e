"""Calls to the Linux kernel that Python has no function for."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys

_SET_NO_NEW_PRIVILEGES = 38
_SET_PARENT_DEATH_SIGNAL = 1
_KILL = 9

NEW_NAMESPACES = 0x40000000 | 0x08000000 | 0x04000000
"""Network, System V IPC and host name."""

NEW_USER = 0x10000000


class NotOffered(OSError):
    """The kernel, or the place where it runs, does not offer this."""


def is_known() -> bool:
    """Whether the numbers here are right for this machine.

    >>> isinstance(is_known(), bool)
    True
    """
    return sys.platform == "linux" and platform.machine() == "x86_64"


def system_call(number: int, *arguments: object) -> int:
    """The kernel's answer. Raises `NotOffered` with its reason."""
    if not is_known():
        raise NotOffered(errno.ENOSYS, "not Linux on x86_64")
    kernel = ctypes.CDLL(None, use_errno=True)
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    answer = int(kernel.syscall(ctypes.c_long(number), *wide))
    return _checked(answer)


def no_new_privileges() -> None:
    """No program that this process starts gets more rights than it has. Raises `NotOffered`."""
    _control(_SET_NO_NEW_PRIVILEGES, 1)


def die_with_parent() -> None:
    """Have this process killed when the one that forked it ends. Raises `NotOffered`."""
    _control(_SET_PARENT_DEATH_SIGNAL, _KILL)


def leave_network() -> None:
    """Move into namespaces of one's own: no network device but a dead loopback.

    Without the right to do so a user namespace gives it. Raises `NotOffered`.
    """
    kernel = _library()
    if kernel.unshare(NEW_NAMESPACES) == 0:
        return
    _checked(kernel.unshare(NEW_USER | NEW_NAMESPACES))


def drop_capabilities() -> None:
    """Give up what root may do beyond a file's owner. Raises `NotOffered`."""
    version = (ctypes.c_uint32 * 2)(0x20080522, 0)
    system_call(126, ctypes.byref(version), ctypes.byref((ctypes.c_uint32 * 6)()))


def _control(option: int, value: int) -> None:
    zeros = [ctypes.c_ulong(0)] * 3
    _checked(int(_library().prctl(option, ctypes.c_ulong(value), *zeros)))


def _library() -> ctypes.CDLL:
    if sys.platform != "linux":
        raise NotOffered(errno.ENOSYS, "not Linux")
    return ctypes.CDLL(None, use_errno=True)


def _checked(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise NotOffered(number, os.strerror(number))
    return answer

"""seccomp (Linux on x86_64): the list of system calls that a confined process may make.

Everything that is not listed fails with EPERM: sockets, new processes and programs, signals,
writing, renaming or removing files, mounts, ptrace, shared memory. Source: seccomp(2), bpf(4).
"""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Iterator
from dataclasses import dataclass

from lynx_dspy.engines.python.kernel import no_new_privileges, system_call

_SECCOMP, _SET_FILTER, _ALL_THREADS = 317, 1, 1
_X86_64 = 0xC000003E
_X32 = 0x40000000
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16

_WRITES = 0o3 | 0o100 | 0o1000
"""Bits of `open`: write-only, read-write, create, truncate."""
_THREAD = 0x00010000

# fmt: off
ALLOWED: dict[str, int] = {
    "read": 0, "write": 1, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8,
    "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14,
    "rt_sigreturn": 15, "pread64": 17, "readv": 19, "writev": 20, "access": 21, "sched_yield": 24,
    "mremap": 25, "mincore": 27, "madvise": 28, "nanosleep": 35, "getpid": 39, "exit": 60,
    "uname": 63, "getcwd": 79, "readlink": 89, "gettimeofday": 96, "getrlimit": 97,
    "getrusage": 98, "sysinfo": 99, "times": 100, "getuid": 102, "getgid": 104, "geteuid": 107,
    "getegid": 108, "getppid": 110, "getpgrp": 111, "getgroups": 115, "getpgid": 121,
    "getsid": 124, "sigaltstack": 131, "statfs": 137, "fstatfs": 138, "gettid": 186, "time": 201,
    "futex": 202, "sched_getaffinity": 204, "getdents64": 217, "set_tid_address": 218,
    "restart_syscall": 219, "fadvise64": 221, "clock_gettime": 228, "clock_getres": 229,
    "clock_nanosleep": 230, "exit_group": 231, "newfstatat": 262, "readlinkat": 267,
    "faccessat": 269, "ppoll": 271, "set_robust_list": 273, "preadv": 295, "getcpu": 309,
    "getrandom": 318, "membarrier": 324, "statx": 332, "rseq": 334, "faccessat2": 439,
}
"""Calls that are allowed whatever their arguments are."""
# fmt: on

_FCNTL = (0, 1, 2, 3, 1030)
"""Duplicate, read and set the flags of a descriptor: nothing that sends a signal."""


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of the filter: what to do, how far to jump if so and if not, its constant."""

    code: int
    then: int
    otherwise: int
    value: int


class _Filter(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("then", ctypes.c_uint8),
        ("otherwise", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("steps", ctypes.POINTER(_Filter)))


def restrict() -> None:
    """Hold this process and its threads to the list, for good. Raises `NotOffered`."""
    steps = tuple(program())
    made = [_Filter(step.code, step.then, step.otherwise, step.value) for step in steps]
    array = (_Filter * len(made))(*made)
    no_new_privileges()
    given = _Program(len(steps), array)
    system_call(_SECCOMP, _SET_FILTER, _ALL_THREADS, ctypes.byref(given))


def program() -> Iterator[Step]:
    """The filter, in the kernel's own instructions."""
    yield Step(_LOAD, 0, 0, _ARCHITECTURE)
    yield Step(_EQUAL, 1, 0, _X86_64)
    yield _fails(errno.EPERM)
    yield Step(_LOAD, 0, 0, _NUMBER)
    yield Step(_AT_LEAST, 0, 1, _X32)
    yield _fails(errno.EPERM)
    for number in ALLOWED.values():
        yield Step(_EQUAL, 0, 1, number)
        yield Step(_RETURN, 0, 0, _ALLOW)
    yield from _without_bits(2, 1, _WRITES)
    yield from _without_bits(257, 2, _WRITES)
    yield from _threads_only()
    yield from _one_of(72, 1, _FCNTL)
    yield from _null(302, 2)
    yield _fails(errno.EPERM)


def _without_bits(number: int, argument: int, bits: int) -> Iterator[Step]:
    """A call that is allowed if its argument has none of the bits."""
    yield Step(_EQUAL, 0, 4, number)
    yield _argument(argument)
    yield Step(_ANY_BIT, 0, 1, bits)
    yield _fails(errno.EPERM)
    yield Step(_RETURN, 0, 0, _ALLOW)


def _threads_only() -> Iterator[Step]:
    """`clone` for threads; `clone3`, whose flags lie in memory, is said not to exist."""
    yield Step(_EQUAL, 0, 4, 56)
    yield _argument(0)
    yield Step(_ANY_BIT, 1, 0, _THREAD)
    yield _fails(errno.EPERM)
    yield Step(_RETURN, 0, 0, _ALLOW)
    yield Step(_EQUAL, 0, 1, 435)
    yield _fails(errno.ENOSYS)


def _one_of(number: int, argument: int, values: tuple[int, ...]) -> Iterator[Step]:
    yield Step(_EQUAL, 0, 2 + 2 * len(values), number)
    yield _argument(argument)
    for value in values:
        yield Step(_EQUAL, 0, 1, value)
        yield Step(_RETURN, 0, 0, _ALLOW)
    yield _fails(errno.EPERM)


def _null(number: int, argument: int) -> Iterator[Step]:
    """A call that is allowed if a pointer is null: `prlimit64` may look, not change."""
    yield Step(_EQUAL, 0, 6, number)
    yield _argument(argument)
    yield Step(_EQUAL, 0, 3, 0)
    yield _argument(argument, high=True)
    yield Step(_EQUAL, 0, 1, 0)
    yield Step(_RETURN, 0, 0, _ALLOW)
    yield _fails(errno.EPERM)


def _argument(place: int, high: bool = False) -> Step:
    return Step(_LOAD, 0, 0, _ARGUMENTS + 8 * place + (4 if high else 0))


def _fails(reason: int) -> Step:
    return Step(_RETURN, 0, 0, _FAIL | reason)

"""Append-only files of JSON lines that survive crashes: nothing finished is lost or torn."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from lynx_dspy.errors import BadInput

_BLOCK = 65_536

Line = dict[str, Any]


class Journal:
    """JSON objects with an `id`, one a line; the last line of an id counts.

    Opening it cuts off a torn last line and keeps other processes out. Without `durable` lines may
    be lost with the power, though not with the process: for what is cheap to make again. Raises
    `BadInput` where it cannot be opened, or another process writes to it.
    """

    def __init__(self, path: Path, durable: bool = True) -> None:
        self.path = path
        self._durable = durable
        try:
            self._stream: BinaryIO = path.open("a+b")
        except OSError as error:
            raise BadInput(f"Cannot write {path}: {error.strerror}.") from None
        try:
            _lock(self._stream)
        except BlockingIOError:
            self._stream.close()
            raise BadInput(f"{path} is being written by another run. Wait, or stop it.") from None
        mend(self._stream)
        if durable:
            _sync_name(path)

    def append(self, value: Mapping[str, Any]) -> None:
        """Write one line; when this returns, it survives the end of the process."""
        line = json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"
        self._stream.write(line.encode("utf-8", errors="backslashreplace"))
        self._stream.flush()
        if self._durable:
            os.fsync(self._stream.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()


def lines(path: Path) -> Iterator[Line]:
    """The last line of each id, one at a time, in the order of the file.

    A missing file has none. Raises `BadInput` for a whole line that is not a JSON object with an
    id.
    """
    if not path.is_file():
        return
    with path.open("rb") as stream:
        for offset in sorted(_last_offsets(path, stream).values()):
            stream.seek(offset)
            yield _parsed(path, stream.readline())


def _last_offsets(path: Path, stream: BinaryIO) -> dict[str, int]:
    """Where the last whole line of each id begins, in bytes."""
    last: dict[str, int] = {}
    offset = 0
    for line in stream:
        if line.endswith(b"\n"):
            last[_parsed(path, line)["id"]] = offset
        offset += len(line)
    return last


def mend(stream: BinaryIO) -> int:
    """Cut off what follows the last line break; the number of bytes cut.

    A crash can leave half a line there, a loss of power also zero bytes.
    """
    size = keep = stream.seek(0, os.SEEK_END)
    while keep:
        start = max(0, keep - _BLOCK)
        stream.seek(start)
        found = stream.read(keep - start).rfind(b"\n")
        keep = start + found + 1
        if found >= 0:
            break
    if keep < size:
        stream.truncate(keep)
    stream.seek(keep)
    return size - keep


def write_whole(path: Path, text: str) -> None:
    """Write a small file so that a crash leaves the old one or the new one, never half of it.

    Raises `BadInput` where it cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise BadInput(f"Cannot write {path}: {error.strerror}.") from None


def _lock(stream: BinaryIO) -> None:
    """Keep other runs out until the stream is closed, in whatever way. Raises `BlockingIOError`."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sync_name(path: Path) -> None:
    """Make sure that the file's name survives a loss of power too, not its content alone."""
    if sys.platform != "win32":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _parsed(path: Path, line: bytes) -> Line:
    try:
        value = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError):
        value = None
    if not isinstance(value, dict) or "id" not in value:
        raise BadInput(
            f"{path} has a line that is no record ({line[:60]!r}). Remove it; its question is "
            "asked again."
        )
    return value

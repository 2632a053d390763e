"""A folder of files that is replaced whole: a crash leaves the old one or the new one.

Two renames exchange the folders. Between them the old one lies beside as `.NAME.old`, where
`located` finds it. Files that are not of the set (a journal, notes) move over to the new folder.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from lynx_dspy.errors import BadInput


def located(folder: Path) -> Path:
    """The folder, or the old one if a crash came between the renames."""
    beside = _beside(folder)
    return beside if not folder.exists() and beside.is_dir() else folder


def replace_files(folder: Path, contents: Mapping[str, str], old: Collection[str]) -> None:
    """Write files so that readers see all of `old` (names) or all of `contents`.

    With nothing `old` the last of `contents` is the one whose presence makes the set. Raises
    `BadInput` where it cannot be written.
    """
    folder = Path(os.path.realpath(folder))
    try:
        _finish(folder, old)
        if not old:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in contents.items():
                _write_one(folder / name, text)
            return
        fresh = folder.with_name(f".{folder.name}.{os.getpid()}.part")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        for name, text in contents.items():
            _write_one(fresh / name, text)
        folder.rename(_beside(folder))
        fresh.rename(folder)
        _finish(folder, old)
    except OSError as error:
        place = error.filename or folder
        raise BadInput(f"Cannot write {place}: {error.strerror}. Name another folder.") from None


def _beside(folder: Path) -> Path:
    folder = Path(os.path.realpath(folder))
    return folder.with_name(f".{folder.name}.old")


def _finish(folder: Path, old: Collection[str]) -> None:
    """End an exchange: bring back what was not replaced, and drop what was."""
    beside = _beside(folder)
    if not beside.is_dir():
        return
    if not folder.exists():
        beside.rename(folder)
        return
    for path in beside.iterdir():
        if path.name not in old and not (folder / path.name).exists():
            path.rename(folder / path.name)
    shutil.rmtree(beside)


def _write_one(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    with part.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(part, path)

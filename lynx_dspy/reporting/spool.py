"""Entries that wait for their store: each a folder that holds all that is to be sent.

SPOOL/KEY/entry.json    Entry.to_json()
SPOOL/KEY/files/...     its files
SPOOL/KEY/N/files/...   those of its child N
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from lynx_dspy.errors import BadInput
from lynx_dspy.optimize import plainjson
from lynx_dspy.reporting.entries import Entry

_ENTRY = "entry.json"


def keep(entry: Entry, spool: Path) -> Path:
    """Copy an entry and its files into the spool; its folder. Raises `BadInput`."""
    place = spool / entry.key
    part = spool / f".{entry.key}.{os.getpid()}.part"
    try:
        if (place / _ENTRY).is_file():
            return place
        shutil.rmtree(part, ignore_errors=True)
        _copy(entry, part)
        (part / _ENTRY).write_text(json.dumps(entry.to_json()), encoding="utf-8")
        part.rename(place)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise BadInput(f"Cannot keep what was to be tracked in {spool}: {error}.") from None
    return place


def waiting(spool: Path) -> Iterator[tuple[Path, Entry]]:
    """Each kept entry with its folder, oldest first. Raises `BadInput` for one that is damaged."""
    found = (path.parent for path in spool.glob(f"[!.]*/{_ENTRY}"))
    for place in sorted(found, key=lambda folder: folder.stat().st_mtime):
        try:
            yield place, Entry.from_json(plainjson.read(place / _ENTRY, 64_000_000), place)
        except (KeyError, TypeError) as error:
            raise BadInput(f"{place} holds no entry of this version ({error!r}).") from None


def drop(place: Path) -> None:
    """Remove an entry that was sent."""
    shutil.rmtree(place, ignore_errors=True)


def _copy(entry: Entry, folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, source in entry.files.items():
        target = folder / "files" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(source, bytes):
            target.write_bytes(source)
        elif source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copyfile(source, target)
    for number, child in enumerate(entry.children):
        _copy(child, folder / str(number))

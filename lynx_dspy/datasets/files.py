"""Reading what a download holds, with one clear line where it is not as expected."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.sources import tables_json

Record = dict[str, Any]


def find_file(root: Path, names: Sequence[str], what: str, page: str) -> Path:
    """The file of one of these names that is nearest to `root`, in whatever layout it was unpacked.

    Raises `BadInput` that says what was looked for, where, and which page has it.
    """
    need_folder(root, what, page)
    found = [path for path in root.rglob("*") if path.name in names and path.is_file()]
    if not found:
        raise BadInput(
            f"No {what} ({' or '.join(names)}) in {root} or below it. Unpack the download from "
            f"{page} there, or name the folder where it is."
        )
    return min(found, key=lambda path: (len(path.parts), names.index(path.name), path))


def need_folder(root: Path, what: str, page: str) -> None:
    """Raises `BadInput` unless `root` is a folder."""
    if not root.is_dir():
        raise BadInput(f"No folder {root} with {what}. Get it from {page} and name its folder.")


def find_databases(root: Path, page: str) -> dict[str, Path]:
    """Every `<db>/<db>.sqlite` below `root`, by its name.

    Raises `BadInput` if there is none: then the databases were left out or not unzipped.
    """
    found = {p.stem: p for p in sorted(root.rglob("*.sqlite")) if p.parent.name == p.stem}
    if found:
        return found
    archives = sorted(path.name for path in root.rglob("*database*.zip"))
    hint = f"Unzip {archives[0]}." if archives else f"They are part of the download from {page}."
    raise BadInput(f"No databases (<db>/<db>.sqlite) in {root} or below it. {hint}")


def database_or_reason(databases: dict[str, Path], db: str) -> tuple[str, str]:
    """A database's path and no reason, or no path and why."""
    if db in databases:
        return str(databases[db]), ""
    return "", f"{db}/{db}.sqlite is not in the download"


def read_json(path: Path) -> Any:
    """The JSON value in a file. Raises `BadInput` if it is cut off or not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise BadInput(
            f"{path} is not whole JSON ({error}). Unpack or download it again."
        ) from None


def read_records(path: Path, fields: Iterable[str]) -> list[Record]:
    """The objects of a JSON list or JSONL file, each with at least `fields`.

    Raises `BadInput` that names the first one that is not so.
    """
    if path.suffix == ".jsonl":
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        found = [_json_line(path, n, line) for n, line in enumerate(lines, 1) if line.strip()]
    else:
        found = read_json(path)
    if not isinstance(found, list) or not found:
        raise BadInput(f"{path} holds no list of questions; unpack or download it again.")
    for position, record in enumerate(found, 1):
        lacking = [f for f in fields if not isinstance(record, dict) or f not in record]
        if lacking:
            raise BadInput(f"{path}: question {position} has no {', '.join(lacking)}.")
    return found


def _json_line(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}, line {number} is not JSON ({error.msg}).") from None


def readable_names(tables_file: Path, db: str) -> dict[str, dict[str, str]]:
    """Names in words that a Spider or BIRD tables file gives to a database's tables and columns.

    `{table: {column: words}}`, with the table's own words under "", where they say more.
    """
    entry = next((e for e in read_json(tables_file) if e.get("db_id") == db), None)
    return tables_json.readable_names(entry) if entry else {}

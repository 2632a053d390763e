"""A folder as a lake: each file, or sub-folder of files, is a table named after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lynx_dspy.engines.locate import fingerprint
from lynx_dspy.errors import DatabaseError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FORMATS = {".parquet": "parquet", ".orc": "orc", ".csv": "csv", ".tsv": "csv", ".jsonl": "json"}
_OPTIONS = {
    "csv": {"header": "true", "inferSchema": "true", "multiLine": "true", "escape": '"'},
    "tsv": {"sep": "\t"},
}


def register(session: SparkSession, folder: Path) -> None:
    """Make a view of each table in `folder`. Raises `DatabaseError` where there is none."""
    if not folder.is_dir():
        raise DatabaseError(f"No folder {folder}. Write spark:FOLDER.")
    found = list(_tables(folder))
    if not found:
        known = ", ".join(_FORMATS)
        raise DatabaseError(
            f"{folder} holds no files of tables. Known: {known}, or folders of them."
        )
    for name, path, ending in found:
        reader = session.read.format(_FORMATS[ending])
        options = _OPTIONS.get(_FORMATS[ending], {}) | _OPTIONS.get(ending[1:], {})
        reader.options(**options).load(str(path)).createOrReplaceTempView(f"`{name}`")


def stamp(folder: Path) -> str:
    """A hash that changes with the files."""
    return fingerprint(sorted(path for path in folder.rglob("*") if path.is_file()))


def _tables(folder: Path) -> Iterator[tuple[str, Path, str]]:
    """Name, path and ending of each table; hidden files and other formats are passed over."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "_")) or "`" in path.name:
            continue
        files = path.rglob("*") if path.is_dir() else iter([path])
        endings = (file.suffix.lower() for file in files if file.suffix.lower() in _FORMATS)
        ending = next(endings, "")
        if ending:
            yield path.stem, path, ending

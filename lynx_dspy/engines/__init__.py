"""`connect(url)`: one read-only view on a database, whichever engine holds it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import cast

from lynx_dspy.connections import resolve
from lynx_dspy.engines.base import Database
from lynx_dspy.engines.locate import locate

__all__ = ["Database", "connect"]

_ENGINES = {
    "sqlite": ("lynx_dspy.engines.sqlite", "SQLiteDatabase"),
    "duckdb": ("lynx_dspy.engines.duckdb", "DuckDBDatabase"),
    "files": ("lynx_dspy.engines.files", "FilesDatabase"),
    "metadata": ("lynx_dspy.engines.metadata", "MetadataDatabase"),
    "frames": ("lynx_dspy.engines.python.frames", "FramesDatabase"),
}
"""Scheme -> module and class. Modules are imported when first asked for."""


def connect(url: str | Path) -> Database:
    """Open `url` read-only; nothing is ever created or changed where it points.

    `url` is `sqlite:///PATH`, `duckdb:///PATH`, `files:///PATH`, or a bare path: a SQLite or DuckDB
    file, a CSV, TSV or Parquet file, or a folder of those (each file is a table named after it;
    sub-folders and hidden files are ignored). Paths may be relative. What a bare path holds is read
    from its first bytes, and only then from its ending.

    `metadata:PATH` is a database without an engine: a metadata folder, DDL, YAML, a dbt manifest or
    a tables file (`#NAME` chooses one of its databases, `?dialect=NAME` says how DDL is written).
    It has a schema; running a program gives `Status.UNAVAILABLE`.

    A bare word that is no file is a name that `lynx connect --save` keeps.

    `frames:///PATH` is the same folder or file as `files:///PATH`, for programs in Python.

    Raises `DatabaseError` (one line) for anything that cannot be read as a database with tables,
    and `UnknownName` for a scheme that no engine serves.
    """
    url = resolve(url) if isinstance(url, str) else url
    scheme, colon, address = str(url).partition(":")
    if colon and scheme.lower() == "metadata" and not isinstance(url, Path):
        return _engine("metadata")(address)
    if colon and scheme.lower() == "frames" and not isinstance(url, Path):
        return _engine("frames")(locate(f"files:{address}", ("files",)).path)
    place = locate(url, tuple(_ENGINES))
    return _engine(place.kind)(place.path)


def _engine(kind: str) -> Callable[[str | Path], Database]:
    module, name = _ENGINES[kind]
    return cast(Callable[[str | Path], Database], getattr(import_module(module), name))

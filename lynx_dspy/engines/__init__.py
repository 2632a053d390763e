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
    "bigquery": ("lynx_dspy.engines.bigquery", "BigQueryDatabase"),
    "snowflake": ("lynx_dspy.engines.snowflake", "SnowflakeDatabase"),
    "spark": ("lynx_dspy.engines.spark", "SparkDatabase"),
    "sc": ("lynx_dspy.engines.spark", "connect_remote"),
    "server": ("lynx_dspy.engines.sqlalchemy", "ServerDatabase"),
}
"""Scheme -> module and class. Modules are imported when first asked for."""

_WAREHOUSES = ("bigquery", "snowflake", "spark", "sc")
"""Engines whose classes read the address behind the scheme themselves."""


def connect(url: str | Path) -> Database:
    """Open `url` read-only; nothing is ever created or changed where it points.

    `url` is `sqlite:///PATH`, `duckdb:///PATH`, `files:///PATH`, or a bare path: a SQLite or DuckDB
    file, a CSV, TSV or Parquet file, or a folder of those (each file is a table named after it;
    sub-folders and hidden files are ignored). Paths may be relative. What a bare path holds is read
    from its first bytes, and only then from its ending.

    `metadata:PATH` is a database without an engine: a metadata folder, DDL, YAML, a dbt manifest or
    a tables file (`#NAME` chooses one of its databases, `?dialect=NAME` says how DDL is written).
    It has a schema; running a program gives `Status.UNAVAILABLE`.

    `bigquery://PROJECT/DATASET`, `snowflake://ACCOUNT/DATABASE`, `spark:FOLDER`, `spark://HOST:7077`
    and `sc://HOST` (Spark Connect) need an extra of the same name; see docs/how-to/warehouses.md.

    `postgresql://`, `mysql://`, `mariadb://` and any other URL of SQLAlchemy's open a database of a
    server (extras `postgres` and `mysql`); see docs/how-to/servers.md.

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
    if colon and scheme.lower() in _WAREHOUSES and not isinstance(url, Path):
        return _engine(scheme.lower())(address)
    if address.startswith("//") and scheme.lower() not in _ENGINES and not isinstance(url, Path):
        return _engine("server")(url)
    place = locate(url, tuple(_ENGINES))
    return _engine(place.kind)(place.path)


def _engine(kind: str) -> Callable[[str | Path], Database]:
    module, name = _ENGINES[kind]
    return cast(Callable[[str | Path], Database], getattr(import_module(module), name))

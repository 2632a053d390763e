"""One canonical `Schema` from whatever describes a database: `read_schema(path_or_text)`."""

from __future__ import annotations

from pathlib import Path

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.sources.reading import Reading
from lynx_dspy.values import Schema

__all__ = ["Reading", "read", "read_schema"]


def read_schema(source: str | Path, dialect: str = "") -> Schema:
    """The schema that `source` describes; see `read`."""
    return read(source, dialect).schema


def read(source: str | Path, dialect: str = "") -> Reading:
    """A schema with notes on what its source left out or got wrong.

    `source` is a path or text: a Spider 2.0 metadata folder, a `tables.json` (`PATH#db_id` where it
    holds several databases) or DDL. Raises `BadInput`.
    """
    from lynx_dspy.grounding.sources.ddl import read_ddl
    from lynx_dspy.grounding.sources.reading import read_text
    from lynx_dspy.grounding.sources.spider2 import read_metadata
    from lynx_dspy.grounding.sources.tables_json import read_tables_json

    if isinstance(source, str) and "\n" in source:
        return read_ddl(source, dialect)
    name, _, part = str(source).partition("#")
    path = Path(name)
    if path.is_dir():
        return read_metadata(path, dialect)
    if not path.is_file():
        raise BadInput(f"No schema at {path}: there is no such file or folder.")
    if path.suffix.lower() == ".json":
        return read_tables_json(path, part)
    return read_ddl(read_text(path), dialect, path.stem)

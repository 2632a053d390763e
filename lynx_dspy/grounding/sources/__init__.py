"""One canonical `Schema` from whatever describes a database: `read_schema(path_or_text)`.

docs/how-to/schemas.md shows every form. Nothing that is read is ever run.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.sources.merge import Conflict, Merged, merge
from lynx_dspy.grounding.sources.reading import Reading, parse_json, read_text
from lynx_dspy.values import Schema

__all__ = ["Conflict", "Merged", "Reading", "merge", "read", "read_schema"]

_KNOWN = (
    "Known: a Spider 2.0 metadata folder, tables.json (PATH#db_id), DDL (.sql), YAML, "
    "dbt's manifest.json and schema.yml, or a folder of such files"
)
_ENDINGS = (".sql", ".ddl", ".yml", ".yaml", ".json")
_TABLES_FILES = (
    "tables.json",
    "dev_tables.json",
    "train_tables.json",
    "mini_dev_sqlite_tables.json",
)


def read_schema(source: str | Path, dialect: str = "", part: str = "") -> Schema:
    """The schema that `source` describes; see `read`.

    >>> read_schema("CREATE TABLE orders (id INTEGER PRIMARY KEY, -- one a basket\\n note TEXT)"
    ... ).tables[0].primary_key
    ('id',)
    """
    return read(source, dialect, part).schema


def read(source: str | Path, dialect: str = "", part: str = "") -> Reading:
    """A schema, with notes on what its source left out, held twice or got wrong.

    `source` is a path or the text itself (DDL or YAML of several lines, or beginning with CREATE):
    a Spider 2.0 metadata folder, `tables.json` of Spider or BIRD, DDL in any dialect, a dbt
    manifest, dbt's schema.yml, a YAML file of our own, a folder of BIRD's description CSVs, or a
    folder of DDL and YAML files, which are merged.
    `dialect` is one of sqlglot's names; it is guessed where a source does not say it. `part`
    chooses a database of a tables file, as does `PATH#part`. Raises `BadInput`, one line.
    """
    if isinstance(source, str) and _is_text(source):
        is_ddl = "create" in source.casefold()
        return _read_ddl(source, dialect) if is_ddl else _read_yaml(source, "The text", dialect)
    path = Path(source)
    if not part and not path.exists() and "#" in path.name:
        name, _, part = str(source).rpartition("#")
        path = Path(name)
    if path.is_dir():
        return _read_folder(path, dialect, part)
    if not path.is_file():
        raise BadInput(f"No schema at {path}: there is no such file or folder. {_KNOWN}.")
    return _read_file(path, dialect, part)


def _is_text(source: str) -> bool:
    return "\n" in source or source.lstrip()[:7].upper() == "CREATE "


def _read_folder(folder: Path, dialect: str, part: str) -> Reading:
    from lynx_dspy.grounding.sources.spider2 import is_metadata, read_metadata
    from lynx_dspy.grounding.sources.tables_json import (
        is_description_folder,
        read_description_folder,
    )

    for name in (f for f in _TABLES_FILES if part and (folder / f).is_file()):
        return _read_file(folder / name, dialect, part)
    if (folder / "manifest.json").is_file():
        return _read_file(folder / "manifest.json", dialect, part)
    described = [p for p in sorted(folder.iterdir()) if p.suffix.lower() in _ENDINGS[:4]]
    if described:
        return _merged([_read_file(path, dialect, part) for path in described], folder.name)
    if is_description_folder(folder):
        return read_description_folder(folder)
    if is_metadata(folder):
        return read_metadata(folder, dialect)
    raise BadInput(f"{folder} holds no description of a database. {_KNOWN}.")


def _merged(readings: list[Reading], name: str) -> Reading:
    """The files of a folder as one schema, in the order of their names."""
    first, *others = readings
    merged = merge(first.schema, *(r.schema for r in others), additive=True)
    notes = [note for reading in readings for note in reading.notes]
    return Reading(replace(merged.schema, name=name), (*notes, *map(str, merged.conflicts)))


def _read_file(path: Path, dialect: str, part: str) -> Reading:
    ending = path.suffix.lower()
    if ending not in _ENDINGS:
        raise BadInput(f"{path} is no description of a database by its ending. {_KNOWN}.")
    text = read_text(path)
    if not text.strip():
        raise BadInput(f"{path} is empty, so it describes no tables. {_KNOWN}.")
    if ending == ".json":
        return _read_json(path, parse_json(text, str(path)), dialect, part)
    if ending in (".yml", ".yaml"):
        return _read_yaml(text, str(path), dialect, path.stem)
    return _read_ddl(text, dialect, path)


def _read_json(path: Path, value: Any, dialect: str, part: str) -> Reading:
    from lynx_dspy.grounding.sources import dbt, spider2, tables_json

    if dbt.is_manifest(value):
        return dbt.read_manifest(value, dialect)
    if isinstance(value, dict) and "column_names" in value and "db_id" not in value:
        return spider2.read_metadata(path.parent, dialect)
    return tables_json.read_tables_json(path, part)


def _read_ddl(text: str, dialect: str, path: Path | None = None) -> Reading:
    from lynx_dspy.grounding.sources.ddl import read_ddl

    return read_ddl(text, dialect, path.stem if path else "", str(path or "The text"))


def _read_yaml(text: str, source: str, dialect: str, name: str = "") -> Reading:
    from lynx_dspy.grounding.sources import dbt, yaml_file

    node = yaml_file.parse_yaml(text, source)
    if yaml_file.has_keys(node, dbt.YAML_SECTIONS):
        return dbt.read_schema_yml(yaml_file.plain(node), dialect, name)
    return yaml_file.read_yaml(node, source, dialect, name)

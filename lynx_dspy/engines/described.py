"""A database whose structure is described from outside: by a benchmark, or by its owner's files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from lynx_dspy.engines.base import Database
from lynx_dspy.engines.metadata import MetadataDatabase
from lynx_dspy.grounding.schema import with_descriptions
from lynx_dspy.grounding.sources import Conflict, Merged, Reading, merge, read
from lynx_dspy.values import Finding, Limits, Outcome, Row, Schema

Descriptions = Mapping[str, Mapping[str, str]]
"""`{table: {column: text}}`; the key "" of a table describes the table itself."""

_ENDINGS = ("", ".yml", ".yaml", ".sql", ".json")


class _Wrapped(Database):
    """`database` with another schema, whose content `digest` tells; the rest is passed through."""

    def __init__(self, database: Database, digest: str) -> None:
        self.url, self.name, self.dialect = database.url, database.name, database.dialect
        self.runs = database.runs
        self._database = database
        self._digest = hashlib.sha256(digest.encode()).hexdigest()[:16]

    def execute(self, code: str, limits: Limits | None = None) -> Outcome:
        return self._database.execute(code, limits)

    def dry_run(self, code: str) -> tuple[Finding, ...]:
        return self._database.dry_run(code)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self._database.query(sql, parameters)

    def fingerprint(self) -> str:
        return f"{self._database.fingerprint()}-{self._digest}"

    def close(self) -> None:
        self._database.close()


class DescribedDatabase(_Wrapped):
    """`database` with `descriptions` in its schema; everything else is passed through."""

    def __init__(self, database: Database, descriptions: Descriptions) -> None:
        texts = {table: dict(columns) for table, columns in descriptions.items()}
        super().__init__(database, json.dumps(texts, sort_keys=True))
        self._descriptions = descriptions

    def introspect(self) -> Schema:
        return with_descriptions(self._database.introspect(), self._descriptions)


class MergedDatabase(_Wrapped):
    """`database` with what other sources know of its tables: descriptions, keys, values.

    The database itself decides which tables and columns there are, and of which type; `conflicts`
    are where a source says otherwise, `notes` what the sources left out or got wrong.
    """

    def __init__(self, database: Database, readings: Sequence[Reading]) -> None:
        super().__init__(database, repr([reading.schema for reading in readings]))
        self._schemas = tuple(reading.schema for reading in readings)
        said = (note for reading in readings for note in reading.notes)
        self.notes = (*notes_of(database), *said)

    def introspect(self) -> Schema:
        return self._merged().schema

    @cached_property
    def conflicts(self) -> tuple[Conflict, ...]:
        return self._merged().conflicts

    def _merged(self) -> Merged:
        return merge(self._database.introspect(), *self._schemas)


def described(database: Database, sources: Sequence[str | Path], name: str = "") -> Database:
    """`database` with `sources` (see `grounding.sources.read`) merged in; itself if there are none.

    `name` is the database's name in the sources, its own by default: it chooses one of a tables
    file, and in a folder that has a file or folder of this name, that one. Raises `BadInput`.
    """
    name = name or database.name
    readings = [read(_own(source, name), part=_part(source, name)) for source in sources]
    return MergedDatabase(database, readings) if readings else database


def notes_of(database: Database) -> tuple[str, ...]:
    """What the sources of a database's schema left out or got wrong, and where they conflict."""
    if isinstance(database, MergedDatabase):
        return (*database.notes, *map(str, database.conflicts))
    return database.notes if isinstance(database, MetadataDatabase) else ()


def _own(source: str | Path, name: str) -> str | Path:
    folder = Path(source)
    if not folder.is_dir():
        return source
    places = (folder / f"{name}{ending}" for ending in _ENDINGS)
    return next((place for place in places if place.exists()), source)


def _part(source: str | Path, name: str) -> str:
    """The database of a tables file that holds several; none where the source names one."""
    path = Path(source)
    return name if path.suffix.lower() == ".json" and path.is_file() else ""

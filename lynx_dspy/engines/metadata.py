"""A database that is only described: its schema serves programs, but nothing can be run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from lynx_dspy.engines.base import Database
from lynx_dspy.engines.locate import fingerprint
from lynx_dspy.errors import BadInput, DatabaseError
from lynx_dspy.grounding.sources import Reading, read
from lynx_dspy.paths import expanded
from lynx_dspy.values import Limits, Outcome, Row, Schema, Status

_SLASHES = re.compile(r"//(?:/(?=.))?")
_OPTIONS = {"dialect"}


class MetadataDatabase(Database):
    """What `address` describes: `PATH[?dialect=NAME][#DATABASE]`, see `grounding.sources.read`.

    `notes` are what the source left out or got wrong, a line each. Raises `DatabaseError` if no
    schema can be read.
    """

    runs = False

    def __init__(self, address: str) -> None:
        path, dialect, part = _split(address)
        self.path = path.absolute()
        self._part, self._given = part, dialect
        self._stamp = self._fingerprint()
        self._reading = self._read()
        schema = self._reading.schema
        self.url = f"metadata:{self.path}" + (f"#{part}" if part else "")
        self.name, self.dialect = schema.name or self.path.stem, schema.dialect

    @property
    def notes(self) -> tuple[str, ...]:
        return self._reading.notes

    def introspect(self) -> Schema:
        stamp = self._fingerprint()
        if stamp != self._stamp:
            self._reading, self._stamp = self._read(), stamp
        return self._reading.schema

    def execute(self, code: str, limits: Limits | None = None) -> Outcome:
        """Always `Status.UNAVAILABLE`: there is no engine to judge the program."""
        return Outcome(Status.UNAVAILABLE, error=self._reason)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        raise DatabaseError(self._reason)

    def fingerprint(self) -> str:
        return self._fingerprint()

    def close(self) -> None:
        """Nothing is open."""

    @property
    def _reason(self) -> str:
        return (
            f"{self.name} is known by its metadata only, so no program can be run; connect to its "
            f"{self.dialect} database to run one"
        )

    def _read(self) -> Reading:
        try:
            return read(self.path, self._given, part=self._part)
        except BadInput as error:
            raise DatabaseError(str(error)) from error

    def _fingerprint(self) -> str:
        files = sorted(self.path.rglob("*")) if self.path.is_dir() else [self.path]
        return f"{fingerprint(files)}{self._part}{self._given}"


def _split(address: str) -> tuple[Path, str, str]:
    """Path, dialect and database of an address; a path that exists is never split."""
    rest = _SLASHES.sub("", address, count=1) if address.startswith("//") else address
    if not rest.strip() or "\0" in rest:
        raise DatabaseError("metadata: names no folder or file. Use metadata:DIR or metadata:FILE.")
    if (whole := expanded(rest)).exists():
        return whole, "", ""
    rest, _, part = rest.partition("#")
    rest, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := options.keys() - _OPTIONS:
        raise DatabaseError(f"metadata: has no option {min(unknown)!r}. Known: dialect.")
    return expanded(rest), options.get("dialect", ""), part

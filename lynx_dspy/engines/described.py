"""A database whose structure is described from outside, as some benchmarks do it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from lynx_dspy.engines.base import Database
from lynx_dspy.grounding.schema import with_descriptions
from lynx_dspy.values import Limits, Outcome, Row, Schema

Descriptions = Mapping[str, Mapping[str, str]]
"""`{table: {column: text}}`; the key "" of a table describes the table itself."""


class DescribedDatabase(Database):
    """`database` with `descriptions` in its schema; everything else is passed through."""

    def __init__(self, database: Database, descriptions: Descriptions) -> None:
        self.url, self.name, self.dialect = database.url, database.name, database.dialect
        self._database = database
        self._descriptions = descriptions
        text = json.dumps({t: dict(c) for t, c in descriptions.items()}, sort_keys=True)
        self._digest = hashlib.sha256(text.encode()).hexdigest()[:16]

    def introspect(self) -> Schema:
        return with_descriptions(self._database.introspect(), self._descriptions)

    def execute(self, code: str, limits: Limits | None = None) -> Outcome:
        return self._database.execute(code, limits)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self._database.query(sql, parameters)

    def fingerprint(self) -> str:
        return f"{self._database.fingerprint()}-{self._digest}"

    def close(self) -> None:
        self._database.close()

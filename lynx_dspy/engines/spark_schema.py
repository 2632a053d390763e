"""A Spark catalogue as a `Schema`, by one DESCRIBE a table: comments, partitions, nested fields.

Open-source Spark keeps no keys; those that Databricks describes are read. Source:
spark.apache.org/docs/latest/sql-ref-syntax-aux-describe-table.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lynx_dspy.engines.cloud_schema import partitioned, with_note
from lynx_dspy.errors import DatabaseError
from lynx_dspy.grounding.identifiers import quote
from lynx_dspy.grounding.sources.naming import distinct_names
from lynx_dspy.values import Column, ForeignKey, Schema, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Name = tuple[str, str]
"""Database ("" for a view of the session) and table."""

_ROWS = re.compile(r"(\d+) rows")
_PRIMARY = re.compile(r"PRIMARY KEY \(([^)]*)\)")
_FOREIGN = re.compile(r"FOREIGN KEY \(([^)]*)\) REFERENCES (\S+) \(([^)]*)\)")
_PARTITIONS, _CLUSTERS = "# Partition Information", "# Clustering Information"
_DETAILS = "# Detailed Table Information"


@dataclass(slots=True)
class _Described:
    """The sections of a description: their rows by title, columns under ""."""

    sections: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)

    @staticmethod
    def of(rows: Iterable[Sequence[Any]]) -> _Described:
        found, title = _Described(), ""
        for name, kind, comment in ((str(r[0]), r[1] or "", r[2] or "") for r in rows):
            if name.startswith("# ") and name != "# col_name":
                title = name
            elif name and name != "# col_name":
                found.sections.setdefault(title, []).append((name, kind, comment))
        return found

    def names(self, title: str) -> list[str]:
        return [name for name, _, _ in self.sections.get(title, ())]

    def detail(self, key: str) -> str:
        rows = self.sections.get(_DETAILS, ())
        return next((value for name, value, _ in rows if name == key), "")

    @property
    def constraints(self) -> str:
        return "\n".join(kind for rows in self.sections.values() for _, kind, _ in rows)


def table_names(session: SparkSession, only: str = "") -> Iterator[Name]:
    """The tables of one database, or of all, and the views of the session."""
    databases = [only] if only else [row[0] for row in session.sql("SHOW DATABASES").collect()]
    views: set[str] = set()
    for database in databases:
        for row in session.sql(f"SHOW TABLES IN {quote(database, 'spark')}").collect():
            space = "" if row["isTemporary"] else str(row["namespace"])
            if space:
                yield space, str(row["tableName"])
            elif row["tableName"] not in views:
                views.add(row["tableName"])
                yield "", str(row["tableName"])


def schema(session: SparkSession, name: str, only: str = "") -> Schema:
    """Raises `DatabaseError` if there is no table."""
    home = session.catalog.currentDatabase()
    described = {found: _describe(session, found) for found in table_names(session, only)}
    tables = [_table(found, told, home) for found, told in described.items() if told.names("")]
    if not tables:
        raise DatabaseError(f"{name} holds no tables that this session can see. Name another.")
    named = distinct_names(tables)
    by_name = {t.parts[-1].casefold(): t.name for t in named}
    keys = (
        key
        for (_, table), told in described.items()
        for key in _foreign(table, told.constraints, by_name)
    )
    return Schema("spark", named, tuple(keys), name)


def _describe(session: SparkSession, name: Name) -> _Described:
    full = ".".join(quote(part, "spark") for part in name if part)
    return _Described.of(session.sql(f"DESCRIBE TABLE EXTENDED {full}").collect())


def _table(name: Name, told: _Described, home: str) -> Table:
    space = "" if name[0] in ("", home) else name[0]
    primary = _PRIMARY.search(told.constraints)
    rows = _ROWS.search(told.detail("Statistics"))
    layout = partitioned(", ".join(told.names(_PARTITIONS)), told.names(_CLUSTERS))
    return Table(
        name=name[1],
        columns=tuple(
            Column(column, type_text(kind), " ".join(comment.split()))
            for column, kind, comment in told.sections[""]
        ),
        description=with_note(told.detail("Comment"), layout),
        namespace=space,
        primary_key=_listed(primary[1]) if primary else (),
        row_count=int(rows[1]) if rows else None,
        is_view=told.detail("Type") == "VIEW",
        path=(*filter(None, (space,)), name[1]),
    )


def type_text(kind: str) -> str:
    """A type as the rest of the package writes nested ones.

    >>> type_text("array<struct<key:string,n:int>>")
    'ARRAY<STRUCT<key STRING, n INT>>'
    """
    try:
        tree = sqlglot.parse_one(kind, into=exp.DataType, read="spark")
    except (SqlglotError, RecursionError):
        return kind.upper()
    return tree.sql("spark").replace(": ", " ")


def _foreign(table: str, constraints: str, named: dict[str, str]) -> Iterator[ForeignKey]:
    for columns, other, others in _FOREIGN.findall(constraints):
        target = named.get(other.replace("`", "").rsplit(".", 1)[-1].casefold())
        if target is not None:
            yield ForeignKey(named[table.casefold()], _listed(columns), target, _listed(others))


def _listed(columns: str) -> tuple[str, ...]:
    return tuple(column.strip().strip("`") for column in columns.split(","))

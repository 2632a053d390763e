"""Spider 2.0 metadata folders (spider2-sql.github.io): a JSON file a table, a DDL.csv a folder.

The folders of a database hold bare NaN, blanks before names, columns in shuffled order (Snowflake),
DDL.csv files with differing headers and missing rows, and cells of megabytes.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.sources.naming import distinct_names, natural
from lynx_dspy.grounding.sources.nested import leaves, short_type
from lynx_dspy.grounding.sources.reading import (
    SAMPLES,
    Reading,
    line,
    parse_json,
    read_text,
    samples,
)
from lynx_dspy.values import Column, Schema, Table

DIALECTS = ("bigquery", "snowflake", "sqlite")
_DDL = "DDL.csv"
_KEYS = 12
"""Values shown of a field that names others: `event_params.key`."""

_QUOTES = "\"'`[] \t\n"
_LINE_NAME = re.compile(r'^\s*(?:"((?:[^"]|"")+)"|`([^`]+)`|([^\W\d][\w$]*))', re.M)


def is_metadata(folder: Path) -> bool:
    """True if `folder` or one below it holds a table's JSON file or a DDL.csv of this kind."""
    if any(folder.rglob(_DDL)):
        return True
    return any('"column_names"' in read_text(path) for path in folder.rglob("*.json"))


def read_metadata(folder: Path, dialect: str = "") -> Reading:
    """The schema of one database's folder. Raises `BadInput` if no table can be read there.

    `dialect` is taken from the folders' names or from the files if it is not given. Namespaces are
    those of the full names, `catalog.schema`. Nested fields are columns with dotted names.
    """
    if not folder.is_dir():
        raise BadInput(f"No metadata folder {folder}.")
    found = _Folder(folder, dialect or _dialect(folder))
    for path in sorted(folder.rglob("*.json"), key=natural):
        found.take_json(path)
    for path in sorted(folder.rglob(_DDL), key=natural):
        found.take_ddl(path)
    if not found.tables:
        why = f": {found.notes[0]}" if found.notes else ""
        raise BadInput(
            f"{folder} holds no table: neither <table>.json files with column_names nor a "
            f"{_DDL} with statements{why}"
        )
    tables = distinct_names(found.tables.values())
    return Reading(Schema(found.dialect, tables, (), folder.name), tuple(found.notes))


@dataclass(slots=True)
class _Folder:
    """What was read so far; tables by the folded parts of their full names."""

    root: Path
    dialect: str
    tables: dict[tuple[str, ...], Table] = field(default_factory=dict)
    files: dict[tuple[Path, str], tuple[str, ...]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def take_json(self, path: Path) -> None:
        try:
            record = parse_json(read_text(path), str(path))
            table = _table(record, path, self.dialect, self._places(path))
        except BadInput as error:
            self.notes.append(str(error))
            return
        parts = tuple(part.casefold() for part in table.path)
        if parts in self.tables:
            self.notes.append(f"{path}: {'.'.join(table.path)} was read before; kept the first.")
            return
        self.tables[parts] = table
        self.files[path.parent, table.name.casefold()] = parts

    def take_ddl(self, path: Path) -> None:
        for name, statement in _statements(path):
            short = _bare(name).rsplit(".", 1)[-1].casefold()
            parts = self.files.get((path.parent, short))
            if parts is None:
                self._add_from_ddl(path, name, statement)
            else:
                self.tables[parts] = _ordered(self.tables[parts], statement)

    def _add_from_ddl(self, path: Path, name: str, statement: str) -> None:
        from lynx_dspy.grounding.sources.ddl import read_ddl

        try:
            read = read_ddl(statement, self.dialect, source="its DDL").schema
        except BadInput as error:
            self.notes.append(f"{path}: {name} has no JSON file, and {error}")
            return
        for table in read.tables:
            places = self._places(path)
            path_ = table.path or (*(p for p in table.namespace.split(".") if p), table.name)
            full = path_ if len(path_) > 1 else (*places, table.name)
            key = tuple(part.casefold() for part in full)
            if key not in self.tables:
                self.tables[key] = replace(
                    table, path=full, name=full[-1], namespace=".".join(full[:-1])
                )

    def _places(self, path: Path) -> tuple[str, ...]:
        """The namespace that the folders' names say, for files that do not say it themselves."""
        inner = path.parent.relative_to(self.root).parts
        if self.dialect == "sqlite" or not inner:
            return ()
        return tuple(inner[0].split(".")) if "." in inner[0] else (self.root.name, inner[0])


def _table(record: Any, path: Path, dialect: str, places: tuple[str, ...]) -> Table:
    if not isinstance(record, dict) or not isinstance(record.get("column_names"), list):
        raise BadInput(f"{path} does not describe a table: it has no list column_names.")
    parts = _parts(record, path, dialect, places)
    return Table(
        name=parts[-1],
        columns=_columns(record, dialect),
        description=line(record.get("table_description")),
        namespace=".".join(parts[:-1]),
        path=parts,
    )


def _parts(
    record: Mapping[str, Any], path: Path, dialect: str, places: tuple[str, ...]
) -> tuple[str, ...]:
    """The parts of the full name without blanks and quotes; two of them may be the namespace."""
    name = _bare(str(record.get("table_name") or path.stem))
    full = str(record.get("table_fullname") or "")
    if dialect == "sqlite":
        return (_bare(full) or name,)
    parts = tuple(filter(None, map(_bare, full.split(".", 2))))
    return parts if len(parts) > 1 else (*places, name.rsplit(".", 1)[-1])


def _bare(name: str) -> str:
    return name.strip(_QUOTES)


def _columns(record: Mapping[str, Any], dialect: str) -> tuple[Column, ...]:
    """The columns in the file's order, nested fields behind their parents."""
    nested = "nested_" if isinstance(record.get("nested_column_names"), list) else ""
    names = [str(name).strip() for name in _list(record, f"{nested}column_names")]
    types = map(line, _list(record, f"{nested}column_types"))
    texts = map(line, _list(record, "description"))
    rows = [row for row in _list(record, "sample_rows") if isinstance(row, dict)]
    inner = leaves(rows, {name.split(".")[0] for name in names if "." in name})
    return tuple(
        Column(
            name=name,
            type=short_type(kind),
            description=text,
            samples=samples(
                inner[name] if name in inner else _cells(rows, name, kind),
                dialect,
                _KEYS if name.endswith(".key") else SAMPLES,
            ),
        )
        for name, kind, text in zip_longest(names, islice(types, len(names)), texts, fillvalue="")
        if name
    )


def _cells(rows: list[dict[str, Any]], name: str, kind: str) -> Iterator[Any]:
    """A column's cells; a printed record says less than its fields do."""
    return (row.get(name) for row in rows if "STRUCT<" not in kind)


def _list(record: Mapping[str, Any], key: str) -> list[Any]:
    value = record.get(key)
    return value if isinstance(value, list) else []


def _statements(path: Path) -> Iterator[tuple[str, str]]:
    """Names and statements of a DDL.csv, whatever its headers' case and order."""
    csv.field_size_limit(2**31 - 1)
    for row in csv.DictReader(io.StringIO(read_text(path), newline="")):
        cells = {(k or "").strip().casefold(): v for k, v in row.items() if isinstance(v, str)}
        if cells.get("ddl", "").strip():
            yield cells.get("table_name", "").strip(), cells["ddl"]


def _ordered(table: Table, statement: str) -> Table:
    """The table with its columns in the order of its statement, where that names all of them."""
    places: dict[str, int] = {}
    for match in _LINE_NAME.finditer(statement):
        name = next(group for group in match.groups() if group is not None)
        places.setdefault(name.replace('""', '"'), match.start())
    tops = [column.name.split(".")[0] for column in table.columns]
    if not set(tops) <= places.keys():
        return table
    order = sorted(range(len(tops)), key=lambda i: (places[tops[i]], i))
    return replace(table, columns=tuple(table.columns[i] for i in order))


def _dialect(folder: Path) -> str:
    """By the nearest folder named after a dialect, else by the first header or full name."""
    for part in reversed(folder.absolute().parts):
        if part.casefold() in DIALECTS:
            return part.casefold()
    for path in folder.rglob(_DDL):
        header = read_text(path).split("\n", 1)[0]
        if "description" in header:
            return "snowflake"
        if ",ddl" in header:
            return "bigquery"
    text = next((read_text(path) for path in sorted(folder.rglob("*.json"))), "")
    if re.search(r'"(INT64|STRING|FLOAT64)"', text):
        return "bigquery"
    full = re.search(r'"table_fullname":\s*"([^"]*)"', text)
    return "snowflake" if full and full[1].count(".") == 2 else "sqlite"

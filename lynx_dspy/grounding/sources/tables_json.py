"""`tables.json` of Spider and BIRD: names and keys, with the description CSVs of BIRD."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.grounding.sources.reading import Reading, line, parse_json, read_text
from lynx_dspy.values import Column, ForeignKey, Schema, Table

_FIELDS = ("db_id", "table_names_original", "column_names_original", "column_types")
_DESCRIPTIONS = "database_description"
_COLUMN = "original_column_name"
_HEAD = 100

Texts = dict[str, dict[str, str]]
"""`{table: {column: text}}`; the key "" of a table describes the table itself."""


def database_names(path: Path) -> tuple[str, ...]:
    """The databases that a tables file holds. Raises `BadInput` if it is no such file."""
    return tuple(str(entry["db_id"]) for entry in _entries(path))


def read_tables_json(path: Path, db: str = "") -> Reading:
    """The schema of database `db`, which may be left out where the file holds only one.

    Descriptions are the readable names where they say more than the names, joined with those of
    `database_description/*.csv` near the file. Raises `BadInput` or `UnknownName`.
    """
    entries = {str(entry["db_id"]): entry for entry in _entries(path)}
    if not db and len(entries) > 1:
        raise BadInput(
            f"{path} holds {len(entries)} databases; name one as {path.name}#{next(iter(entries))}."
        )
    db = db or next(iter(entries))
    if db not in entries:
        raise UnknownName(f"database in {path.name}", db, entries)
    entry = entries[db]
    texts = readable_names(entry)
    for folder in description_folders(path.parent, db):
        for table, columns in read_descriptions(folder).items():
            own = texts.setdefault(_spelled(table, entry["table_names_original"]), {})
            own.update(columns)
    notes: list[str] = []
    tables = _tables(entry, texts, notes)
    if not tables:
        raise BadInput(f"{path}: database {db} has no tables.")
    return Reading(Schema("sqlite", tables, tuple(_keys(entry, notes)), db), tuple(notes))


def readable_names(entry: Mapping[str, Any]) -> Texts:
    """Names in words that an entry of a tables file gives, where they say more than the names."""
    tables: list[str] = entry["table_names_original"]
    described: Texts = {name: {} for name in tables}
    for name, words in zip(tables, entry.get("table_names") or tables, strict=False):
        described[name].update({"": words} if _says_more(words, name) else {})
    original = entry["column_names_original"]
    pairs = zip(original, entry.get("column_names") or original, strict=False)
    for (table, name), (_, words) in pairs:
        if 0 <= table < len(tables) and _says_more(words, name):
            described[tables[table]][name] = words
    return {name: texts for name, texts in described.items() if texts}


def description_folders(root: Path, db: str) -> list[Path]:
    """Where BIRD keeps the descriptions of `db`: `<db>/database_description`, or one folder up."""
    places = [root / db, *sorted(root.glob(f"*/{db}")), *([root] if root.name == db else [])]
    return [place / _DESCRIPTIONS for place in places if (place / _DESCRIPTIONS).is_dir()]


def is_description_folder(folder: Path) -> bool:
    """True if a CSV file in `folder` describes columns as BIRD does."""
    heads = (read_text(path)[:_HEAD] for path in sorted(folder.glob("*.csv")))
    return any(head.removeprefix("\ufeff").startswith(_COLUMN) for head in heads)


def read_description_folder(folder: Path) -> Reading:
    """The schema that a folder of description CSVs tells: no keys, rough types."""
    tables = []
    for path in sorted(folder.glob("*.csv")):
        types = {cells[_COLUMN]: cells.get("data_format", "") for cells in _rows(path)}
        texts = _described_columns(path)
        columns = (Column(n, kind.upper(), texts.get(n, "")) for n, kind in types.items() if n)
        tables.append(Table(path.stem.strip(), tuple(columns)))
    held = tuple(table for table in tables if table.columns)
    return Reading(Schema("sqlite", held, (), folder.absolute().parent.name))


def read_descriptions(folder: Path) -> Texts:
    """`{table: {column: text}}` of a folder of description CSVs, one a table."""
    return {path.stem.strip(): _described_columns(path) for path in sorted(folder.glob("*.csv"))}


def _rows(path: Path) -> Iterator[dict[str, str]]:
    """The rows that name a column; names are stripped, cells may hold line breaks."""
    for row in csv.DictReader(io.StringIO(read_text(path), newline="")):
        cells = {(k or "").strip(): line(v) for k, v in row.items()}
        if cells.get(_COLUMN):
            yield cells


def _described_columns(path: Path) -> dict[str, str]:
    """Readable name, column's and values' description, joined."""
    described = {}
    for cells in _rows(path):
        column = cells[_COLUMN]
        keys = ("column_name", "column_description", "value_description")
        parts = [cells.get(k, "") for k in keys]
        said = [part for part in parts if part and part != column]
        if said:
            described[column] = "; ".join(dict.fromkeys(said))
    return described


def _entries(path: Path) -> list[dict[str, Any]]:
    entries = parse_json(read_text(path), str(path))
    entries = entries if isinstance(entries, list) else [entries]
    for number, entry in enumerate(entries, 1):
        lacking = [f for f in _FIELDS if not isinstance(entry, dict) or f not in entry]
        if lacking:
            raise BadInput(f"{path}: database {number} has no {', '.join(lacking)}.")
        if wrong := _malformed(entry):
            raise BadInput(f"{path}: database {number}, {wrong}.")
    if not entries:
        raise BadInput(f"{path} holds no database.")
    return entries


def _malformed(entry: Mapping[str, Any]) -> str:
    """What of an entry has not the form that Spider's documentation gives it."""
    for key in ("table_names_original", "table_names"):
        names = entry.get(key, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return f"{key} is no list of names"
    for key in ("column_names_original", "column_names"):
        pairs = entry.get(key, [])
        if not isinstance(pairs, list) or not all(map(_is_column, pairs)):
            return f"{key} is no list of [table's position, name]"
    for key in ("column_types", "primary_keys", "foreign_keys"):
        if not isinstance(entry.get(key, []), list):
            return f"{key} is no list"
    return ""


def _is_column(pair: Any) -> bool:
    return (
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], int)
        and isinstance(pair[1], str)
    )


def _spelled(name: str, known: Sequence[str]) -> str:
    return next((k for k in known if k.casefold() == name.casefold()), name)


def _says_more(words: str, name: str) -> bool:
    return "".join(words.split()).casefold() != name.replace("_", "").casefold()


def _tables(entry: Mapping[str, Any], texts: Texts, notes: list[str]) -> tuple[Table, ...]:
    names: list[str] = entry["table_names_original"]
    types = entry["column_types"]
    columns: list[list[Column]] = [[] for _ in names]
    for position, (table, name) in enumerate(entry["column_names_original"]):
        if not 0 <= table < len(names):
            continue
        kind = types[position] if position < len(types) else ""
        said = {c.casefold(): text for c, text in texts.get(names[table], {}).items()}
        columns[table].append(Column(name, str(kind).upper(), said.get(name.casefold(), "")))
    keys = _primary_keys(entry, notes)
    return tuple(
        Table(name, tuple(columns[i]), texts.get(name, {}).get("", ""), primary_key=keys.get(i, ()))
        for i, name in enumerate(names)
        if columns[i]
    )


def _primary_keys(entry: Mapping[str, Any], notes: list[str]) -> dict[int, tuple[str, ...]]:
    """By table; a key of several columns is a list in BIRD, and several entries in Spider."""
    keys: dict[int, tuple[str, ...]] = {}
    for group in entry.get("primary_keys") or []:
        for position in group if isinstance(group, list) else [group]:
            place = _column(entry, position)
            if place is None:
                notes.append(f"{entry['db_id']}: primary key {position!r} is no column")
                continue
            keys[place[0]] = (*keys.get(place[0], ()), place[1])
    return keys


def _keys(entry: Mapping[str, Any], notes: list[str]) -> list[ForeignKey]:
    names = entry["table_names_original"]
    found = []
    for pair in entry.get("foreign_keys") or []:
        ends = pair if isinstance(pair, list) and len(pair) == 2 else (None, None)
        left, right = (_column(entry, position) for position in ends)
        if left is None or right is None:
            notes.append(f"{entry['db_id']}: foreign key {pair!r} is between no columns")
            continue
        found.append(ForeignKey(names[left[0]], (left[1],), names[right[0]], (right[1],)))
    return found


def _column(entry: Mapping[str, Any], position: Any) -> tuple[int, str] | None:
    columns = entry["column_names_original"]
    if not isinstance(position, int) or not 0 < position < len(columns):
        return None
    table, name = columns[position]
    return (table, name) if 0 <= table < len(entry["table_names_original"]) else None

"""Gold programs of the benchmarks at hand, each with the schema that it is written for."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import lynx_dspy as lynx
from lynx_dspy.datasets import sql_eval
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.grounding.sources import read_schema
from lynx_dspy.grounding.sources.tables_json import read_tables_json
from lynx_dspy.values import Schema, Table

_DIALECTS = {"bq": "bigquery", "ga": "bigquery", "sf": "snowflake", "local": "sqlite"}


@dataclass(frozen=True)
class Gold:
    """One gold program; `group` names the set that it is counted in."""

    group: str
    id: str
    code: str
    schema: Schema


def golds(data: Path) -> Iterator[Gold]:
    """All golds under `data` (see its README.md)."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _spider(data / "spider")
        yield from _bird(data / "bird_mini_dev")
        yield from _sql_eval(data / "sql_eval", Path(folder))
        yield from _spider2(data / "spider2-lite")


def _live(path: Path) -> Schema:
    with lynx.connect(path) as database:
        return abstract(database)


def _spider(data: Path) -> Iterator[Gold]:
    live = cache(_live)
    for number, line in enumerate((data / "dev_gold.sql").read_text().splitlines()):
        code, _, name = line.rpartition("\t")
        path = next((data / "database" / name.strip()).glob("*.sqlite"))
        yield Gold("Spider, live", str(number), code, live(path))


def _bird(data: Path) -> Iterator[Gold]:
    questions = json.loads((data / "mini_dev_sqlite.json").read_text())
    described = cache(lambda db: read_tables_json(data / "mini_dev_sqlite_tables.json", db).schema)
    superhero = next(data.rglob("superhero.sqlite"))
    live = _live(superhero)
    for item in questions:
        name = str(item["question_id"])
        yield Gold("BIRD, tables.json", name, item["SQL"], described(item["db_id"]))
        if item["db_id"] == "superhero":
            yield Gold("BIRD superhero, live", name, item["SQL"], live)


def _sql_eval(data: Path, folder: Path) -> Iterator[Gold]:
    items = [
        json.loads(line)
        for split in ("train", "val")
        for line in (data / f"{split}.jsonl").read_text().splitlines()
    ]
    paths = sql_eval.prepare(data, folder, {item["db"] for item in items})
    live = cache(_live)
    for item in items:
        for code in item["gold"]:
            yield Gold("sql_eval, live", item["id"], code, live(paths[item["db"]]))


def _spider2(data: Path) -> Iterator[Gold]:
    names = {}
    for line in (data / "spider2-lite.jsonl").read_text().splitlines():
        item = json.loads(line)
        names[item["instance_id"]] = item["db"]
    metadata = cache(lambda path: read_schema(path))
    for path in sorted((data / "evaluation_suite/gold/sql").glob("*.sql")):
        dialect = next(d for prefix, d in _DIALECTS.items() if path.stem.startswith(prefix))
        code = path.read_text(encoding="utf-8")
        folder = data / "resource/databases" / dialect / names.get(path.stem, "-")
        if folder.is_dir():
            yield Gold(f"Spider 2.0 {dialect}, metadata", path.stem, code, metadata(folder))
        elif names.get(path.stem) == "noaa_data":
            twin = metadata(data / "resource/databases/snowflake/NOAA_DATA")
            yield Gold("Spider 2.0 bigquery, metadata", path.stem, code, _in_bigquery(twin))
        else:
            yield Gold(f"Spider 2.0 {dialect}, no metadata", path.stem, code, Schema(dialect, ()))


@cache
def _in_bigquery(schema: Schema) -> Schema:
    """The NOAA tables as BigQuery publishes them: the same columns under other full names."""
    return Schema("bigquery", tuple(map(_published, schema.tables)), (), schema.name)


def _published(table: Table) -> Table:
    parts = ("bigquery-public-data", *(part.lower() for part in table.parts[-2:]))
    columns = tuple(replace(c, type=_TYPES.get(c.type.split("(")[0], "")) for c in table.columns)
    space = ".".join(parts[:-1])
    return replace(table, name=table.name.lower(), columns=columns, namespace=space, path=parts)


_TYPES = {"VARCHAR": "STRING", "TEXT": "STRING", "FLOAT": "FLOAT64"}

"""tables.json of Spider and BIRD, with description CSVs in any encoding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.grounding.sources import read, read_schema
from lynx_dspy.grounding.sources.tables_json import database_names
from lynx_dspy.values import ForeignKey

DATA = Path(__file__).parents[3] / "../shared/data"
BIRD = DATA / "bird_mini_dev/mini_dev_sqlite_tables.json"
SPIDER = DATA / "spider/tables.json"
needs_data = pytest.mark.skipif(not BIRD.is_file(), reason="the benchmarks are not here")


def entry(**fields: Any) -> dict[str, Any]:
    return {
        "db_id": "shop",
        "table_names_original": ["Orders", "Items"],
        "table_names": ["orders", "order items"],
        "column_names_original": [[-1, "*"], [0, "Id"], [1, "OrderId"], [1, "Pos"]],
        "column_names": [[-1, "*"], [0, "id"], [1, "order number"], [1, "pos"]],
        "column_types": ["text", "number", "number", "number"],
        "primary_keys": [1, [2, 3]],
        "foreign_keys": [[2, 1]],
    } | fields


def write(path: Path, *entries: dict[str, Any]) -> Path:
    path.write_text(json.dumps(entries))
    return path


def test_names_keys_and_readable_names_are_read(tmp_path: Path) -> None:
    schema = read_schema(write(tmp_path / "tables.json", entry()))
    orders, items = schema.tables
    assert (orders.primary_key, items.primary_key) == (("Id",), ("OrderId", "Pos"))
    assert (items.description, items.columns[0].description) == ("order items", "order number")
    assert schema.foreign_keys == (ForeignKey("Items", ("OrderId",), "Orders", ("Id",)),)


def test_descriptions_beside_the_file_are_read_whatever_their_encoding(tmp_path: Path) -> None:
    folder = tmp_path / "dev_databases" / "shop" / "database_description"
    folder.mkdir(parents=True)
    head = "original_column_name,column_name,column_description,data_format,value_description\n"
    (folder / "items.csv").write_bytes((head + 'Pos ,,"prix\nunité €",integer,\n').encode("cp1252"))
    (folder / "Orders.csv").write_bytes(("\ufeff" + head + "Id,,the number,integer,\n").encode())
    orders, items = read_schema(write(tmp_path / "dev_tables.json", entry())).tables
    assert items.columns[1].description == "prix unité €"
    assert orders.columns[0].description == "the number"
    alone = read_schema(folder)
    assert [(t.name, t.columns[0].type) for t in alone.tables] == [
        ("Orders", "INTEGER"),
        ("items", "INTEGER"),
    ]


def test_positions_that_lead_nowhere_are_notes(tmp_path: Path) -> None:
    broken = entry(primary_keys=[99, None], foreign_keys=[[2, 77], [3]])
    reading = read(write(tmp_path / "tables.json", broken))
    assert reading.schema.foreign_keys == ()
    assert len(reading.notes) == 4


def test_one_of_several_databases_must_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "tables.json", entry(), entry(db_id="zoo"))
    with pytest.raises(BadInput, match=r"holds 2 databases; name one as tables\.json#shop"):
        read(path)
    assert read_schema(f"{path}#zoo").name == "zoo"
    assert read_schema(tmp_path, part="zoo").name == "zoo"
    with pytest.raises(UnknownName, match="Did you mean 'zoo'"):
        read(f"{path}#zo")


@pytest.mark.parametrize("text", ["[]", "{}", "[3]", '[{"db_id": 1}]', "[{", "null", "[" * 100_000])
def test_other_json_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tables.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"tables\.json") as error:
        read(path)
    assert "\n" not in str(error.value)


@needs_data
@pytest.mark.parametrize("path", [BIRD, SPIDER])
def test_every_database_of_the_benchmarks_is_read(path: Path) -> None:
    for name in database_names(path):
        reading = read(path, part=name)
        assert reading.notes == (), name
        assert all(t.columns for t in reading.schema.tables)
        assert reading.schema.foreign_keys or name in {"museum_visit", "orchestra"}


@needs_data
def test_bird_descriptions_are_found_beside_its_tables() -> None:
    loan = read_schema(f"{BIRD}#financial").table("loan")
    assert loan is not None
    assert "loan data" in loan.columns[0].description

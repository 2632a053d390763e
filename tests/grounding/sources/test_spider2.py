"""Spider 2.0 metadata folders with all their quirks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.sources import read, read_schema

DATA = Path(__file__).parents[3] / "../shared/data/spider2-lite/resource/databases"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="Spider 2.0-Lite is not here")


def write(folder: Path, name: str, **fields: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    record = {"table_name": name, "column_names": ["b", "a"], "column_types": ["TEXT", "NUMBER"]}
    (folder / f"{name.strip()}.json").write_text(json.dumps(record | fields), encoding="utf-8")


def test_columns_get_the_order_of_the_ddl_and_values_their_literals(tmp_path: Path) -> None:
    folder = tmp_path / "snowflake" / "DB" / "S"
    rows = [{"a": 1, "b": "x" * 3_000_000}, {"a": float("nan"), "b": "it's"}]
    write(folder, "T", table_fullname="DB.S.T", description=[None, "the a"], sample_rows=rows)
    ddl = 'create or replace TABLE T (\n\t""a"" NUMBER(38,0),\n b TEXT);'
    (folder / "DDL.csv").write_text(f'table_name,description,DDL\nT,,"{ddl}"\n')
    schema = read_schema(tmp_path / "snowflake" / "DB")
    (table,) = schema.tables
    assert (schema.dialect, schema.name, table.namespace) == ("snowflake", "DB", "DB.S")
    assert [(c.name, c.type, c.description) for c in table.columns] == [
        ("a", "NUMBER", "the a"),
        ("b", "TEXT", ""),
    ]
    assert table.columns[0].samples == ("1",)
    assert len(table.columns[1].samples[0]) < 50, "a cell of megabytes is clipped"
    assert table.columns[1].samples[1] == r"'it\'s'"


def test_blanks_bare_nan_and_other_encodings_are_taken(tmp_path: Path) -> None:
    folder = tmp_path / "sqlite" / "shop"
    folder.mkdir(parents=True)
    (folder / "café.json").write_bytes(
        '{"table_name": " café", "table_fullname": " café", "column_names": ["a "],'
        ' "column_types": [NaN], "description": [NaN], "sample_rows": [{"a": NaN}]}'.encode(
            "cp1252"
        )
    )
    (table,) = read_schema(folder).tables
    assert (table.name, table.namespace, table.columns[0].name) == ("café", "", "a")
    assert (table.columns[0].type, table.columns[0].samples) == ("", ())


def test_tables_without_json_come_from_the_ddl(tmp_path: Path) -> None:
    folder = tmp_path / "bigquery" / "db" / "proj-x.set"
    write(folder, "t1", table_fullname="proj-x. set.t1")
    (folder / "DDL.csv").write_text(
        'table_name,ddl\nt2,"CREATE TABLE `proj-x.set.t2`\n(\n  n INT64\n);"\nt3,broken (\n'
    )
    read_ = read(folder.parent)
    assert [t.parts for t in read_.schema.tables] == [
        ("proj-x", "set", "t1"),
        ("proj-x", "set", "t2"),
    ]
    assert any("t3" in note for note in read_.notes)


def test_homonyms_of_two_schemas_have_names_of_their_own(tmp_path: Path) -> None:
    for space in ("S1", "S2"):
        write(tmp_path / "snowflake" / "DB" / space, "T", table_fullname=f"DB.{space}.T")
    names = {t.name: t.parts for t in read_schema(tmp_path / "snowflake" / "DB").tables}
    assert names == {"S1.T": ("DB", "S1", "T"), "S2.T": ("DB", "S2", "T")}


def test_one_broken_file_among_others_is_a_note(tmp_path: Path) -> None:
    folder = tmp_path / "sqlite" / "db"
    write(folder, "good")
    (folder / "bad.json").write_text('{"table_name": "bad", "column_na')
    (folder / "other.json").write_text("[]")
    read_ = read(folder)
    assert [t.name for t in read_.schema.tables] == ["good"]
    assert len(read_.notes) == 2


def test_an_empty_folder_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no description"):
        read(tmp_path)
    (tmp_path / "DDL.csv").write_text("table_name,DDL\n")
    with pytest.raises(BadInput, match="holds no table"):
        read(tmp_path)


@needs_data
def test_ga4_has_nested_fields_with_values() -> None:
    read_ = read(DATA / "bigquery/ga4")
    assert (len(read_.schema.tables), read_.notes) == (92, ())
    table = read_.schema.table("events_20210109")
    assert table is not None
    assert table.parts == (
        "bigquery-public-data",
        "ga4_obfuscated_sample_ecommerce",
        "events_20210109",
    )
    value = table.column("event_params.value.int_value")
    assert value is not None
    assert value.type == "INT64"
    key = table.column("event_params.key")
    assert key is not None
    assert "'page_title'" in key.samples


@needs_data
@pytest.mark.parametrize(
    ("db", "tables"),
    [
        ("snowflake/NOAA_DATA", 218),
        ("snowflake/_1000_GENOMES", 3),
        ("sqlite/music", 11),
        ("sqlite/f1", 29),
        ("sqlite/chinook", 13),
    ],
)
def test_every_database_at_hand_is_read_whole(db: str, tables: int) -> None:
    read_ = read(DATA / db)
    assert read_.schema.dialect == db.split("/")[0]
    assert len(read_.schema.tables) == tables
    assert len({t.name.casefold() for t in read_.schema.tables}) == tables
    assert all(t.columns for t in read_.schema.tables)
    assert read_.notes == ()

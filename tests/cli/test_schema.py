"""`lynx schema`: live, described and metadata-only databases."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from lynx_dspy.cli import main

DATABASES = Path(__file__).parents[2] / "../shared/data/spider2-lite/resource/databases"
needs_data = pytest.mark.skipif(not DATABASES.is_dir(), reason="Spider 2.0-Lite is not here")


@needs_data
@pytest.mark.parametrize(
    ("db", "name"),
    [
        ("bigquery/ga4", "`bigquery-public-data`.ga4_obfuscated_sample_ecommerce.`events_*`"),
        ("snowflake/NOAA_DATA", "NOAA_DATA.NOAA_"),
        ("snowflake/_1000_GENOMES", '"Population"'),
        ("sqlite/music", "CREATE TABLE Album ("),
        ("sqlite/chinook", "CREATE TABLE albums ("),
        ("sqlite/f1", "CREATE TABLE circuits"),
    ],
)
def test_every_metadata_folder_is_shown_in_its_dialect(
    capsys: pytest.CaptureFixture[str], db: str, name: str
) -> None:
    assert main(["schema", "--db", f"metadata:{DATABASES / db}", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["dialect"] == db.split("/")[0]
    assert name in shown["text"]
    assert shown["notes"] == []


def test_a_description_is_merged_and_its_conflicts_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER, state TEXT)")
    connection.close()
    sheet = tmp_path / "shop.yml"
    sheet.write_text(
        "tables:\n  orders:\n    columns:\n"
        "      state: {type: date, description: where it is}\n      colour: text\n"
    )
    assert main(["schema", "--db", str(path), "--describe", str(sheet)]) == 0
    shown = capsys.readouterr()
    assert "where it is" in shown.out
    assert "note: orders.state: type is TEXT, not date\n" in shown.err
    assert "note: orders.colour: described, but not in the database; left out\n" in shown.err


def test_a_description_that_is_not_there_ends_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.close()
    assert main(["schema", "--db", str(path), "--describe", str(tmp_path / "no.yml")]) == 2
    assert capsys.readouterr().err.count("\n") == 1

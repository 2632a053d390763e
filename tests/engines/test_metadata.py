"""A described database: a schema and checks, and a reason in place of results."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

import lynx_dspy as lynx
from lynx_dspy.engines.base import Database
from lynx_dspy.engines.described import described, notes_of
from lynx_dspy.engines.static import check
from lynx_dspy.errors import BadInput, DatabaseError
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.values import Status

DDL = "CREATE TABLE orders (id INT PRIMARY KEY, total INT);\nCREATE TABLE items (order_id INT);"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "shop.sql"
    path.write_text(DDL)
    return path


def test_the_schema_serves_and_no_program_runs(script: Path) -> None:
    with lynx.connect(f"metadata:{script}?dialect=duckdb") as db:
        assert (db.name, db.dialect) == ("shop", "duckdb")
        assert [t.name for t in abstract(db).tables] == ["orders", "items"]
        outcome = db.execute("SELECT total FROM orders")
        assert outcome.status is Status.UNAVAILABLE
        assert outcome.error.startswith("shop is known by its metadata only")
        assert check("SELECT totl FROM orders", db.introspect())[0].candidates == ("total",)
        assert copy.deepcopy(db) is db
        with pytest.raises(DatabaseError, match="metadata only"):
            db.query("SELECT 1")


def test_a_changed_file_is_read_again(script: Path) -> None:
    with lynx.connect(f"metadata:{script}") as db:
        before = db.fingerprint()
        script.write_text(f"{DDL}\nCREATE TABLE more (a INT);")
        assert db.fingerprint() != before
        assert len(db.introspect().tables) == 3


def test_addresses_may_be_relative_absolute_or_hold_strange_signs(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(script.parent)
    odd = script.parent / "a#b?c.sql"
    odd.write_text(DDL)
    for url in ("metadata:shop.sql", "metadata:///shop.sql", f"METADATA:///{script}"):
        assert lynx.connect(url).url == f"metadata:{script}"
    assert lynx.connect(f"metadata:{odd}").name == "a#b?c"


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("", "names no folder or file"),
        ("nowhere.sql", "no such file"),
        ("shop.sql?dialect=nosuch", "Unknown dialect 'nosuch'"),
        ("shop.sql?colour=red", "no option 'colour'"),
        (".", "gives no table"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, words: str
) -> None:
    (tmp_path / "shop.sql").write_text("-- nothing\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=words) as error:
        lynx.connect(f"metadata:{address}")
    assert "\n" not in str(error.value)


def test_files_describe_a_live_database(shop: Database, tmp_path: Path) -> None:
    sheet = tmp_path / f"{shop.name}.yml"
    sheet.write_text(
        "tables:\n  customers:\n    description: who buys\n"
        "    columns: {city: {description: home}, shoe: text}\n"
    )
    for source in (sheet, tmp_path):
        rich = described(shop, [source])
        table = abstract(rich).table("customers")
        assert table is not None
        assert table.description == "who buys"
        city = table.column("city")
        assert city is not None
        assert city.description == "home"
        assert city.samples, "values still come from the data"
        assert any("shoe" in note for note in notes_of(rich))
        assert rich.fingerprint() != shop.fingerprint()
        assert rich.execute("SELECT 1").ran
    assert described(shop, []) is shop

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.engines import connect
from lynx_dspy.engines.base import Database
from lynx_dspy.engines.metadata import MetadataDatabase
from lynx_dspy.grounding import value_files, values
from lynx_dspy.grounding.identifiers import fold
from lynx_dspy.grounding.recent import Recent
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.grounding.value_places import Place, ValueIndex
from lynx_dspy.grounding.values import VALUES_A_COLUMN, value_index
from lynx_dspy.progress import listen
from lynx_dspy.values import Column, Schema, Table

Make = Callable[[str], Database]

SCRIPT = """
CREATE TABLE city (id INTEGER, name TEXT, note TEXT);
INSERT INTO city VALUES (1, 'São Paulo', NULL), (2, 'New York', 'x'), (3, 'New Delhi', '');
CREATE TABLE person (name TEXT, code);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
INSERT INTO person SELECT 'Member ' || i, 'C' || (i % 4) FROM n;
"""


def test_values_are_found_without_case_and_accents(make: Callable[[str], Database]) -> None:
    database = make(SCRIPT)
    index = value_index(database, abstract(database))
    assert index.find("SAO  PAULO") == [Place("city", "name", "São Paulo")]
    assert index.find("c3") == [Place("person", "code", "C3")]
    assert index.find("berlin") == []


def test_a_word_of_a_longer_value_is_found_unless_too_common(
    make: Callable[[str], Database],
) -> None:
    database = make(SCRIPT)
    index = value_index(database, abstract(database))
    assert {p.value for p in index.holding("new")} == {"New York", "New Delhi"}
    assert index.holding("member") == []


def test_an_index_is_bounded_and_kept(make: Callable[[str], Database]) -> None:
    database = make(SCRIPT)
    index = value_index(database, abstract(database))
    count = "SELECT COUNT(*) FROM places WHERE owner = 'person' AND field = 'name'"
    assert index.connection.execute(count).fetchone() == (VALUES_A_COLUMN,)
    assert value_index(database, abstract(database)) is index


def test_what_is_only_described_has_its_samples(tmp_path: Path) -> None:
    columns = (Column("state", "STRING", samples=("'it''s open'", "'cut off…'")),)
    schema = Schema("bigquery", (Table("orders", columns),))
    path = tmp_path / "orders.sql"
    path.write_text("CREATE TABLE orders (state STRING);")
    with MetadataDatabase(f"{path}?dialect=bigquery") as database:
        index = value_index(database, schema)
    assert index.find("It's open") == [Place("orders", "state", "it's open")]
    assert index.find("cut off") == []


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every index is kept, however fast it was built; none is held in the process."""
    monkeypatch.setattr("lynx_dspy.grounding.values.KEPT_FROM_SECONDS", -1.0)
    monkeypatch.setattr("lynx_dspy.grounding.values._indexes", Recent[ValueIndex](size=1))


@pytest.mark.usefixtures("kept")
def test_a_kept_index_is_found_by_the_next_process(make: Make) -> None:
    database = make(SCRIPT)
    schema = abstract(database)
    first = value_index(database, schema)
    values._indexes.clear()
    again = value_index(database, schema)
    assert again is not first
    assert again.find("sao paulo") == first.find("sao paulo") != []
    assert {p.value for p in again.holding("new")} == {"New York", "New Delhi"}
    (path,) = value_files.folder().iterdir()
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("cut", [0, 10, 5_000])
def test_a_damaged_file_is_made_anew_with_a_word(make: Make, cut: int) -> None:
    database = make(SCRIPT)
    schema = abstract(database)
    value_index(database, schema)
    (path,) = value_files.folder().iterdir()
    path.write_bytes(path.read_bytes()[:cut] + b"x" * 3_000 if cut else b"no database at all")
    values._indexes.clear()
    said: list[str] = []
    with listen(lambda stage, text: said.append(text)):
        assert value_index(database, schema).find("new york")
    assert any("damaged" in line for line in said)
    values._indexes.clear()
    said.clear()
    with listen(lambda stage, text: said.append(text)):
        assert value_index(database, schema).find("new york")
    assert not said


@pytest.mark.usefixtures("kept")
def test_an_index_is_made_anew_when_the_data_change(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with sqlite3.connect(path) as writer:
        writer.executescript("CREATE TABLE t (name TEXT); INSERT INTO t VALUES ('Oslo');")
    with connect(path) as database:
        assert value_index(database, abstract(database)).find("oslo")
        time.sleep(0.01)
        with sqlite3.connect(path) as writer:
            writer.execute("UPDATE t SET name = 'Bergen'")
        index = value_index(database, abstract(database))
        assert index.find("bergen") and not index.find("oslo")
    assert len(list(value_files.folder().iterdir())) == 1


def test_a_cache_that_cannot_be_written_is_done_without(
    make: Make, kept: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LYNX_HOME", str(tmp_path / "file"))
    database = make(SCRIPT)
    assert value_index(database, abstract(database)).find("new york")


@given(st.lists(st.text(max_size=20), max_size=20))
def test_every_value_is_found_by_its_own_text(texts: list[str]) -> None:
    index = ValueIndex()
    index.add(*(Place("t", "c", text) for text in texts))
    assert all(Place("t", "c", t) in index.find(t) for t in texts if fold(t))

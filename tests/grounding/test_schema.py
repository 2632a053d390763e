from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lynx_dspy.engines import connect
from lynx_dspy.engines.base import Database
from lynx_dspy.grounding.schema import CODES, abstract, with_descriptions
from lynx_dspy.values import Column

Make = Callable[[str], Database]

SALES = """
CREATE TABLE sales (
    sale_id INTEGER PRIMARY KEY, status TEXT, note TEXT, picture BLOB, price REAL, sold_on TEXT
);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)
INSERT INTO sales SELECT i, CASE i % 3 WHEN 0 THEN 'paid' WHEN 1 THEN 'open' ELSE 'lost' END,
    'a longer note that nobody wants to read twice, number ' || i, x'00ff', i * 1.25,
    date('2024-01-01', '+' || i || ' days') FROM n;
"""


def column(make: Make, script: str, name: str) -> Column:
    found = abstract(make(script)).tables[0].column(name)
    assert found is not None
    return found


def test_a_code_is_shown_with_all_its_values(make: Make) -> None:
    assert set(column(make, SALES, "status").samples) == {"'paid'", "'open'", "'lost'"}


def test_a_rare_code_beyond_the_sample_is_found(make: Make) -> None:
    script = SALES + "UPDATE sales SET status = 'void' WHERE sale_id = 800;"
    status = column(make, script, "status")
    assert "'void'" in status.samples
    assert status.distinct == 4


def test_ids_and_free_texts_get_hardly_a_value_and_binary_none(make: Make) -> None:
    assert len(column(make, SALES, "sale_id").samples) <= 1
    assert column(make, SALES, "picture").samples == ()
    (note,) = column(make, SALES, "note").samples
    assert len(note) <= 42 and note.endswith("…'")


def test_distinct_is_counted_where_all_rows_were_read(make: Make) -> None:
    assert column(make, "CREATE TABLE t (a); INSERT INTO t VALUES (1), (1), (2)", "a").distinct == 2
    assert column(make, SALES, "note").distinct is None


def test_odd_names_and_untyped_columns(make: Make) -> None:
    database = make(
        """
        CREATE TABLE "order items" ("unit price" REAL, "group", "a""b" TEXT, "x.y" INT, "📦" TEXT);
        INSERT INTO "order items" VALUES (1.5, 'A', 'it''s', 7, 'ok');
        CREATE TABLE "select" (id INTEGER);
        """
    )
    table = abstract(database).table("order items")
    assert table is not None
    assert {c.name: c.samples[0] for c in table.columns} == {
        "unit price": "1.5", "group": "'A'", 'a"b': "'it''s'", "x.y": "7", "📦": "'ok'",
    }  # fmt: skip


def test_empty_tables_and_text_that_is_no_utf8(make: Make) -> None:
    database = make(
        "CREATE TABLE empty (a TEXT, b); CREATE TABLE odd (name TEXT);"
        "INSERT INTO odd VALUES (CAST(x'436166e9' AS TEXT));"
    )
    empty, odd = (abstract(database).table(name) for name in ("empty", "odd"))
    assert empty is not None and [c.samples for c in empty.columns] == [(), ()]
    assert odd is not None and odd.columns[0].samples[0].startswith("'Caf")


def test_a_broken_view_does_not_stop_the_rest(make: Make) -> None:
    database = make(
        "CREATE TABLE t (a); INSERT INTO t VALUES (5); CREATE VIEW v AS SELECT zz FROM t"
    )
    table = abstract(database).table("t")
    assert table is not None and table.columns[0].samples == ("5",)


def test_a_view_over_a_large_table_is_not_read(make: Make) -> None:
    script = """
    CREATE TABLE big (kind TEXT);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
    INSERT INTO big SELECT 'k' || (i % 3) FROM n;
    CREATE VIEW kinds AS SELECT kind, count(*) AS number FROM big GROUP BY kind;
    """
    for rows, samples in ((50, 3), (100_001, 0)):
        view = abstract(make(script.format(rows=rows))).table("kinds")
        assert view is not None and len(view.columns[0].samples) == samples


def test_a_schema_is_read_again_only_when_the_data_changed(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with sqlite3.connect(path) as writer:
        writer.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1);")
    with connect(path) as database:
        first = abstract(database)
        assert abstract(database) is first
        time.sleep(0.01)
        with sqlite3.connect(path) as writer:
            writer.execute("CREATE TABLE later (b)")
        assert abstract(database).table("later") is not None


def test_descriptions_are_merged_without_case(make: Make) -> None:
    schema = abstract(make("CREATE TABLE Sales (Id INTEGER, total INTEGER)"))
    told = with_descriptions(
        schema, {"SALES": {" total ": "in\n cents", "": "one row a sale", "gone": "x"}, "no": {}}
    )
    assert told.tables[0].description == "one row a sale"
    assert [c.description for c in told.tables[0].columns] == ["", "in cents"]
    assert with_descriptions(told, {"sales": {"total": ""}}) == told


def test_eight_hundred_tables_within_two_seconds(tmp_path: Path) -> None:
    path = tmp_path / "many.sqlite"
    with sqlite3.connect(path) as writer:
        for i in range(800):
            writer.execute(
                f"CREATE TABLE t{i} (id INTEGER PRIMARY KEY, a TEXT, b REAL, ref_id INT)"
            )
            rows = [(n, f"v{n % 5}", n / 2, n % 7) for n in range(60)]
            writer.executemany(f"INSERT INTO t{i} VALUES (?, ?, ?, ?)", rows)
    with connect(path) as database:
        started = time.process_time()
        schema = abstract(database)
        assert time.process_time() - started < 2
    assert len(schema.tables) == 800
    assert len(schema.tables[-1].columns[1].samples) == 5 <= CODES


def test_of_a_large_warehouse_one_table_of_each_group_is_read(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lynx_dspy.grounding.schema.MANY_TABLES", 3)
    days = "".join(
        f"CREATE TABLE log_{n} (id INTEGER, kind TEXT); INSERT INTO log_{n} VALUES (1, 'k{n}');"
        for n in range(1, 5)
    )
    schema = abstract(
        make(days + "CREATE TABLE kinds (name TEXT); INSERT INTO kinds VALUES ('k1');")
    )
    samples = {t.name: t.columns[-1].samples for t in schema.tables}
    assert samples == {
        "log_1": (), "log_2": (), "log_3": (), "log_4": ("'k4'",), "kinds": ("'k1'",),
    }  # fmt: skip

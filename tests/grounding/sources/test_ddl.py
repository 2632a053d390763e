"""DDL of several dialects becomes a schema, and what cannot be read is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.grounding.sources.ddl import guess_dialect, read_ddl
from lynx_dspy.values import ForeignKey, Table


def only(text: str, dialect: str = "") -> Table:
    (table,) = read_ddl(text, dialect).schema.tables
    return table


def test_comments_of_every_form_become_descriptions() -> None:
    sqlite = only("-- people\nCREATE TABLE t (\n a INT, -- age\n -- home\n b TEXT\n);")
    assert (sqlite.description, sqlite.columns[0].description) == ("people", "age")
    assert sqlite.columns[1].description == "home"
    mysql = only("CREATE TABLE t (a INT COMMENT 'age') ENGINE=InnoDB COMMENT='people'")
    assert (mysql.description, mysql.columns[0].description) == ("people", "age")
    bigquery = only(
        'CREATE TABLE `p.d.t` (a INT64 OPTIONS(description="age")) OPTIONS(description="people")'
    )
    assert (bigquery.description, bigquery.columns[0].description) == ("people", "age")
    postgres = only(
        "CREATE TABLE s.t (a SERIAL, b TEXT); COMMENT ON TABLE s.t IS 'people';"
        "COMMENT ON COLUMN s.t.b IS 'home';"
    )
    assert (postgres.description, postgres.columns[1].description) == ("people", "home")


def test_a_comment_behind_a_statement_does_not_describe_the_next() -> None:
    text = "CREATE TABLE a (x INT); -- about a\n\nCREATE TABLE b (y INT);"
    assert [t.description for t in read_ddl(text).schema.tables] == ["", ""]


def test_unquoted_names_get_the_case_that_the_engine_stores() -> None:
    text = 'CREATE TABLE Sales.Orders (Id NUMERIC, "Net" NUMERIC)'
    for dialect, path, columns in (
        ("snowflake", ("SALES", "ORDERS"), ["ID", "Net"]),
        ("postgres", ("sales", "orders"), ["id", "Net"]),
        ("duckdb", ("Sales", "Orders"), ["Id", "Net"]),
    ):
        table = only(text, dialect)
        assert table.parts == path
        assert [c.name for c in table.columns] == columns


def test_keys_are_read_wherever_they_stand() -> None:
    text = """
        CREATE TABLE a (id INT PRIMARY KEY, parent INT REFERENCES a);
        CREATE TABLE b (x INT, y INT NOT NULL, PRIMARY KEY (x, y));
        CREATE TABLE c (p INT, q INT, r INT, FOREIGN KEY (p, q) REFERENCES b (x, y));
        ALTER TABLE c ADD CONSTRAINT pk PRIMARY KEY (r);
        ALTER TABLE c ADD CONSTRAINT fk FOREIGN KEY (r) REFERENCES a (id);
    """
    schema = read_ddl(text, "postgres").schema
    assert [t.primary_key for t in schema.tables] == [("id",), ("x", "y"), ("r",)]
    assert not schema.tables[1].columns[1].nullable
    assert schema.foreign_keys == (
        ForeignKey("a", ("parent",), "a", ("id",)),
        ForeignKey("c", ("p", "q"), "b", ("x", "y")),
        ForeignKey("c", ("r",), "a", ("id",)),
    )


def test_cyclic_keys_are_kept_and_dangling_ones_told() -> None:
    read = read_ddl(
        "CREATE TABLE a (id INT PRIMARY KEY, b INT REFERENCES b(id));"
        "CREATE TABLE b (id INT PRIMARY KEY, a INT REFERENCES a(id), z INT REFERENCES gone(id));"
    )
    assert [(k.table, k.ref_table) for k in read.schema.foreign_keys] == [("a", "b"), ("b", "a")]
    assert any("gone" in note for note in read.notes)


def test_nested_fields_are_columns_with_their_types() -> None:
    table = only(
        "CREATE TABLE `p.d.events` (params ARRAY<STRUCT<key STRING, value STRUCT<n INT64>>>,"
        " tags ARRAY<STRING>)"
    )
    assert [(c.name, c.type) for c in table.columns] == [
        ("params", "ARRAY<STRUCT>"),
        ("params.key", "STRING"),
        ("params.value", "STRUCT"),
        ("params.value.n", "INT64"),
        ("tags", "ARRAY<STRING>"),
    ]
    assert table.parts == ("p", "d", "events")


def test_a_broken_statement_is_passed_over_with_a_note() -> None:
    read = read_ddl("CREATE TABLE good (a INT);\nCREATE TABLE bad (a INT,, b (;\nSELECT 1;")
    assert [t.name for t in read.schema.tables] == ["good"]
    assert "bad" in read.notes[0]
    assert "\n" not in read.notes[0]


@pytest.mark.parametrize(
    "text",
    ["", "SELECT 1", "CREATE TABLE", "CREATE TABLE t (a 'unclosed", "INSERT INTO t VALUES (1)"],
)
def test_text_without_a_table_is_one_clear_line(text: str) -> None:
    with pytest.raises(BadInput, match=r"DDL (gives no table|cannot be read)") as error:
        read_ddl(text)
    assert "\n" not in str(error.value)


def test_dialects_are_guessed_by_their_words_and_checked() -> None:
    assert guess_dialect("create or replace TABLE T (A VARCHAR(16777216))") == "snowflake"
    assert guess_dialect("CREATE TABLE t (a JSONB)") == "postgres"
    with pytest.raises(UnknownName, match="snowflake"):
        read_ddl("CREATE TABLE t (a INT)", "snowflaek")


def test_rows_of_a_dump_are_not_read_as_tables() -> None:
    rows = ", ".join(f"({n}, 'it''s; {n}')" for n in range(1000))
    read = read_ddl(f"CREATE TABLE t (a INT, b TEXT); INSERT INTO t VALUES {rows};")
    assert [t.name for t in read.schema.tables] == ["t"]
    assert not read.notes


def test_a_view_has_the_columns_of_its_query() -> None:
    view = only("CREATE VIEW v AS SELECT a AS x, b FROM t")
    assert (view.is_view, [c.name for c in view.columns]) == (True, ["x", "b"])


@given(st.text(max_size=80))
def test_any_text_is_a_schema_or_one_line(text: str) -> None:
    try:
        assert read_ddl(f"CREATE TABLE t (a INT); {text}").schema.tables
    except BadInput as error:
        assert "\n" not in str(error)

from __future__ import annotations

import re
import sqlite3

import duckdb
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp
from sqlglot.tokens import Tokenizer

from lynx_dspy.grounding.identifiers import fold, literal, quote, shown, stem, words

KEYWORDS = sorted(
    {k.split()[0].lower() for k in Tokenizer.KEYWORDS if k.replace(" ", "").isalpha()}
    | {"offset", "nothing", "glob", "isnull", "notnull", "returning", "transaction", "index"}
)


def test_a_shown_keyword_is_accepted_by_sqlite() -> None:
    connection = sqlite3.connect(":memory:")
    for keyword in KEYWORDS:
        name = shown(keyword, "sqlite")
        connection.execute(f'CREATE TABLE "t_{keyword}" ({name} TEXT)')
        connection.execute(f'SELECT x.{name}, {name} FROM "t_{keyword}" AS x ORDER BY {name}')


def test_a_shown_keyword_is_accepted_by_duckdb() -> None:
    connection = duckdb.connect()
    known = connection.execute(
        "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
    ).fetchall()
    for keyword in sorted({*KEYWORDS, *(k for (k,) in known)}):
        name = shown(keyword, "duckdb")
        connection.execute(f'CREATE TABLE "t_{keyword}" ({name} TEXT)')
        connection.execute(f'SELECT {name} FROM "t_{keyword}" ORDER BY {name}')


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_a_quoted_name_is_that_name_to_sqlite(name: str) -> None:
    connection = sqlite3.connect(":memory:")
    cursor = connection.execute(f"SELECT 1 AS {quote(name, 'sqlite')}")
    assert cursor.description[0][0] == name


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_literal_is_one_line_and_one_sql_value(text: str) -> None:
    written = literal(text, "sqlite", width=30)
    assert written is not None and "\n" not in written
    (value,) = sqlite3.connect(":memory:").execute(f"SELECT {written}").fetchone()
    assert len(value) <= 30
    if len(text) <= 30 and text.isprintable() and "  " not in text:
        assert value == text


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "bigquery", "snowflake", "postgres"])
def test_a_literal_with_quotes_and_backslash_survives_each_dialect(dialect: str) -> None:
    written = literal("it's a \\ 'test'", dialect)
    assert written is not None
    assert sqlglot.parse_one(f"SELECT {written}", dialect=dialect).selects[0].this == (
        "it's a \\ 'test'"
    )


def test_names_that_a_dialect_folds_are_quoted() -> None:
    assert shown("orders", "snowflake") == '"orders"'
    assert shown("ORDERS", "snowflake") == "ORDERS"
    assert shown("Orders", "postgres") == '"Orders"'
    assert shown("order id", "sqlite") == '"order id"'
    assert shown("📦", "sqlite") == '"📦"'


def test_words_of_a_name() -> None:
    assert words("HTTPServerID") == ("http", "server", "id")
    assert words("order.item-no 2") == ("order", "item", "no", "2")
    assert words("") == ()


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [("citations", "citation"), ("boxes", "box"), ("cities", "city"), ("planned", "planning")],
)
def test_forms_of_a_word_share_a_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


DIALECTS = ("sqlite", "duckdb", "bigquery", "snowflake", "postgres", "mysql", "spark", "tsql")


@pytest.mark.parametrize("dialect", DIALECTS)
@given(text=st.text(max_size=30))
def test_names_and_texts_are_written_as_sqlglot_writes_them(dialect: str, text: str) -> None:
    line = re.sub(r"[\s\x00-\x1f\x7f]+", " ", text)
    assert literal(text, dialect) == exp.Literal.string(line).sql(dialect=dialect)
    assert quote(text, dialect) == exp.to_identifier(text, quoted=True).sql(dialect=dialect)

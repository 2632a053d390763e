import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.metrics.queries import join_operators, one_line, spider_form, strip_distinct


def test_a_column_called_value_and_the_word_in_quotes_survive() -> None:
    sql = "SELECT DISTINCT value, \"distinct\" FROM t WHERE a = 'distinct' -- distinct"
    assert strip_distinct(sql) == sql.replace("DISTINCT ", " ", 1)


@pytest.mark.parametrize("form", ["a IS DISTINCT FROM b", "a IS NOT DISTINCT FROM b"])
def test_the_comparison_is_not_the_keyword(form: str) -> None:
    assert strip_distinct(f"SELECT {form}") == f"SELECT {form}"


@given(st.text(alphabet="'\"`[]-/* >=<!;distnc \n", max_size=40))
def test_any_text_is_taken(text: str) -> None:
    assert isinstance(spider_form(text), str)
    assert "\n" not in one_line(text)


def test_operators_in_text_are_left_alone() -> None:
    assert join_operators("a < = 1 AND b = '! =' AND c ! = 2") == "a <= 1 AND b = '! =' AND c != 2"


def test_one_line_means_the_same() -> None:
    sql = "SELECT 1 -- one;\n  AS a, /* two\n lines */ 'x--y'   AS b;\n"
    assert one_line(sql) == "SELECT 1 AS a, 'x--y' AS b"
    db = sqlite3.connect(":memory:")
    assert db.execute(one_line(sql)).fetchall() == db.execute(sql).fetchall()

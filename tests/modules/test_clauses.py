from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.modules.clauses import clauses, code_delta, edits, places

BASE = (
    "WITH paid AS (SELECT id FROM orders WHERE status = 'Paid') "
    "SELECT c.name, COUNT(*) FROM customer AS c JOIN paid ON paid.id = c.id "
    "WHERE c.city = 'Oslo' AND c.age > 30 GROUP BY c.name HAVING COUNT(*) > 1 "
    "ORDER BY 2 DESC LIMIT 5"
)


def changed(before: str, after: str) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    return {e.clause: (e.removed, e.added) for e in edits(before, after, "sqlite")}


def test_every_clause_is_told_apart() -> None:
    assert list(clauses(BASE, "sqlite")) == [
        "WITH paid",
        "SELECT",
        "FROM",
        "WHERE",
        "GROUP BY",
        "HAVING",
        "ORDER BY",
        "LIMIT",
    ]


def test_only_the_changed_clauses_are_named() -> None:
    after = BASE.replace("'Oslo'", "'Bergen'").replace("LIMIT 5", "")
    assert changed(BASE, after) == {
        "WHERE": (("c.city = 'Oslo'",), ("c.city = 'Bergen'",)),
        "LIMIT": (("LIMIT 5",), ()),
    }


def test_layout_keywords_and_the_order_of_conditions_are_no_edit() -> None:
    assert (
        changed("select a from t where b=1 and c=2", "SELECT a\nFROM t WHERE c = 2 AND b = 1") == {}
    )


def test_the_order_of_outputs_is_an_edit() -> None:
    assert "SELECT" in changed("SELECT a, b FROM t", "SELECT b, a FROM t")


def test_operands_of_a_union_are_told_apart() -> None:
    before = "SELECT a FROM t UNION SELECT b FROM u ORDER BY 1"
    assert changed(before, before.replace("b FROM u", "c FROM u")) == {
        "PART 2 SELECT": (("b",), ("c",))
    }


def test_a_name_is_found_in_every_clause_that_holds_it() -> None:
    found = places("c.name", BASE, "sqlite")
    assert [place.clause for place in found] == ["SELECT", "GROUP BY"]
    assert not places("nam", BASE, "sqlite")
    assert not places("", BASE, "sqlite")


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_two_texts_have_a_delta(before: str, after: str) -> None:
    assert code_delta(before, before) == ""
    assert isinstance(code_delta(before, after), str)


def test_a_program_that_runs_on_is_compared_in_bounded_time_and_space() -> None:
    assert len(code_delta("SELECT 1", "SELECT " + "x, y " * 50_000)) < 5_000

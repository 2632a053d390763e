"""The judge: each dataset's rule on real databases, golds that fail, faults of engines."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import dspy
import pytest

import lynx_dspy as lynx
from lynx_dspy.datasets.examples import example
from lynx_dspy.engines.base import Database
from lynx_dspy.optimize.judge import Unscored, judge_for, read_result
from lynx_dspy.values import Outcome, Status


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[list[Database]]:
    """Two databases of one schema; only the second has a customer twice."""
    opened = []
    for name, people in (("a", "('Ada', 3), ('Bo', 1)"), ("b", "('Ada', 3), ('Bo', 1), ('Bo', 1)")):
        path = tmp_path / f"{name}.sqlite"
        with sqlite3.connect(path) as connection:
            connection.executescript(
                f"CREATE TABLE people (name TEXT, age INT); INSERT INTO people VALUES {people};"
            )
        connection.close()
        opened.append(lynx.connect(path))
    yield opened
    for database in opened:
        database.close()


def asked(rule: str, *golds: str, **fields: object) -> dspy.Example:
    return example(
        id="1", question="q", db="a", database="a", dialect="sqlite", rule=rule, gold_sql=golds,
        **fields,
    )  # type: ignore[arg-type] # fmt: skip


def test_every_database_of_a_suite_must_agree(suite: list[Database]) -> None:
    one = asked("spider", "SELECT name FROM people")
    wrong = "SELECT name FROM people GROUP BY name"
    assert judge_for(one, suite[:1]).right(wrong)
    assert not judge_for(one, suite).right(wrong)
    assert judge_for(one, suite).scores(wrong)["ex"] == 0.0


def test_spider_strips_distinct_and_the_strict_score_does_not(suite: list[Database]) -> None:
    judge = judge_for(asked("spider", "SELECT name FROM people"), suite[1:])
    scores = judge.scores("SELECT DISTINCT name FROM people")
    assert (scores["ex"], scores["ex_strict"]) == (1.0, 0.0)


def test_order_counts_where_the_rule_says_so(suite: list[Database]) -> None:
    up, down = (f"SELECT name FROM people ORDER BY age {way}" for way in ("ASC", "DESC"))
    assert not judge_for(asked("spider", up), suite).right(down)
    bird = judge_for(asked("bird", up), suite[:1]).scores(down)
    assert (bird["ex"], bird["ex_strict"], bird["soft_f1"]) == (1.0, 0.0, 0.0)


def test_any_gold_may_match_and_broken_ones_are_passed_over(suite: list[Database]) -> None:
    golds = ("SELECT nope FROM people", "SELECT 1", "SELECT name FROM people")
    judge = judge_for(asked("sql_eval", *golds), suite[:1])
    assert judge.right("SELECT age, name FROM people")
    assert judge.gold_code == "SELECT 1"
    assert judge.scores("SELECT name FROM people")["soft_f1"] == 1.0


@pytest.mark.parametrize("golds", [(), ("SELECT nope FROM people",), ("DELETE FROM people",)])
def test_without_a_gold_that_runs_nothing_is_judged(
    suite: list[Database], golds: tuple[str, ...]
) -> None:
    with pytest.raises(Unscored, match="no gold can be used") as caught:
        judge_for(asked("bird", *golds), suite[:1])
    assert caught.value.status == "gold_broken"


def test_an_engines_fault_is_no_score(suite: list[Database]) -> None:
    gone = Outcome(Status.UNAVAILABLE, error="the disk is gone")
    judge = judge_for(asked("bird", "SELECT 1"), suite[:1], {"SELECT 2": gone})
    with pytest.raises(Unscored, match="the disk is gone") as caught:
        judge.scores("SELECT 2")
    assert caught.value.status == "unavailable"


@pytest.mark.parametrize("code", ["", "DROP TABLE people", "SELECT nope", "SELECT 1; SELECT 2"])
def test_what_does_not_run_scores_nothing(suite: list[Database], code: str) -> None:
    scores = judge_for(asked("bird", "SELECT name FROM people"), suite[:1]).scores(code, repeats=2)
    assert set(scores.values()) == {0.0}
    assert set(scores) == {"ex", "ex_strict", "soft_f1", "soft_f1_cells", "r_ves", "ves"}
    assert suite[0].query("SELECT COUNT(*) FROM people") == [(2,)]


def test_gold_against_itself_is_about_as_fast(suite: list[Database]) -> None:
    gold = "SELECT name FROM people"
    scores = judge_for(asked("bird", gold), suite[:1]).scores(gold, repeats=5)
    assert 0.5 <= scores["r_ves"] <= 1.25
    assert scores["ves"] > 0


def test_known_outcomes_are_not_run_again(suite: list[Database]) -> None:
    known = {"SELECT 'not run'": Outcome(Status.OK, ("name",), (("Ada",), ("Bo",)))}
    judge = judge_for(asked("bird", "SELECT name FROM people"), suite[:1], known)
    assert judge.right("SELECT 'not run'")


def test_result_files_are_golds_too(suite: list[Database], tmp_path: Path) -> None:
    gold = tmp_path / "1.csv"
    gold.write_text("name,age\nAda,3.001\nBo,1\n")
    one = asked("spider2", gold_csv=[gold])
    judge = judge_for(one, suite[:1])
    assert judge.right("SELECT age, name, 'free' FROM people")
    assert not judge.right("SELECT age FROM people")
    assert judge.scores("SELECT nope")["soft_f1"] == 0.0
    given = tmp_path / "given.csv"
    given.write_text("who,old\nAda,3\nBo,1\n")
    assert judge_for(one, [], {"": read_result(given)}).scores("")["ex"] == 1.0
    with pytest.raises(Unscored):
        judge_for(one, []).scores("SELECT 1")


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2,3\n4\n5,6,7,8\n", b"\xff\xfe\x00"])
def test_a_result_that_is_no_csv_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    assert read_result(tmp_path / "x.csv").status is Status.ERROR
    one = asked("spider2", gold_csv=[tmp_path / "x.csv"])
    with pytest.raises(Unscored, match="no gold can be used"):
        judge_for(one, [])

import json
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from lynx_dspy import datasets
from lynx_dspy.datasets import spider
from lynx_dspy.datasets.spider_hardness import hardness
from lynx_dspy.errors import BadInput
from lynx_dspy.metrics import RULES, execution_accuracy

DATA = Path(__file__).parents[2] / "../shared/data/spider"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="Spider 1.0 is not here")

COUNT = [3, [0, [0, 0, False], None]]
NAME = [0, [0, [0, 1, False], None]]


def parsed(**parts: Any) -> dict[str, Any]:
    """The parsed form of `SELECT name FROM t`, with some parts changed."""
    plain: dict[str, Any] = {
        "select": [False, [NAME]],
        "from": {"table_units": [["table_unit", 0]], "conds": []},
        "where": [],
        "groupBy": [],
        "having": [],
        "orderBy": [],
        "limit": None,
        "intersect": None,
        "except": None,
        "union": None,
    }
    return {**plain, **parts}


LIKE = [False, 9, [0, [0, 1, False], None], "'%a%'", None]
NESTED = [False, 8, [0, [0, 1, False], None], parsed(), None]


@pytest.mark.parametrize(
    ("parts", "level"),
    [
        ({}, "easy"),
        ({"where": [LIKE]}, "medium"),
        ({"select": [False, [COUNT, COUNT]]}, "medium"),
        ({"where": [NESTED]}, "hard"),
        ({"union": parsed()}, "hard"),
        ({"where": [LIKE, "or", LIKE], "limit": 1}, "extra"),
        ({"where": [NESTED], "limit": 1}, "extra"),
    ],
)
def test_hardness_counts_clauses_nesting_and_extras(parts: dict[str, Any], level: str) -> None:
    assert hardness(parsed(**parts)) == level


def test_a_download_without_databases_is_told(tmp_path: Path) -> None:
    record = {"question": "q", "db_id": "d", "query": "SELECT 1"}
    (tmp_path / "dev.json").write_text(json.dumps([record]))
    with pytest.raises(BadInput, match=r"Spider page \(yale-lily"):
        datasets.load("spider", tmp_path)
    with pytest.raises(BadInput, match=r"train_spider\.json"):
        datasets.load("spider", tmp_path, "train")


def test_all_databases_of_a_suite_are_found(tmp_path: Path) -> None:
    for name in ("d.sqlite", "d_1.sqlite", "schema.sql"):
        (tmp_path / name).touch()
    assert [path.name for path in spider.suite_of(tmp_path / "d.sqlite")] == [
        "d.sqlite",
        "d_1.sqlite",
    ]


@needs_data
def test_every_gold_agrees_with_itself_and_fast() -> None:
    loaded = datasets.load("spider", DATA)
    assert len(loaded) == 581
    assert {one.difficulty for one in loaded} == {"easy", "medium", "hard", "extra"}
    connections = {
        path: sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        for path in {one.database for one in loaded}
    }
    rule = RULES["spider"]
    began = time.process_time()
    for one in loaded:
        (gold,) = one.gold_sql
        rows = connections[one.database].execute(rule.prepare(gold)).fetchall()
        assert execution_accuracy(rows, list(rows), one.rule, ordered=rule.ordered(gold))
    assert time.process_time() - began < 5


@needs_data
def test_tables_get_names_in_words() -> None:
    described = datasets.describe("spider", DATA, "world_1")
    assert described["country"]["IndepYear"] == "indepdent year"

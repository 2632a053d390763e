import json
from pathlib import Path

import pytest

from lynx_dspy import datasets
from lynx_dspy.datasets.golds import matches_gold_csv
from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.metrics.frames import read_csv


def write(path: Path, *records: dict[str, object]) -> Path:
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def test_a_question_needs_little_and_gets_defaults(tmp_path: Path) -> None:
    write(
        tmp_path / "test.jsonl",
        {"question": "q", "database": "shop.duckdb", "gold_sql": "SELECT 1"},
    )
    (one,) = datasets.load("jsonl", tmp_path)
    assert (one.id, one.db, one.dialect, one.rule) == ("1", "shop", "duckdb", "sql_eval")
    assert one.database == str(tmp_path / "shop.duckdb")
    assert one.gold_sql == ("SELECT 1",)


@pytest.mark.parametrize(
    ("database", "dialect"),
    [("sqlite:///shop.db", "sqlite"), ("duckdb:///shop.db", "duckdb"), ("folder", "duckdb")],
)
def test_urls_stay_and_say_their_dialect(tmp_path: Path, database: str, dialect: str) -> None:
    path = write(tmp_path / "mine.jsonl", {"question": "q", "database": database})
    (one,) = datasets.load("jsonl", path)
    assert one.dialect == dialect
    assert one.database == (database if ":" in database else str(tmp_path / database))


def test_a_csv_of_questions_with_results_as_golds(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n")
    (tmp_path / "b.csv").write_text("n\n2\n")
    (tmp_path / "val.csv").write_text(
        "\ufeffid,question,database,gold_csv,team\nx,how many?,shop.sqlite,a.csv; b.csv,us\n"
    )
    (one,) = datasets.load("csv", tmp_path, "val")
    assert (one.id, one.dialect, one.rule) == ("x", "sqlite", "spider2-fixed")
    assert matches_gold_csv(one, read_csv("count\n2\n"))
    assert not matches_gold_csv(one, read_csv("count\n3\n"))
    assert not matches_gold_csv(one, None)


def test_what_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"No test\.jsonl or test\.csv"):
        datasets.load("jsonl", tmp_path)
    write(tmp_path / "test.jsonl", {"question": "q", "database": "d"}, {"question": ""})
    with pytest.raises(BadInput, match="question 2 has no question and no database"):
        datasets.load("jsonl", tmp_path)
    write(tmp_path / "test.jsonl", {"question": "q", "database": "d", "gold_csv": ["no.csv"]})
    with pytest.raises(BadInput, match=r"no\.csv, which is not a file"):
        datasets.load("jsonl", tmp_path)
    (tmp_path / "test.jsonl").write_text('{"question": "q"}\n{"quest')
    with pytest.raises(BadInput, match="line 2 is not JSON"):
        datasets.load("jsonl", tmp_path)


def test_an_unknown_dataset_is_named_with_those_that_exist() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'spider2'"):
        datasets.load("spider-2", ".")

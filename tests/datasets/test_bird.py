import json
import sqlite3
import statistics
from pathlib import Path
from typing import Any

import pytest

from lynx_dspy import datasets
from lynx_dspy.datasets import bird, predictions
from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.metrics import execution_accuracy, soft_f1

DATA = Path(__file__).parents[2] / "../shared/data/bird_mini_dev"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="BIRD Mini-Dev is not here")

QUESTION = {"question_id": 7, "db_id": "shop", "question": "How many?", "evidence": "all of them",
            "SQL": "SELECT 1", "difficulty": "simple"}  # fmt: skip


def unpack(root: Path, *, databases: bool = True) -> Path:
    """A small download in a layout of its own."""
    folder = root / "minidev" / "MINIDEV"
    folder.mkdir(parents=True)
    (folder / "mini_dev_sqlite.json").write_text(json.dumps([QUESTION]))
    described = folder / "dev_databases" / "shop" / "database_description"
    described.mkdir(parents=True)
    (described / "item.csv").write_bytes(
        "original_column_name,column_name,column_description,data_format,value_description\r\n"
        'price ,unit price,"what it costs\r\nin €",real,\r\n'.encode("cp1252")
    )
    if databases:
        sqlite3.connect(described.parent / "shop.sqlite").close()
    return root


def run(database: str, sql: str) -> list[tuple[Any, ...]] | None:
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    except sqlite3.Error:
        return None
    finally:
        connection.close()


def test_any_layout_is_read_and_gold_is_no_input(tmp_path: Path) -> None:
    (one,) = datasets.load("bird", unpack(tmp_path))
    assert one.id == "7"
    assert one.database.endswith("dev_databases/shop/shop.sqlite")
    assert set(one.inputs().keys()) == {"question", "evidence", "database", "documents"}
    assert one.gold_sql == ("SELECT 1",)


def test_descriptions_are_decoded_stripped_and_put_on_one_line(tmp_path: Path) -> None:
    assert bird.describe(unpack(tmp_path), "shop") == {
        "item": {"price": "unit price; what it costs in €"}
    }


def test_a_missing_download_says_what_was_looked_for_and_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"mini_dev_sqlite\.json.*bird-bench\.github\.io"):
        datasets.load("bird", tmp_path)
    with pytest.raises(BadInput, match="No folder"):
        datasets.load("bird", tmp_path / "nowhere")
    with pytest.raises(UnknownName, match="mini_dev, dev, train"):
        datasets.load("bird", tmp_path, "minidev")


def test_databases_left_zipped_are_told(tmp_path: Path) -> None:
    unpack(tmp_path, databases=False)
    with pytest.raises(BadInput, match="No databases"):
        datasets.load("bird", tmp_path)
    (tmp_path / "dev_databases.zip").touch()
    with pytest.raises(BadInput, match=r"Unzip dev_databases\.zip"):
        datasets.load("bird", tmp_path)


def test_a_file_that_was_cut_off_is_told(tmp_path: Path) -> None:
    path = bird.questions_file(unpack(tmp_path), "mini_dev")
    path.write_text(path.read_text()[:-5])
    with pytest.raises(BadInput, match="not whole JSON"):
        datasets.load("bird", tmp_path)
    path.write_text('[{"question": "q"}]')
    with pytest.raises(BadInput, match="question 1 has no db_id"):
        datasets.load("bird", tmp_path)


@needs_data
def test_mini_dev_has_500_questions_and_says_which_databases_it_lacks() -> None:
    loaded = datasets.load("bird", DATA)
    assert len(loaded) == 500
    assert {one.difficulty for one in loaded} == {"simple", "moderate", "challenging"}
    assert {one.db for one in loaded if one.database} == {"superhero"}
    assert all(one.reason for one in loaded if not one.database)


@needs_data
def test_the_shipped_predictions_score_as_by_the_official_code() -> None:
    loaded = datasets.load("bird", DATA)
    shipped = predictions.read(DATA / "predictions" / "predict_mini_dev_gpt-4_sqlite.json", loaded)
    scores: dict[str, list[bool]] = {"simple": [], "moderate": [], "challenging": []}
    soft = []
    for one, prediction in zip(loaded, shipped, strict=True):
        if one.database and prediction:
            gold = run(one.database, one.gold_sql[0])
            pred = run(one.database, prediction.code)
            assert execution_accuracy(gold, gold, one.rule) and soft_f1(gold, gold) == 1
            scores[one.difficulty].append(execution_accuracy(gold, pred, one.rule))
            soft.append(soft_f1(gold, pred))
    by_level = [round(100 * statistics.fmean(level), 2) for level in scores.values()]
    assert by_level == [85.71, 80.77, 58.33]
    everything = [score for level in scores.values() for score in level]
    assert len(everything) == 52
    assert round(100 * statistics.fmean(everything), 2) == 76.92
    assert round(100 * statistics.fmean(soft), 2) == 81.40

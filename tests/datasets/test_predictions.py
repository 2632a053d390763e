import sqlite3
from pathlib import Path

import dspy
import pytest

from lynx_dspy.datasets import predictions
from lynx_dspy.datasets.examples import example
from lynx_dspy.errors import BadInput, UnknownName

EXAMPLES = [
    example(id=name, question="q", db=db, database="", dialect="sqlite", rule="bird")
    for name, db in (("a1", "shop"), ("a2", "shop"), ("a3", "bank"))
]
PROGRAMS = ["SELECT 1 -- one\nAS a", "SELECT 'x\ty'", ""]
TARGETS = {"bird": "p.json", "spider": "p.txt", "spider2": "folder", "jsonl": "p.jsonl"}


@pytest.mark.parametrize("kind", predictions.FORMATS)
def test_what_is_written_is_read_again(tmp_path: Path, kind: str) -> None:
    path = tmp_path / TARGETS[kind]
    predictions.write(path, EXAMPLES, PROGRAMS, kind)
    found = predictions.read(path, EXAMPLES)
    codes = [one.code for one in found if one]
    assert len(codes) == 3
    if kind == "spider":
        assert codes[:2] == ["SELECT 1 AS a", "SELECT 'x y'"]
        with pytest.raises(sqlite3.Error):
            sqlite3.connect(":memory:").execute(codes[2])
    else:
        assert codes == PROGRAMS


def test_positions_must_fit_the_questions(tmp_path: Path) -> None:
    predictions.write(tmp_path / "p.json", EXAMPLES, PROGRAMS, "bird")
    with pytest.raises(BadInput, match="3 predictions for 2 questions"):
        predictions.read(tmp_path / "p.json", EXAMPLES[:2])
    with pytest.raises(BadInput, match=r"database shop.* about bank"):
        predictions.read(tmp_path / "p.json", EXAMPLES[::-1])


def test_ids_may_be_few_but_not_none(tmp_path: Path) -> None:
    (tmp_path / "a2.sql").write_text("SELECT 2")
    (tmp_path / "a3.csv").write_text("n\n3\n")
    first, second, third = predictions.read(tmp_path, EXAMPLES)
    assert first is None
    assert second and second.code == "SELECT 2"
    assert third and third.csv == str(tmp_path / "a3.csv")
    other = [dspy.Example(id="z", db="shop")]
    with pytest.raises(BadInput, match="no prediction for any"):
        predictions.read(tmp_path, other)


def test_what_cannot_be_read_or_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No predictions at"):
        predictions.read(tmp_path / "none.json", EXAMPLES)
    with pytest.raises(UnknownName, match="spider2, jsonl, bird, spider"):
        predictions.write(tmp_path / "p", EXAMPLES, PROGRAMS, "sql")
    with pytest.raises(BadInput, match="2 programs for 3"):
        predictions.write(tmp_path / "p", EXAMPLES, PROGRAMS[:2], "bird")
    sly = [example(id="../a", question="", db="", database="", dialect="sqlite", rule="bird")]
    with pytest.raises(BadInput, match="cannot be a file name"):
        predictions.write(tmp_path / "folder", sly, ["SELECT 1"], "spider2")
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(BadInput, match="not a BIRD prediction file"):
        predictions.read(tmp_path / "list.json", EXAMPLES)

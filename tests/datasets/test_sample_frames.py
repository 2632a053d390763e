"""The sample's questions for Python: every gold is run, and agrees with a query written apart."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import lynx_dspy as lynx
from lynx_dspy import datasets
from lynx_dspy.datasets import sample
from lynx_dspy.datasets.sample import benchmark, frames, schema, warehouse
from lynx_dspy.engines.base import Database
from lynx_dspy.engines.python.check import check
from lynx_dspy.engines.python.guard import refusal
from lynx_dspy.metrics import execution_accuracy, soft_f1
from lynx_dspy.values import Schema

EVERY = frames.questions()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return frames.build_folder(tmp_path_factory.mktemp("sample") / "csv")


@pytest.fixture(scope="module")
def tables(folder: Path) -> Iterator[Database]:
    with lynx.connect(f"frames:///{folder}") as database:
        yield database


@pytest.fixture(scope="module")
def structure(tables: Database) -> Schema:
    return tables.introspect()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(warehouse.build(tmp_path_factory.mktemp("sample") / "w.sqlite"))
    yield connection
    connection.close()


@pytest.mark.parametrize("question", EVERY, ids=lambda question: question["id"])
def test_a_gold_program_gives_what_its_query_gives(
    question: frames.PythonQuestion, tables: Database, database: sqlite3.Connection
) -> None:
    for program in question["gold_python"]:
        outcome = tables.execute(program)
        assert outcome.ran, outcome.error
        assert outcome.rows and not outcome.truncated
        for query in question["gold_sql"]:
            wanted = database.execute(query).fetchall()
            assert execution_accuracy(wanted, outcome.rows, rule="strict")
            assert soft_f1(wanted, outcome.rows) == 1.0


@pytest.mark.parametrize("question", EVERY, ids=lambda question: question["id"])
def test_the_check_has_nothing_against_a_gold(
    question: frames.PythonQuestion, structure: Schema
) -> None:
    for program in question["gold_python"]:
        assert refusal(program) is None
        assert check(program, structure) == ()


def test_twenty_questions_of_three_levels() -> None:
    levels = [question["difficulty"] for question in EVERY]
    assert [levels.count(level) for level in ("easy", "medium", "hard")] == [8, 8, 4]
    assert len({question["id"] for question in EVERY}) == 20


def test_no_question_is_near_one_of_the_other_splits() -> None:
    def words(text: str) -> set[str]:
        return set(re.findall(r"\w+", text.lower()))

    others = [q["question"] for split in sample.SPLITS for q in sample.questions(split)]
    for question in EVERY:
        mine = words(question["question"])
        assert all(len(mine & words(o)) / len(mine | words(o)) < 0.8 for o in others)


def test_the_files_hold_the_rows_of_the_database(tables: Database, folder: Path) -> None:
    assert {path.stem for path in folder.glob("*.csv")} == set(schema.TABLES)
    made = warehouse.rows()
    counts = {t.name: t.row_count for t in tables.introspect().tables}
    assert counts == {name: len(rows) for name, rows in made.items()}


def test_a_second_build_leaves_the_folder_alone(folder: Path) -> None:
    before = (folder / "orders.csv").stat().st_mtime_ns
    assert frames.build_folder(folder) == folder
    assert (folder / "orders.csv").stat().st_mtime_ns == before


def test_the_shared_protocol_gives_the_split(folder: Path) -> None:
    examples = benchmark.load(Path("nowhere"), "python", folder.parent)
    assert len(examples) == 20
    assert examples[0].dialect == "pandas"
    assert examples[0].database.startswith("frames:///")
    assert not {"gold_sql", "needs_docs"} & set(examples[0].inputs().keys())
    assert datasets.fingerprint("sample", "", "python") != datasets.fingerprint("sample", "", "val")
    pages = {path.stem for path in sample.documents_path().glob("*.md")}
    assert all(set(question["needs_docs"]) <= pages for question in EVERY)

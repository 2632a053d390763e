"""The sample as a folder of CSV files, with 20 questions that Python programs answer.

A question has its gold as a program over the DataFrames and, told apart from it, as a query over
the database: the tests run both and compare.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from lynx_dspy.datasets.sample import schema, warehouse
from lynx_dspy.lm.models import home

if TYPE_CHECKING:
    import dspy

SPLIT = "python"

QUESTIONS_FILE = Path(__file__).with_name("questions_python.jsonl")

_DONE = ".edition"


class PythonQuestion(TypedDict):
    """A line of `questions_python.jsonl`; `gold_sql`, for SQLite, only checks `gold_python`."""

    id: str
    split: str
    difficulty: str
    question: str
    evidence: str
    needs_docs: list[str]
    gold_python: list[str]
    gold_sql: list[str]


def questions() -> list[PythonQuestion]:
    """The questions, easy ones first.

    >>> len(questions())
    20
    """
    lines = QUESTIONS_FILE.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def default_folder() -> Path:
    """Where the files are kept unless another place is named."""
    return home() / "sample" / "warehouse-csv"


def build_folder(folder: str | Path) -> Path:
    """The sample's tables as CSV files in `folder`, a header line each; made unless they are there.

    The folder appears whole or not at all.
    """
    target = Path(folder)
    if (target / _DONE).is_file() and (target / _DONE).read_text() == str(warehouse.EDITION):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    for table, rows in warehouse.rows().items():
        with (made / f"{table}.csv").open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(_columns(table))
            writer.writerows(rows)
    (made / _DONE).write_text(str(warehouse.EDITION))
    shutil.rmtree(target, ignore_errors=True)
    os.replace(made, target)
    return target


def load(folder: str | Path | None = None) -> list[dspy.Example]:
    """The questions over the files in `folder`; any of `gold_sql`, which are programs, is right.

    The fields are those of `datasets.examples.example` and `needs_docs`.
    """
    from lynx_dspy.datasets.examples import example
    from lynx_dspy.datasets.sample import documents_path

    place = build_folder(folder or default_folder())
    pages = sorted(documents_path().glob("*.md"))
    return [
        example(
            id=question["id"],
            question=question["question"],
            evidence=question["evidence"],
            db="warehouse",
            database=f"frames:///{place}",
            dialect="pandas",
            rule="sql_eval",
            documents=pages,
            gold_sql=question["gold_python"],
            difficulty=question["difficulty"],
        ).copy(needs_docs=tuple(question["needs_docs"]))
        for question in questions()
    ]


def _columns(table: str) -> list[str]:
    """The table's columns, in the order of its DDL."""
    body = schema.DDL.partition(f"CREATE TABLE {table} (")[2].partition("\n);")[0]
    names = [line.split()[0].strip('"') for line in body.strip().splitlines() if line.strip()]
    return [name for name in names if name not in ("PRIMARY", "FOREIGN")]

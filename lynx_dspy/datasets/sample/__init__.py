"""The sample: an invented coffee retailer's warehouse, its documents and 100 questions.

`build` makes the SQLite database, `documents_path` holds the definitions that the questions lean
on, `load` gives the questions as `dspy.Example`s with their golds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from lynx_dspy.datasets.sample.warehouse import build
from lynx_dspy.errors import UnknownName
from lynx_dspy.lm.models import home

if TYPE_CHECKING:
    import dspy

__all__ = [
    "DEMO_QUESTIONS",
    "QUESTIONS_FILE",
    "SPLITS",
    "Question",
    "build",
    "default_path",
    "documents_path",
    "load",
    "questions",
]

SPLITS = ("train", "val", "test")

DEMO_QUESTIONS = ("sample-test-01", "sample-test-04", "sample-test-09")
"""Ids of a plain count, one that needs the glossary, and one that joins and groups."""

QUESTIONS_FILE = Path(__file__).with_name("questions.jsonl")
"""The questions of all splits, an object a line."""


class Question(TypedDict):
    """A line of `questions.jsonl`.

    `gold_sql` holds every acceptable query, `needs_docs` the names of the documents (without
    `.md`) without which the question cannot be answered for sure.
    """

    id: str
    split: str
    difficulty: str
    question: str
    evidence: str
    needs_docs: list[str]
    gold_sql: list[str]


def documents_path() -> Path:
    """The folder of the knowledge pages, as Markdown."""
    return Path(__file__).with_name("docs")


def default_path() -> Path:
    """Where the database is kept unless another place is named."""
    return home() / "sample" / "warehouse.sqlite"


def questions(split: str) -> list[Question]:
    """The questions of a split: 60 of `train`, 20 of `val`, 20 of `test`. Raises `UnknownName`.

    >>> len(questions("val")), questions("test")[0]["difficulty"]
    (20, 'easy')
    """
    if split not in SPLITS:
        raise UnknownName("split", split, SPLITS)
    text = QUESTIONS_FILE.read_text(encoding="utf-8")
    every: list[Question] = [json.loads(line) for line in text.splitlines()]
    return [question for question in every if question["split"] == split]


def load(split: str, path: str | Path | None = None) -> list[dspy.Example]:
    """The questions of a split over the database at `path`, which is built if it is not there.

    The fields are those of `datasets.examples.example` and `needs_docs`; any of `gold_sql` is
    right, `documents` are the pages. Raises `UnknownName` for an unknown split.
    """
    from lynx_dspy.datasets.examples import example

    wanted = questions(split)
    database = build(path or default_path())
    pages = sorted(documents_path().glob("*.md"))
    return [
        example(
            id=question["id"],
            question=question["question"],
            evidence=question["evidence"],
            db="warehouse",
            database=database,
            dialect="sqlite",
            rule="sql_eval",
            documents=pages,
            gold_sql=question["gold_sql"],
            difficulty=question["difficulty"],
        ).copy(needs_docs=tuple(question["needs_docs"]))
        for question in wanted
    ]

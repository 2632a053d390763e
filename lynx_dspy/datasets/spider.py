"""Spider 1.0 (yale-lily.github.io/spider, CC BY-SA 4.0): cross-database questions on SQLite."""

from __future__ import annotations

from pathlib import Path

import dspy

from lynx_dspy.datasets import files
from lynx_dspy.datasets.examples import example
from lynx_dspy.datasets.spider_hardness import hardness

PAGE = "the Spider page (yale-lily.github.io/spider)"

_QUESTIONS = {
    "dev": ("dev.json",),
    "train": ("train_spider.json",),
    "train_others": ("train_others.json",),
    "test": ("test.json",),
}


def questions_file(data_dir: Path, split: str) -> Path:
    """The split's questions. Raises `BadInput` if they are not below `data_dir`."""
    return files.find_file(data_dir, _QUESTIONS[split], f"Spider questions of {split}", PAGE)


def load(data_dir: Path, split: str = "dev", run_dir: Path | None = None) -> list[dspy.Example]:
    """The questions of `split`, in the file's order; ids are their positions.

    Difficulty is the official hardness where the file holds parsed queries. Raises `BadInput` if
    the questions or all databases are missing.
    """
    path = questions_file(data_dir, split)
    databases = files.find_databases(data_dir, PAGE)
    loaded = []
    for position, record in enumerate(files.read_records(path, ("question", "db_id", "query"))):
        database, reason = files.database_or_reason(databases, record["db_id"])
        loaded.append(
            example(
                id=str(position),
                question=record["question"],
                db=record["db_id"],
                database=database,
                reason=reason,
                dialect="sqlite",
                rule="spider",
                gold_sql=[record["query"]],
                difficulty=hardness(record["sql"]) if record.get("sql") else "",
            )
        )
    return loaded


def describe(data_dir: Path, db: str) -> dict[str, dict[str, str]]:
    """Readable names of tables and columns from `tables.json`, where they say more."""
    path = files.find_file(data_dir, ("tables.json",), "Spider tables", PAGE)
    return files.readable_names(path, db)


def suite_of(database: str | Path) -> list[Path]:
    """All SQLite files beside a database: a prediction must agree with gold on each of them."""
    return sorted(Path(database).parent.glob("*.sqlite"))

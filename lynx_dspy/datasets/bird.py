"""BIRD and BIRD Mini-Dev (bird-bench.github.io, CC BY-SA 4.0): questions with evidence on SQLite.

Any layout of the unpacked download is read. Two revisions of the 500 Mini-Dev questions differ at
17 positions, and predictions pair with them by position: compare `datasets.fingerprint`.
"""

from __future__ import annotations

from pathlib import Path

import dspy

from lynx_dspy.datasets import files
from lynx_dspy.datasets.examples import example
from lynx_dspy.grounding.sources.tables_json import read_descriptions

PAGE = "the BIRD page (bird-bench.github.io; for mini_dev its Mini-Dev page)"

_QUESTIONS = {
    "mini_dev": ("mini_dev_sqlite.json", "mini_dev_sqlite-00000-of-00001.json"),
    "dev": ("dev.json",),
    "train": ("train.json",),
}
_TABLES = ("mini_dev_sqlite_tables.json", "dev_tables.json", "train_tables.json")


def questions_file(data_dir: Path, split: str) -> Path:
    """The split's questions. Raises `BadInput` if they are not below `data_dir`."""
    return files.find_file(data_dir, _QUESTIONS[split], f"BIRD questions of {split}", PAGE)


def load(
    data_dir: Path, split: str = "mini_dev", run_dir: Path | None = None
) -> list[dspy.Example]:
    """The questions of `split` (mini_dev, dev or train), in the file's order.

    Where only some databases were unpacked, the questions of the others have none and a reason.
    Raises `BadInput` if the questions or all databases are missing.
    """
    path = questions_file(data_dir, split)
    databases = files.find_databases(data_dir, PAGE)
    loaded = []
    for position, record in enumerate(files.read_records(path, ("question", "db_id"))):
        database, reason = files.database_or_reason(databases, record["db_id"])
        loaded.append(
            example(
                id=str(record.get("question_id", position)),
                question=record["question"],
                evidence=record.get("evidence") or "",
                db=record["db_id"],
                database=database,
                reason=reason,
                dialect="sqlite",
                rule="bird",
                gold_sql=[record["SQL"]] if record.get("SQL") else [],
                difficulty=record.get("difficulty", ""),
            )
        )
    return loaded


def describe(data_dir: Path, db: str) -> dict[str, dict[str, str]]:
    """A database's `database_description/*.csv`, with readable names from the tables file below.

    A description joins the readable name, the column's and its values' description.
    """
    tables = sorted(path for path in data_dir.rglob("*_tables.json") if path.name in _TABLES)
    described = files.readable_names(tables[0], db) if tables else {}
    for folder in data_dir.rglob("database_description"):
        if folder.parent.name == db:
            for table, columns in read_descriptions(folder).items():
                described.setdefault(table, {}).update(columns)
    return described

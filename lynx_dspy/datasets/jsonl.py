"""A user's own questions: `<split>.jsonl` or `<split>.csv` in a folder, or such a file itself.

    question    required
    database    required: what `lynx_dspy.connect` takes, names of `lynx connect` too; a path is
                relative to the file's folder
    evidence    a hint for this question
    documents   paths of texts for this question, relative to the file's folder
    gold_sql    a query, or several acceptable ones
    gold_csv    result files instead of queries, relative to the file's folder
    id, difficulty, dialect   else the position, nothing, and what the database's ending says

In JSONL `documents`, `gold_sql` and `gold_csv` are a text or a list; in CSV `documents` and
`gold_csv` may name several files with `;` between them. Other columns are left alone.
"""

from __future__ import annotations

import csv
from pathlib import Path

import dspy

from lynx_dspy import connections
from lynx_dspy.datasets import files
from lynx_dspy.datasets.examples import example
from lynx_dspy.errors import BadInput

PAGE = "your own data"

_SQLITE_ENDINGS = (".sqlite", ".sqlite3", ".db")


def questions_file(data_dir: Path, split: str) -> Path:
    """The file itself if `data_dir` is one, else `<split>.jsonl` or `<split>.csv` in it.

    Raises `BadInput` if there is neither.
    """
    if data_dir.is_file():
        return data_dir
    for ending in (".jsonl", ".csv"):
        if (data_dir / f"{split}{ending}").is_file():
            return data_dir / f"{split}{ending}"
    raise BadInput(
        f"No {split}.jsonl or {split}.csv in {data_dir}. Each line is a question with the fields "
        "question, database, and gold_sql or gold_csv."
    )


def load(data_dir: Path, split: str = "test", run_dir: Path | None = None) -> list[dspy.Example]:
    """The questions, in the file's order. Golds as SQL are judged by sql_eval's rule, golds as CSV
    by spider2-fixed. Raises `BadInput` that names the first line that cannot be used.
    """
    path = questions_file(data_dir, split)
    records = _csv_records(path) if path.suffix == ".csv" else files.read_records(path, ())
    return [_example(path, position, record) for position, record in enumerate(records, 1)]


def describe(data_dir: Path, db: str) -> dict[str, dict[str, str]]:
    """Nothing: descriptions of one's own database belong into it or into documents."""
    return {}


def _example(path: Path, position: int, record: files.Record) -> dspy.Example:
    lacking = [name for name in ("question", "database") if not record.get(name)]
    if lacking:
        raise BadInput(f"{path}, question {position} has no {' and no '.join(lacking)}.")
    database = str(record["database"])
    if not _is_address(path.parent, database):
        database = str(path.parent / database)
    return example(
        id=str(record.get("id") or position),
        question=str(record["question"]),
        evidence=str(record.get("evidence") or ""),
        db=Path(database).stem,
        database=database,
        dialect=str(record.get("dialect") or _dialect(database)),
        rule="spider2-fixed" if record.get("gold_csv") else "sql_eval",
        documents=_paths(path, position, record.get("documents")),
        gold_sql=_listed(record.get("gold_sql")),
        gold_csv=_paths(path, position, record.get("gold_csv")),
        difficulty=str(record.get("difficulty") or ""),
    )


def _is_address(folder: Path, database: str) -> bool:
    """Whether a question's database is no path: a URL, or a saved name that no file here has."""
    if "://" in database or database.startswith("metadata:"):
        return True
    return connections.is_saved(database) and not (folder / database).exists()


def _csv_records(path: Path) -> list[files.Record]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        records: list[files.Record] = [dict(row) for row in csv.DictReader(lines)]
    if not records:
        raise BadInput(f"{path} holds no questions below its header.")
    for record in records:
        for name in ("documents", "gold_csv"):
            parts = (record.get(name) or "").split(";")
            record[name] = [part.strip() for part in parts if part.strip()]
    return records


def _listed(value: str | list[str] | None) -> list[str]:
    if not value:
        return []
    return [value] if isinstance(value, str) else list(value)


def _paths(path: Path, position: int, value: str | list[str] | None) -> list[Path]:
    found = [path.parent / name for name in _listed(value)]
    for missing in (one for one in found if not one.is_file()):
        raise BadInput(f"{path}, question {position} names {missing}, which is not a file.")
    return found


def _dialect(database: str) -> str:
    if connections.is_saved(database):
        database = connections.listed()[database]
    scheme, mark, _ = database.partition(":///")
    if mark:
        return "sqlite" if scheme == "sqlite" else "duckdb"
    return "sqlite" if database.endswith(_SQLITE_ENDINGS) else "duckdb"

"""defog sql-eval (github.com/defog-ai/sql-eval, Apache-2.0): questions with several golds.

Databases come as SQL text and are loaded freshly for each run, because their dates are relative to
the day of loading.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from functools import cache
from pathlib import Path

import dspy

from lynx_dspy.datasets import files
from lynx_dspy.datasets.examples import example
from lynx_dspy.errors import BadInput, UnknownName

PAGE = "the sql-eval page (github.com/defog-ai/sql-eval)"


def questions_file(data_dir: Path, split: str) -> Path:
    """`<split>.jsonl`. Raises `UnknownName` if the folder has other splits, else `BadInput`."""
    files.need_folder(data_dir, "sql-eval questions", PAGE)
    splits = sorted(path.stem for path in data_dir.glob("*.jsonl"))
    if splits and split not in splits:
        raise UnknownName(f"split in {data_dir}", split, splits)
    return files.find_file(data_dir, (f"{split}.jsonl",), f"sql-eval questions of {split}", PAGE)


def load(data_dir: Path, split: str = "val", run_dir: Path | None = None) -> list[dspy.Example]:
    """The questions of `<split>.jsonl`, with the split's databases built in `run_dir`.

    Without `run_dir` they are built in a temporary folder that lasts as long as the process.
    Raises `BadInput` if questions or a database are missing.
    """
    path = questions_file(data_dir, split)
    records = files.read_records(path, ("id", "db", "question", "gold"))
    folder = run_dir if run_dir is not None else Path(_process_folder().name)
    databases = prepare(data_dir, folder, {record["db"] for record in records})
    return [
        example(
            id=record["id"],
            question=record["question"],
            evidence=record.get("knowledge") or "",
            db=record["db"],
            database=databases[record["db"]],
            dialect="sqlite",
            rule="sql_eval",
            gold_sql=record["gold"],
            difficulty=record.get("category", ""),
        )
        for record in records
    ]


def prepare(data_dir: Path, run_dir: Path, names: set[str]) -> dict[str, Path]:
    """Build `databases/<name>.sql` as `run_dir/<name>.sqlite`, replacing what is there.

    The text may make tables and fill them, and nothing else: other files stay out of its reach.
    Raises `BadInput` for one that is missing or cannot be loaded.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    built = {}
    for name in sorted(names):
        source = data_dir / "databases" / f"{name}.sql"
        if not source.is_file():
            raise BadInput(f"No database {source}. It is part of the download from {PAGE}.")
        target = run_dir / f"{name}.sqlite"
        fresh = target.with_suffix(f".{os.getpid()}.part")
        fresh.unlink(missing_ok=True)
        _load_script(source, fresh)
        os.replace(fresh, target)
        built[name] = target
    return built


def describe(data_dir: Path, db: str) -> dict[str, dict[str, str]]:
    """Column descriptions of `metadata/<db>.json`, `{table: {column: text}}`."""
    path = data_dir / "metadata" / f"{db}.json"
    tables = files.read_json(path)["table_metadata"] if path.is_file() else {}
    return {
        table: {
            c["column_name"]: c["column_description"] for c in columns if c["column_description"]
        }
        for table, columns in tables.items()
    }


@cache
def _process_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="lynx-sql-eval-", ignore_cleanup_errors=True)


def _load_script(source: Path, target: Path) -> None:
    connection = sqlite3.connect(target)
    try:
        connection.set_authorizer(_own_file_only)
        connection.executescript(source.read_text(encoding="utf-8"))
        connection.commit()
    except sqlite3.Error as error:
        target.unlink(missing_ok=True)
        raise BadInput(f"{source} cannot be loaded: {error}.") from None
    finally:
        connection.close()


def _own_file_only(
    action: int, first: str | None, second: str | None, schema: str | None, trigger: str | None
) -> int:
    forbidden = action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)
    return sqlite3.SQLITE_DENY if forbidden else sqlite3.SQLITE_OK

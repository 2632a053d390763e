"""Spider 2.0-Lite (spider2-sql.github.io, MIT): 547 tasks on BigQuery, Snowflake and SQLite.

Golds are result files, several of which may be acceptable. Tasks whose engine is not at hand get a
database of their metadata: programs are written and checked, not run, and their results can still
be scored from CSV files.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import dspy

from lynx_dspy.datasets import files
from lynx_dspy.datasets.examples import example
from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.sources.spider2 import read_metadata

PAGE = "the Spider 2.0 page (spider2-sql.github.io; folder spider2-lite of its repository)"

_DIALECTS = {"bq": "bigquery", "ga": "bigquery", "sf": "snowflake", "lo": "sqlite"}
"""First two letters of a task's id -> dialect."""

_EASY, _MEDIUM = 80, 160
"""Gold queries of fewer tokens than these are easy or medium (evaluation record, `toks`)."""

_GOLD_NAME = re.compile(r"(?P<id>.+?)(?P<suffix>_[a-z])?\.csv")


def questions_file(data_dir: Path, split: str = "lite") -> Path:
    """The tasks. Raises `BadInput` if they are not below `data_dir`."""
    return files.find_file(data_dir, ("spider2-lite.jsonl",), "Spider 2.0-Lite tasks", PAGE)


@dataclass(frozen=True, slots=True)
class _Download:
    """What the tasks of one unpacked download refer to."""

    root: Path
    gold: Path
    records: dict[str, files.Record]
    results: dict[str, list[Path]]
    databases: dict[str, Path]


def load(data_dir: Path, split: str = "lite", run_dir: Path | None = None) -> list[dspy.Example]:
    """All tasks in the file's order.

    Raises `BadInput` if the tasks or their evaluation records are missing.
    """
    path = questions_file(data_dir)
    evaluation = files.find_file(
        data_dir, ("spider2lite_eval.jsonl",), "Spider 2.0-Lite evaluation records", PAGE
    )
    records = files.read_records(evaluation, ("instance_id",))
    download = _Download(
        root=path.parent,
        gold=evaluation.parent,
        records={record["instance_id"]: record for record in records},
        results=_gold_results(evaluation.parent / "exec_result"),
        databases=_sqlite_files(path.parent / "resource" / "databases"),
    )
    tasks = files.read_records(path, ("instance_id", "db", "question"))
    return [_task(task, download) for task in tasks]


def describe(data_dir: Path, db: str) -> dict[str, dict[str, str]]:
    """Column descriptions in a database's metadata files, `{table: {column: text}}`."""
    described: dict[str, dict[str, str]] = {}
    databases = questions_file(data_dir).parent / "resource" / "databases"
    for folder in sorted(databases.glob(f"*/{db}")):
        for table in read_metadata(folder).schema.tables if folder.is_dir() else ():
            texts = {c.name: c.description for c in table.columns if c.description}
            if texts:
                described[table.name] = texts
    return described


def _task(task: files.Record, download: _Download) -> dspy.Example:
    name, db, knowledge = task["instance_id"], task["db"], task.get("external_knowledge")
    if name[:2] not in _DIALECTS:
        raise BadInput(f"Task {name!r}: ids begin with {', '.join(_DIALECTS)}.")
    dialect = _DIALECTS[name[:2]]
    record = download.records.get(name, {})
    query = download.gold / "sql" / f"{name}.sql"
    resource = download.root / "resource"
    metadata = resource / "databases" / dialect / db
    database, reason = _database(dialect, db, download.databases, metadata)
    return example(
        id=name,
        question=task["question"],
        db=db,
        database=database,
        reason=reason,
        dialect=dialect,
        rule="spider2",
        documents=[resource / "documents" / knowledge] if knowledge else [],
        gold_sql=[query.read_text(encoding="utf-8")] if query.is_file() else [],
        gold_csv=download.results.get(name, []),
        condition_cols=record.get("condition_cols") or [],
        ignore_order=bool(record.get("ignore_order", False)),
        difficulty=_difficulty(record.get("toks")),
        metadata=metadata if metadata.is_dir() else "",
    )


def _database(
    dialect: str, db: str, sqlite_files: dict[str, Path], metadata: Path
) -> tuple[str, str]:
    """What `lynx_dspy.connect` takes and no reason, or nothing and why."""
    if dialect == "sqlite" and db.casefold() in sqlite_files:
        return str(sqlite_files[db.casefold()]), ""
    if metadata.is_dir():
        return f"metadata:{metadata.absolute()}", ""
    if dialect == "sqlite":
        return "", f"{db}.sqlite is not in resource/databases (spider2-localdb/ or sqlite/)"
    return "", f"{dialect} needs an account, and resource/databases has no metadata of {db}"


def _sqlite_files(databases: Path) -> dict[str, Path]:
    """SQLite files in either official place, by folded name; the first place is preferred."""
    beside = databases.glob("sqlite/**/*.sqlite")
    first = databases.glob("spider2-localdb/**/*.sqlite")
    return {path.stem.casefold(): path for path in [*sorted(beside), *sorted(first)]}


def _gold_results(folder: Path) -> dict[str, list[Path]]:
    """Gold files by task. A lone `<id>.csv` counts before `<id>_a.csv` ..., as in the script."""
    suffixed: dict[str, list[Path]] = defaultdict(list)
    lone: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*.csv")):
        match = _GOLD_NAME.fullmatch(path.name)
        if match and match["suffix"]:
            suffixed[match["id"]].append(path)
        else:
            lone[path.stem] = [path]
    return {**suffixed, **lone}


def _difficulty(tokens: str | int | None) -> str:
    if tokens is None:
        return ""
    return "easy" if int(tokens) < _EASY else "medium" if int(tokens) < _MEDIUM else "hard"

"""The sample behind the protocol that all datasets share (`lynx_dspy.datasets`).

Questions and documents come with the package, so `data_dir` is never read.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lynx_dspy.datasets import sample
from lynx_dspy.datasets.sample import frames

if TYPE_CHECKING:
    import dspy


def load(data_dir: Path, split: str = "test", run_dir: Path | None = None) -> list[dspy.Example]:
    """The questions of a split; the database is built in `run_dir`, else in the cache folder.

    `python` are questions over the tables as CSV files, which Python programs answer.
    """
    if split == frames.SPLIT:
        return frames.load(run_dir / "warehouse-csv" if run_dir else None)
    return sample.load(split, run_dir / "warehouse.sqlite" if run_dir else None)


def questions_file(data_dir: Path, split: str) -> Path:
    """The file that holds the split. Raises `UnknownName` for an unknown split."""
    if split == frames.SPLIT:
        return frames.QUESTIONS_FILE
    sample.questions(split)
    return sample.QUESTIONS_FILE


def describe(data_dir: Path, db: str) -> dict[str, dict[str, str]]:
    """Nothing: the structure's own comments and the documents say what there is to say."""
    return {}

"""The sample behind the protocol that all datasets share (`lynx_dspy.datasets`).

Questions and documents come with the package, so `data_dir` is never read.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lynx_dspy.datasets import sample

if TYPE_CHECKING:
    import dspy


def load(data_dir: Path, split: str = "test", run_dir: Path | None = None) -> list[dspy.Example]:
    """The questions of a split; the database is built in `run_dir`, else in the cache folder."""
    return sample.load(split, run_dir / "warehouse.sqlite" if run_dir else None)


def questions_file(data_dir: Path, split: str) -> Path:
    """The file that holds every split. Raises `UnknownName` for an unknown split."""
    sample.questions(split)
    return sample.QUESTIONS_FILE


def describe(data_dir: Path, db: str) -> dict[str, dict[str, str]]:
    """Nothing: the structure's own comments and the documents say what there is to say."""
    return {}

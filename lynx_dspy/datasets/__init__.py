"""Outside benchmarks as `dspy.Example`s, one protocol for all.

Each module offers `load(data_dir, split, run_dir) -> list[dspy.Example]`, `questions_file(data_dir,
split) -> Path` and `describe(data_dir, db) -> {table: {column: text}}`. What an example holds is
written at `examples.example`. Nothing is downloaded: `data_dir` is an unpacked download.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from lynx_dspy.errors import UnknownName

if TYPE_CHECKING:
    import dspy

__all__ = ["DATASETS", "Dataset", "dataset", "describe", "fingerprint", "load"]

Descriptions = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Official:
    """A score that the benchmark publishes: right answers over all `n` tasks but those `without`.

    Tasks that were not asked or could not be scored count as wrong in it.
    """

    n: int
    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset's entry.

    `rule` judges its questions (`metrics.RULES`). `splits` are its usual ones, the default first;
    `train` is the one to compile on. With `any_split` the data may have others too.
    """

    title: str
    module: str
    rule: str
    splits: tuple[str, ...] = ()
    train: str = ""
    any_split: bool = False
    official: tuple[Official, ...] = ()

    @property
    def default_split(self) -> str:
        return self.splits[0]


DATASETS: dict[str, Dataset] = {
    "bird": Dataset(
        title="BIRD and BIRD Mini-Dev",
        module="bird",
        rule="bird",
        splits=("mini_dev", "dev", "train"),
        train="train",
    ),
    "spider": Dataset(
        title="Spider 1.0",
        module="spider",
        rule="spider",
        splits=("dev", "train", "train_others", "test"),
        train="train",
    ),
    "spider2": Dataset(
        title="Spider 2.0-Lite",
        module="spider2",
        rule="spider2",
        splits=("lite",),
        official=(Official(547), Official(544, frozenset({"sf009", "sf013", "sf029"}))),
    ),
    "sql_eval": Dataset(
        title="defog sql-eval",
        module="sql_eval",
        rule="sql_eval",
        splits=("val", "train"),
        train="train",
        any_split=True,
    ),
    "sample": Dataset(
        title="the sample warehouse",
        module="sample.benchmark",
        rule="sql_eval",
        splits=("test", "train", "val"),
        train="train",
        any_split=True,
    ),
    "jsonl": Dataset(
        title="your own questions, a JSON object a line",
        module="jsonl",
        rule="sql_eval",
        splits=("test", "train", "val"),
        train="train",
        any_split=True,
    ),
    "csv": Dataset(
        title="your own questions, a table row each",
        module="jsonl",
        rule="sql_eval",
        splits=("test", "train", "val"),
        train="train",
        any_split=True,
    ),
}


class _Module(Protocol):
    def load(self, data_dir: Path, split: str, run_dir: Path | None) -> list[dspy.Example]: ...
    def questions_file(self, data_dir: Path, split: str) -> Path: ...
    def describe(self, data_dir: Path, db: str) -> Descriptions: ...


def dataset(name: str) -> Dataset:
    """The entry of this name. Raises `UnknownName`.

    >>> dataset("bird").rule
    'bird'
    """
    if name not in DATASETS:
        raise UnknownName("dataset", name, DATASETS)
    return DATASETS[name]


def load(
    name: str, data_dir: str | Path, split: str = "", run_dir: str | Path | None = None
) -> list[dspy.Example]:
    """The examples of one split, in the benchmark's order; the default split if none is named.

    Databases that must be built (sql_eval) are built in `run_dir`, else in a folder that lasts as
    long as the process. Raises `UnknownName` for a dataset or split that is not there and
    `BadInput` for a download that is missing or half unpacked.
    """
    built = Path(run_dir) if run_dir is not None else None
    return _module(name).load(Path(data_dir), _split(name, split), built)


def describe(name: str, data_dir: str | Path, db: str) -> Descriptions:
    """What the benchmark says about a database's columns: `{table: {column: text}}`, maybe empty.

    The key "" of a table holds text about the table itself.
    """
    return _module(name).describe(Path(data_dir), db)


def fingerprint(name: str, data_dir: str | Path, split: str = "") -> str:
    """A short hash of the split's questions: revisions of a benchmark differ (BIRD has two)."""
    from lynx_dspy.datasets.hashing import file_hash

    return file_hash(_module(name).questions_file(Path(data_dir), _split(name, split)))


def _split(name: str, split: str) -> str:
    entry = dataset(name)
    if split and split not in entry.splits and not entry.any_split:
        raise UnknownName(f"split of {name}", split, entry.splits)
    return split or entry.default_split


def _module(name: str) -> _Module:
    return cast(_Module, import_module(f"{__name__}.{dataset(name).module}"))

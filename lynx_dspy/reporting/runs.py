"""Finished runs as the tables and figures see them: named, whole, and paired where needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lynx_dspy.config import FULL
from lynx_dspy.errors import BadInput
from lynx_dspy.optimize.records import UNAVAILABLE, Record, RunConfig, read_run

SCORED_BY_FILE = "scored"
"""`Record.finish` of `lynx score`: no program ran, so there are no attempts and no costs."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that came to its end. `label` is short and differs from the other runs' labels."""

    label: str
    config: RunConfig
    records: tuple[Record, ...]

    @property
    def backbone(self) -> str:
        """The language model's name; empty for `lynx score`."""
        return str((self.config["lm"] or {}).get("name", ""))

    @property
    def history_tokens(self) -> int:
        """The budget of the failure history that the run had."""
        return int((self.config["config"] or {}).get("history_tokens", FULL.history_tokens))

    @property
    def variant(self) -> str:
        """The paper's word for what was left out: full, or w/o a part.

        For runs of `lynx score` it says `predictions`.
        """
        if self.config["kind"] == "score":
            return "predictions"
        return f"w/o {', '.join(self.config['without'])}" if self.config["without"] else "full"


@dataclass(frozen=True, slots=True)
class Part:
    """Some records of a run (a difficulty, a dialect, all) beside all scored ones."""

    label: str
    records: tuple[Record, ...]
    whole: tuple[Record, ...]

    @property
    def scored(self) -> tuple[Record, ...]:
        """Records that could be judged."""
        return scored(self.records)

    @property
    def asked(self) -> tuple[Record, ...]:
        """Records of questions that a program answered: those that have costs."""
        return asked(self.records)


def open_runs(folders: Sequence[str | Path]) -> list[FinishedRun]:
    """The runs in these folders, in their order.

    Raises `BadInput` without a folder, for a folder without a run, and for a run that has not come
    to its end.
    """
    if not folders:
        raise BadInput("Got no run. Name one or more --out folders of lynx eval or lynx score.")
    paths = [Path(folder) for folder in folders]
    return [_open(path, label) for path, label in zip(paths, _labels(paths), strict=True)]


def _open(folder: Path, label: str) -> FinishedRun:
    run = read_run(folder)
    records = tuple(run.records())
    if run.report is None or len(records) != run.report.n:
        of = "" if run.report is None else f" of {run.report.n}"
        raise BadInput(
            f"The run in {folder} is not finished: it holds {len(records)}{of} answers. Give the "
            "same command again; it goes on where it stopped."
        )
    return FinishedRun(label, run.config, records)


def _labels(paths: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that differ from each other.

    >>> _labels([Path("a/full"), Path("b/full")])
    ['a/full', 'b/full']
    """
    whole = [path.resolve().parts for path in paths]
    if len(set(whole)) < len(whole):
        twice = next(path for path in paths if whole.count(path.resolve().parts) > 1)
        raise BadInput(f"Got the run {twice} twice. Name each run once.")
    depth = 1
    while len({parts[-depth:] for parts in whole}) < len(whole):
        depth += 1
    return ["/".join(parts[-depth:]) for parts in whole]


def scored(records: Sequence[Record]) -> tuple[Record, ...]:
    """The records that could be judged."""
    return tuple(record for record in records if record["scores"])


def asked(records: Sequence[Record]) -> tuple[Record, ...]:
    """The records of questions that a program answered."""
    return tuple(r for r in records if r["finish"] != SCORED_BY_FILE and r["status"] != UNAVAILABLE)


def runs_program(record: Record) -> bool:
    """True if the final program ran to its end, with or without rows."""
    return record["status"] in ("ok", "empty")


def is_right(record: Record) -> bool:
    """True if the final program's result equals a gold's."""
    return record["scores"].get("ex", 0.0) == 1.0


def same_questions(runs: Sequence[FinishedRun]) -> None:
    """Raise `BadInput` unless all runs are over the same ids of the same dataset."""
    first = runs[0]
    ids = {record["id"] for record in first.records}
    for run in runs[1:]:
        if run.config["dataset_hash"] != first.config["dataset_hash"]:
            raise BadInput(
                f"{run.label} and {first.label} are over different questions "
                f"({_of(run)} and {_of(first)}). A paired table needs runs of one dataset."
            )
        others = {record["id"] for record in run.records}
        if others != ids:
            raise BadInput(
                f"{run.label} lacks {len(ids - others)} questions of {first.label} and has "
                f"{len(others - ids)} others. A paired table needs runs over the same ids."
            )


def _of(run: FinishedRun) -> str:
    return f"{run.config['dataset']} {run.config['split']}".strip()


Splitter = Callable[[Sequence[Record]], list[tuple[str, tuple[Record, ...]]]]


def by_field(name: str, order: Sequence[str] = ()) -> Splitter:
    """Splits records by a text field: values in `order` first, then by alphabet."""
    rank = {value: position for position, value in enumerate(order)}

    def split(records: Sequence[Record]) -> list[tuple[str, tuple[Record, ...]]]:
        groups: dict[str, list[Record]] = {}
        for record in records:
            groups.setdefault(str(record.get(name) or "(none)"), []).append(record)
        values = sorted(groups, key=lambda value: (rank.get(value, len(rank)), value))
        return [(value, tuple(groups[value])) for value in values]

    return split

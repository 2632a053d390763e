"""The files of a run, written by `lynx eval` and `lynx score`, read by `lynx report`.

    OUT/run.json            RunConfig: what was run, written first and compared on resume
    OUT/predictions.jsonl   Record: a JSON object a question, appended as soon as it is finished
    OUT/report.json         Report.to_json(): scores with intervals, costs, counts
    OUT/report.md           the same for people
    OUT/errors.md           each failure with both programs and both results

`predictions.jsonl` is append-only, and the last line of an id counts: a question that was
`unavailable` is asked again by the next run and gets a further line. A last line without its line
break was torn by a crash and is no record. `read_run` gives all of it back, records as a stream.

Scores are fractions: ex, ex_strict, soft_f1, soft_f1_cells, and where `--ves` was given r_ves and
ves. A record without scores is unscored: its status is `unavailable` (an engine or service fault)
or `gold_broken` (the gold cannot be run, so nothing can be judged). Every other failure scores 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from lynx_dspy.errors import BadInput
from lynx_dspy.metrics.intervals import Interval
from lynx_dspy.optimize import journal

RUN, PREDICTIONS, REPORT = "run.json", "predictions.jsonl", "report.json"
REPORT_PAGE, ERRORS_PAGE = "report.md", "errors.md"

FORMAT = 1
"""Number of this format; a file of another number is refused."""

SCORES = ("ex", "ex_strict", "soft_f1", "soft_f1_cells", "r_ves", "ves")

UNAVAILABLE, GOLD_BROKEN = "unavailable", "gold_broken"
UNSCORED = (UNAVAILABLE, GOLD_BROKEN)
STATUSES = ("ok", "empty", "error", "timeout", "blocked", "no_program", *UNSCORED)


class RunConfig(TypedDict):
    """`run.json`. Two runs are comparable on the fields above `command`; the others inform."""

    format: int
    kind: str
    """eval or score."""
    dataset: str
    split: str
    dataset_hash: str
    """Of the split's questions: `datasets.fingerprint`, or of the examples passed in Python."""
    lm: dict[str, Any] | None
    """`lynx_dspy.lm.describe`; None for `lynx score`."""
    artifact: str | None
    """Identity of the compiled program (`manifest.identity`), if one ran."""
    config: dict[str, Any] | None
    """The LynxConfig in JSON values; None for `lynx score`."""
    without: list[str]
    """Parts that were left out (`ablations.ABLATIONS`)."""
    deadline: float | None
    """Seconds a question."""
    ves: int
    """Repeats of each timing; 0 without r_ves and ves."""
    predictions_hash: str | None
    """Of the scored file; None for `lynx eval`."""
    described: NotRequired[str | None]
    """Hash of the files that describe the databases beyond the benchmark; None without them."""
    version: str
    """Of this package."""
    code: str
    """Hash of this package's source files: two runs of one value ran the same code."""
    command: str
    started: str
    """ISO 8601, UTC."""
    machine: str
    """Python, platform and number of cores: timings depend on it."""


class StageUse(TypedDict):
    """What one stage cost in one round. `cut` counts replies that ended at the token limit.

    A repair belongs to the round of the program that it writes, as in the ledger.
    """

    stage: str
    round: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    billed_tokens: int
    seconds: float
    cut: int


class AttemptRecord(TypedDict):
    """One program of the closed loop, judged like the final one; `right` is None if unscored."""

    round: int
    source: str
    """formulate, sample, static, repair or verify."""
    code: str
    status: str
    error: str
    failure_class: str | None
    verified: bool | None
    """The verifier's verdict; None where none was asked."""
    doubt: NotRequired[float | None]
    """The weight of what the verifier held against it; `verify_threshold` made the verdict."""
    extracted: bool
    """Whether a program could be read out of the model's reply."""
    delta: str
    suggestion: str
    right: bool | None


class LinkingRecord(TypedDict):
    """Shares in [0, 1] against the names in the gold (`metrics.linking`)."""

    table_precision: float
    table_recall: float
    column_precision: float
    column_recall: float


class Clip(TypedDict):
    """A result cut for reading; `rows` are texts, `row_count` is the uncut number."""

    columns: list[str]
    rows: list[list[str]]
    row_count: int
    error: str


class Failure(TypedDict):
    """Why a scored record is wrong, for `errors.md`; it quotes the gold, so never train on it.

    `kind` is the status of a program that did not run, else what differs first: columns (their
    number), rows (their number) or values.
    """

    kind: str
    difference: str
    """`metrics.feedback`: names missed or invented and the first clause that differs."""
    gold_code: str
    gold: Clip
    predicted: Clip


class UsageTotals(TypedDict):
    """Tokens of a question. `billed_tokens` leaves out cache hits, `total_tokens` does not."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    billed_tokens: int


class Record(TypedDict):
    """A line of `predictions.jsonl`. `lynx score` leaves attempts, stages and the like empty."""

    id: str
    db: str
    dialect: str
    difficulty: str
    """The dataset's own word, or empty."""
    question: str
    code: str
    status: str
    """One of STATUSES."""
    error: str
    failure_class: str | None
    """syntax, schema or semantic for what does not run; None for a program that runs."""
    verified: bool | None
    """The verifier's verdict on `code`; None where none was asked."""
    finish: str
    """Why the loop ended: verified, unjudged (runs, no verdict), rejected (runs, the verifier says
    no), failed (does not run), deadline, fault (unavailable, or a question that was refused);
    `scored` for `lynx score`."""
    rounds: int
    """Repairs: the last attempt's round."""
    extracted: bool
    """Whether the answer holds a program."""
    attempts: list[AttemptRecord]
    right_by_round: list[bool]
    """Whether the answer would be right had the loop been stopped after that many repairs."""
    usage: UsageTotals
    stages: list[StageUse]
    """By stage and round, in order of first call."""
    seconds: float
    """Wall time of the program, without judging."""
    scores: dict[str, float]
    """Empty if unscored."""
    linking: LinkingRecord | None
    """Names in `code` against the gold's; None without a gold query that parses."""
    linked: LinkingRecord | None
    """Names among the links that the generator found before it wrote."""
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class Group:
    """The share of a run that has one difficulty, dialect or database."""

    n: int
    scored: int
    scores: dict[str, Interval]


@dataclass(frozen=True, slots=True)
class Cost:
    """Means a question over the questions that were answered: `tokens` and `seconds`."""

    calls: float = 0.0
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0
    total_tokens: float = 0.0
    billed_tokens: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Verifier:
    """The verifier as a detector of wrong programs, over all judged attempts of all questions.

    `precision`: of what it rejected, how much was wrong; `recall`: of what was wrong, how much it
    rejected. Both are None where they are not defined.
    """

    rejected_wrong: int = 0
    rejected_right: int = 0
    passed_right: int = 0
    passed_wrong: int = 0
    precision: float | None = None
    recall: float | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What a source of attempts did: wrong programs made right, right ones made wrong."""

    attempts: int = 0
    repaired: int = 0
    broken: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """`report.json`. Shares are over scored questions unless a field says otherwise.

    `executable` is the share of programs that run; `failures` counts wrong answers by the failure
    class of what does not run, else by `Failure.kind`; `extraction` is the share of the model's
    replies that held a program (None for `lynx score`); `by[axis][value]` splits by difficulty,
    dialect, db; `ex_by_round[r]` is EX if the loop had been stopped after r repairs; `any_right`
    the share of questions of which some attempt was right; `official[n]` counts right answers for
    the scores that the benchmark publishes over n tasks (`datasets.Official`).
    """

    dataset: str
    split: str
    dataset_hash: str
    n: int
    scored: int
    unscored: dict[str, int]
    statuses: dict[str, int]
    scores: dict[str, Interval]
    executable: float | None
    extraction: float | None
    tokens_per_question: float
    rounds_mean: float
    seconds_per_question: float
    cost: Cost
    by_stage: dict[str, Cost]
    by_round: dict[str, Cost]
    cut_replies: int
    finishes: dict[str, int]
    failures: dict[str, int]
    linking: dict[str, float]
    linked: dict[str, float]
    verifier: Verifier
    changes: dict[str, Change]
    ex_by_round: list[float]
    any_right: float | None
    by: dict[str, dict[str, Group]]
    lm: dict[str, Any] | None = None
    artifact: str | None = None
    config: dict[str, Any] | None = None
    without: list[str] = field(default_factory=list)
    version: str = ""
    official: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Report:
        """The report that `to_json` gave."""

        def intervals(scores: dict[str, dict[str, Any]]) -> dict[str, Interval]:
            return {name: Interval(**score) for name, score in scores.items()}

        def group(part: dict[str, Any]) -> Group:
            return Group(part["n"], part["scored"], intervals(part["scores"]))

        return cls(
            **value
            | {
                "scores": intervals(value["scores"]),
                "cost": Cost(**value["cost"]),
                "by_stage": {k: Cost(**v) for k, v in value["by_stage"].items()},
                "by_round": {k: Cost(**v) for k, v in value["by_round"].items()},
                "verifier": Verifier(**value["verifier"]),
                "changes": {k: Change(**v) for k, v in value["changes"].items()},
                "by": {
                    axis: {k: group(part) for k, part in parts.items()}
                    for axis, parts in value["by"].items()
                },
            }
        )


@dataclass(frozen=True, slots=True)
class Run:
    """A run's folder. `report` is None while the run has not come to its end."""

    folder: Path
    config: RunConfig
    report: Report | None

    def records(self) -> Iterator[Record]:
        """The last record of each question in the order of the file, one at a time in memory."""
        return cast(Iterator[Record], journal.lines(self.folder / PREDICTIONS))


def read_run(folder: str | Path) -> Run:
    """The run in `folder`. Raises `BadInput` if there is none, or one of another format."""
    folder = Path(folder)
    config = read_config(folder)
    report = folder / REPORT
    try:
        found = Report.from_json(_read_object(report)) if report.is_file() else None
    except (TypeError, KeyError) as error:
        raise BadInput(f"{report} is not a report of this version ({error}).") from None
    return Run(folder, config, found)


def read_config(folder: Path) -> RunConfig:
    """The configuration of the run in `folder`. Raises as `read_run`."""
    if not (folder / RUN).is_file():
        raise BadInput(f"No run in {folder}: it holds no {RUN}. Name an --out folder of lynx eval.")
    config = cast(RunConfig, _read_object(folder / RUN))
    if config.get("format") != FORMAT:
        raise BadInput(
            f"{folder / RUN} has format {config.get('format')}, this version reads {FORMAT}. "
            "Run it again into another folder."
        )
    return config


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not whole JSON ({error}). Run again.") from None
    if not isinstance(value, dict):
        raise BadInput(f"{path} holds no JSON object. Run again.")
    return value

"""Two runs on the same questions: what differs, and whether that can be chance."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lynx_dspy.errors import BadInput
from lynx_dspy.metrics.intervals import Interval, mcnemar, paired_bootstrap
from lynx_dspy.optimize.records import SCORES, Run, read_run


@dataclass(frozen=True, slots=True)
class Difference:
    """One score of both runs over the questions that both scored.

    `change` is second minus first with its 95 % interval (paired bootstrap); `p` is that of
    McNemar's exact test, for EX alone; `gained` and `lost` count questions that rose and fell.
    """

    first: float
    second: float
    change: Interval
    gained: int
    lost: int
    p: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """`n` questions were scored in both runs; the others are only counted."""

    n: int
    only_first: int
    only_second: int
    scores: dict[str, Difference]
    tokens: Interval
    """Change of tokens a question, second minus first."""


def compare_runs(first: str | Path | Run, second: str | Path | Run) -> Comparison:
    """Compare two runs by pairs of questions.

    Raises `BadInput` for runs on other questions, or that scored none in common.
    """
    runs = [one if isinstance(one, Run) else read_run(one) for one in (first, second)]
    hashes = [one.config["dataset_hash"] for one in runs]
    if hashes[0] != hashes[1]:
        raise BadInput(
            f"{runs[0].folder} and {runs[1].folder} ran on other questions (hashes {hashes[0]} "
            f"and {hashes[1]}); only runs on the same ones can be compared."
        )
    left, right = (_scored(one) for one in runs)
    shared = sorted(left.keys() & right.keys())
    if not shared:
        raise BadInput(f"{runs[0].folder} and {runs[1].folder} scored no question in common.")
    names = [n for n in SCORES if all(n in side[i][0] for side in (left, right) for i in shared)]
    return Comparison(
        n=len(shared),
        only_first=len(left) - len(shared),
        only_second=len(right) - len(shared),
        scores={
            name: _difference(
                name, [left[i][0][name] for i in shared], [right[i][0][name] for i in shared]
            )
            for name in names
        },
        tokens=paired_bootstrap([left[i][1] for i in shared], [right[i][1] for i in shared]),
    )


def _scored(run: Run) -> dict[str, tuple[dict[str, float], float]]:
    """Scores and tokens by id."""
    return {
        record["id"]: (record["scores"], float(record["usage"]["total_tokens"]))
        for record in run.records()
        if record["scores"]
    }


def _difference(name: str, first: list[float], second: list[float]) -> Difference:
    pairs = list(zip(first, second, strict=True))
    n = len(pairs)
    return Difference(
        first=sum(first) / n,
        second=sum(second) / n,
        change=paired_bootstrap(first, second),
        gained=sum(b > a for a, b in pairs),
        lost=sum(b < a for a, b in pairs),
        p=mcnemar([v == 1.0 for v in first], [v == 1.0 for v in second]) if name == "ex" else None,
    )

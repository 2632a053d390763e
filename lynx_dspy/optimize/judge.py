"""Judge: what a program scores on one question, by the rule of its dataset.

Golds are queries, run on the same database (for Spider on each database of the suite), or result
files. Any acceptable gold may match. A question that cannot be judged raises `Unscored`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lynx_dspy.datasets.golds import matches_gold_csv
from lynx_dspy.engines.base import Database
from lynx_dspy.metrics import RULES, execution_accuracy, r_ves, soft_f1, soft_f1_cells, ves
from lynx_dspy.optimize.records import GOLD_BROKEN, UNAVAILABLE
from lynx_dspy.values import Limits, Outcome, Status

if TYPE_CHECKING:
    import dspy
    import pandas as pd

LIMITS = Limits(
    timeout_seconds=30.0, max_rows=200_000, max_cell_chars=100_000, max_bytes=32_000_000
)
"""For golds and predictions alike; 30 s as in BIRD's script. A gold that is cut is not used."""

STRICT = "strict"
_CSV_STRICT = "spider2-fixed"

Scores = dict[str, float]


class Unscored(Exception):
    """The question cannot be judged: `status` is `unavailable` or `gold_broken`."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Judge(Protocol):
    """Judges programs of one question."""

    gold_code: str

    def outcome(self, code: str) -> Outcome:
        """What `code` gives on the question's database. Raises `Unscored` for an engine's fault."""

    def gold(self) -> Outcome:
        """A gold result to show."""

    def right(self, code: str) -> bool:
        """EX by the dataset's rule."""

    def scores(self, code: str, repeats: int = 0) -> Scores:
        """All scores; r_ves and ves only with `repeats` timings."""


def judge_for(
    example: dspy.Example,
    databases: Sequence[Database],
    known: Mapping[str, Outcome] | None = None,
) -> Judge:
    """The judge of `example`. `known` are outcomes that need not be run again.

    `databases` are the question's own and then the others of its suite; none is needed for result
    files. Raises `Unscored` if no gold can be used.
    """
    if example.gold_csv:
        return CsvJudge(example, databases, known)
    return SqlJudge(example, databases, known)


class SqlJudge:
    """Golds are queries."""

    def __init__(
        self,
        example: dspy.Example,
        databases: Sequence[Database],
        known: Mapping[str, Outcome] | None = None,
    ) -> None:
        if not databases:
            raise Unscored(UNAVAILABLE, example.reason or "the question has no database")
        self._example = example
        self._databases = databases
        self._runs = {(0, code): outcome for code, outcome in (known or {}).items()}
        self._prepared: dict[tuple[str, str], str] = {}
        self._golds = self._usable(example.gold_sql)
        self.gold_code = self._golds[0]

    def outcome(self, code: str) -> Outcome:
        return self._run(0, code)

    def gold(self) -> Outcome:
        return self._run(0, self.gold_code)

    def right(self, code: str) -> bool:
        return self._agrees(self._example.rule, code)

    def scores(self, code: str, repeats: int = 0) -> Scores:
        right = self.right(code)
        predicted = self.outcome(code)
        rows = predicted.rows if predicted.ran else None
        golds = [self._run(0, gold).rows for gold in self._golds]
        found = {
            "ex": float(right),
            "ex_strict": float(self._agrees(STRICT, code)),
            "soft_f1": max(soft_f1(gold, rows) for gold in golds),
            "soft_f1_cells": max(soft_f1_cells(gold, rows) for gold in golds),
        }
        return found | self._efficiency(code, right, repeats) if repeats else found

    def _usable(self, golds: Iterable[str]) -> list[str]:
        """The golds that run to their end, in order."""
        reasons = []
        usable = []
        for gold in golds:
            outcome = self._run(0, gold)
            if outcome.ran and not outcome.truncated:
                usable.append(gold)
            else:
                reasons.append(outcome.error or "its result is larger than can be compared")
        if not usable:
            reason = reasons[0] if reasons else "the dataset gives none"
            raise Unscored(GOLD_BROKEN, f"no gold can be used: {reason}")
        return usable

    def _agrees(self, rule_name: str, code: str) -> bool:
        """Whether some gold gives the same result as `code` on every database of the suite."""
        rule = RULES[rule_name]
        prepared = self._prepare(rule_name, code)

        def agrees(gold: str, place: int) -> bool:
            wanted = self._run(place, self._prepare(rule_name, gold))
            had = self._run(place, prepared)
            if not (wanted.ran and had.ran):
                return False
            if wanted is had:  # one text, run once: equal by any rule
                return True
            ordered = rule.ordered(gold)
            return execution_accuracy(wanted.rows, had.rows, rule_name, ordered=ordered)

        places = range(len(self._databases))
        return any(all(agrees(gold, place) for place in places) for gold in self._golds)

    def _prepare(self, rule_name: str, code: str) -> str:
        """The text that the rule runs; the golds' are needed for every attempt again."""
        key = (rule_name, code)
        if key not in self._prepared:
            self._prepared[key] = RULES[rule_name].prepare(code)
        return self._prepared[key]

    def _run(self, place: int, code: str) -> Outcome:
        key = (place, code)
        if key not in self._runs:
            self._runs[key] = self._databases[place].execute(code, LIMITS)
        outcome = self._runs[key]
        if outcome.status is Status.UNAVAILABLE:
            raise Unscored(UNAVAILABLE, outcome.error)
        return outcome

    def _efficiency(self, code: str, right: bool, repeats: int) -> Scores:
        if not right:
            return {"r_ves": 0.0, "ves": 0.0}
        gold_seconds, pred_seconds = [], []
        for _ in range(repeats):
            gold_seconds.append(self._databases[0].execute(self.gold_code, LIMITS).seconds)
            pred_seconds.append(self._databases[0].execute(code, LIMITS).seconds)
        return {
            "r_ves": r_ves(True, gold_seconds, pred_seconds),
            "ves": ves(True, gold_seconds, pred_seconds),
        }


class CsvJudge:
    """Golds are result files, compared as Spider 2.0 does; programs go through CSV too.

    The strict form keeps rows together and honours all condition lists (`spider2-fixed`).
    """

    def __init__(
        self,
        example: dspy.Example,
        databases: Sequence[Database] = (),
        known: Mapping[str, Outcome] | None = None,
    ) -> None:
        self._example = example
        self._databases = databases
        self._runs = dict(known or {})
        self._frames: dict[str, pd.DataFrame | None] = {}
        self._golds = _read_golds(example)
        self.gold_code = (*example.gold_sql, "")[0]

    def outcome(self, code: str) -> Outcome:
        if code not in self._runs:
            if not self._databases:
                raise Unscored(UNAVAILABLE, self._example.reason or "there is no database")
            self._runs[code] = self._databases[0].execute(code, LIMITS)
        outcome = self._runs[code]
        if outcome.status is Status.UNAVAILABLE:
            raise Unscored(UNAVAILABLE, outcome.error)
        return outcome

    def gold(self) -> Outcome:
        return self._golds[0]

    def right(self, code: str) -> bool:
        return matches_gold_csv(self._example, self._frame(code))

    def scores(self, code: str, repeats: int = 0) -> Scores:
        frame = self._frame(code)
        rows = outcome_of(frame).rows if frame is not None else None
        golds = [gold.rows for gold in self._golds]
        return {
            "ex": float(self.right(code)),
            "ex_strict": float(matches_gold_csv(self._example, frame, _CSV_STRICT)),
            "soft_f1": max(soft_f1(gold, rows) for gold in golds),
            "soft_f1_cells": max(soft_f1_cells(gold, rows) for gold in golds),
        }

    def _frame(self, code: str) -> pd.DataFrame | None:
        from lynx_dspy.metrics.frames import through_csv

        if code not in self._frames:
            outcome = self.outcome(code)
            ran = outcome.ran and bool(outcome.columns)
            self._frames[code] = through_csv(outcome.columns, outcome.rows) if ran else None
        return self._frames[code]


def read_result(path: Path) -> Outcome:
    """A predicted result file as the outcome of its program; one that is no CSV is an error."""
    from lynx_dspy.metrics.frames import read_csv

    try:
        frame = read_csv(path)
    except (ValueError, OSError) as error:
        return Outcome(Status.ERROR, error=f"{path.name} is not a CSV file: {error}")
    if frame is None:
        return Outcome(Status.ERROR, error=f"{path.name} is empty")
    return outcome_of(frame)


def outcome_of(frame: pd.DataFrame) -> Outcome:
    """A frame as the outcome of a query."""
    rows = tuple(frame.itertuples(index=False, name=None))
    return Outcome(Status.OK if rows else Status.EMPTY, tuple(map(str, frame.columns)), rows)


def _read_golds(example: dspy.Example) -> list[Outcome]:
    golds = [read_result(Path(path)) for path in example.gold_csv]
    usable = [gold for gold in golds if gold.ran]
    if len(usable) < len(golds):
        broken = next(gold for gold in golds if not gold.ran)
        raise Unscored(GOLD_BROKEN, f"no gold can be used: {broken.error}")
    return usable

"""What a cell of a table says about a part of a run; one entry a measure.

Shares and scores are over the questions that could be judged, with 95 % intervals: Wilson's for
proportions, the bootstrap for other means. Costs are means over the questions that a program
answered, cache hits counted in full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from lynx_dspy.metrics.intervals import Interval, bootstrap, wilson
from lynx_dspy.optimize.records import Record
from lynx_dspy.reporting.runs import Part, runs_program
from lynx_dspy.reporting.table import Cell, Column

FEW_ATTEMPTS = 3
"""The paper's bound in Table III."""

_PROPORTIONS = ("ex", "ex_strict")


@dataclass(frozen=True, slots=True)
class Measure:
    """A column and how its cell is found. None: there is nothing to measure."""

    column: Column
    of: Callable[[Part], Cell]


def share(truths: Iterable[bool]) -> Interval | None:
    """The proportion of true values with Wilson's interval; None of nothing."""
    found = list(truths)
    return wilson(sum(found), len(found)) if found else None


def score(records: Sequence[Record], name: str) -> Interval | None:
    """The mean of a score over the records that have it; None if none has."""
    values = [record["scores"][name] for record in records if name in record["scores"]]
    if name in _PROPORTIONS:
        return share(value == 1.0 for value in values)
    # Sorted, as in `optimize/tally.py`: the interval must not depend on the order of the answers.
    return bootstrap(sorted(values)) if values else None


def attempts_of(record: Record) -> int:
    """Programs tried in a row: the first and one a repair."""
    return record["rounds"] + 1


def within_few_attempts(part: Part) -> Interval | None:
    """Share of questions whose program runs after at most `FEW_ATTEMPTS` attempts."""
    judged = [record for record in part.asked if record["scores"]]
    return share(runs_program(r) and attempts_of(r) <= FEW_ATTEMPTS for r in judged)


def _score(name: str, title: str) -> Measure:
    return Measure(Column(title, name, "score"), lambda part: score(part.records, name))


def _mean(column: Column, value: Callable[[Record], float]) -> Measure:
    def of(part: Part) -> Cell:
        return fmean(map(value, part.asked)) if part.asked else None

    return Measure(column, of)


QUESTIONS = Measure(Column("Questions", "questions", "count"), lambda part: len(part.records))
EX = _score("ex", "EX %")
SOFT_F1 = _score("soft_f1", "Soft-F1 %")
SOFT_F1_CELLS = _score("soft_f1_cells", "Soft-F1 (cells) %")
R_VES = _score("r_ves", "R-VES %")
VES = _score("ves", "VES %")
EXECUTABLE = Measure(
    Column("Executable %", "executable", "score"),
    lambda part: share(runs_program(record) for record in part.scored),
)
FEW = Measure(
    Column(f"Runs within {FEW_ATTEMPTS} attempts %", "within_few", "score"), within_few_attempts
)
SHARE = Measure(
    Column("Share %", "share", "score"),
    lambda part: wilson(len(part.scored), len(part.whole)) if part.whole else None,
)
ROUNDS = _mean(Column("Rounds", "rounds", "mean"), lambda record: record["rounds"])
ATTEMPTS = _mean(Column("Attempts", "attempts", "mean"), attempts_of)
TOKENS = _mean(Column("Tokens", "tokens", "count"), lambda record: record["usage"]["total_tokens"])
SECONDS = _mean(Column("Seconds", "seconds", "seconds"), lambda record: record["seconds"])

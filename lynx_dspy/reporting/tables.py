"""The tables of the paper's evaluation (Tables I to IX) from finished runs.

Most tables are a way to split a run's records and a list of measures, so they are entries in a
table; the ablations (`paired.py`) and the agents (`agents.py`) are functions.

The exact layout of the paper's Tables VIII and IX is not known to us. Ours: `dialects` has a row a
run and dialect with EX, executability, rounds and tokens; `outcomes` splits the judged questions by
what became of them (right; wrong: runs, other result; failed: does not run) with the share of each,
its rounds, tokens and seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lynx_dspy.errors import UnknownName
from lynx_dspy.optimize.records import Record
from lynx_dspy.reporting import measures
from lynx_dspy.reporting.agents import agents
from lynx_dspy.reporting.measures import Measure
from lynx_dspy.reporting.paired import ablations
from lynx_dspy.reporting.runs import (
    FinishedRun,
    Part,
    Splitter,
    by_field,
    is_right,
    runs_program,
    scored,
)
from lynx_dspy.reporting.table import READING, RUN, Column, Table

LEVELS = ("simple", "easy", "moderate", "medium", "challenging", "hard", "extra")
"""Difficulties of BIRD, Spider and Spider 2.0, easier first."""

OUTCOMES = ("right", "wrong", "failed")

_NO_VES = "R-VES and VES need runs with --ves."


@dataclass(frozen=True, slots=True)
class Grouped:
    """A table with a row a run, or a row a run and part of it where `split` is given."""

    title: str
    measures: tuple[Measure, ...]
    axis: Column | None = None
    split: Splitter | None = None
    with_all: bool = True
    notes: tuple[str, ...] = (READING,)

    def __call__(self, name: str, runs: Sequence[FinishedRun]) -> Table:
        labels = (RUN, self.axis or Column("Backbone", "backbone"))
        rows = [
            (run.label, part.label, *(measure.of(part) for measure in self.measures))
            for run in runs
            for part in self.parts(run)
        ]
        columns = (*labels, *(measure.column for measure in self.measures))
        return Table(name, self.title, columns, tuple(rows), self.notes)

    def parts(self, run: FinishedRun) -> Iterator[Part]:
        """The parts of a run, then the whole run; only the whole, by its backbone, if unsplit."""
        whole = scored(run.records)
        if self.split is None:
            yield Part(run.backbone or run.variant, run.records, whole)
            return
        for label, records in self.split(run.records):
            yield Part(label, records, whole)
        if self.with_all:
            yield Part("all", run.records, whole)


def by_outcome(records: Sequence[Record]) -> list[tuple[str, tuple[Record, ...]]]:
    """The judged records as right, wrong and failed; each is there, also without records."""
    groups: dict[str, list[Record]] = {outcome: [] for outcome in OUTCOMES}
    for record in scored(records):
        groups[outcome_of(record)].append(record)
    return [(outcome, tuple(found)) for outcome, found in groups.items()]


def outcome_of(record: Record) -> str:
    """One of OUTCOMES, for a scored record."""
    if is_right(record):
        return "right"
    return "wrong" if runs_program(record) else "failed"


_BY_LEVEL = by_field("difficulty", LEVELS)
_LEVEL = Column("Level", "level")

TABLES: dict[str, Callable[[str, Sequence[FinishedRun]], Table]] = {
    "difficulty": Grouped(
        "EX and tokens by difficulty (paper, Table I)",
        (measures.QUESTIONS, measures.EX, measures.TOKENS),
        _LEVEL,
        _BY_LEVEL,
    ),
    "backbones": Grouped(
        "EX, rounds and tokens by backbone (paper, Table II)",
        (measures.QUESTIONS, measures.EX, measures.ROUNDS, measures.TOKENS),
    ),
    "executability": Grouped(
        "Executability and attempts (paper, Table III)",
        (measures.QUESTIONS, measures.EXECUTABLE, measures.ATTEMPTS, measures.FEW),
    ),
    "levels": Grouped(
        "EX, VES and Soft-F1 by level (paper, Tables IV and V)",
        (
            measures.QUESTIONS,
            measures.EX,
            measures.R_VES,
            measures.VES,
            measures.SOFT_F1,
            measures.SOFT_F1_CELLS,
        ),
        _LEVEL,
        _BY_LEVEL,
        notes=(READING, _NO_VES),
    ),
    "ablations": ablations,
    "agents": agents,
    "dialects": Grouped(
        "EX and executability by dialect (paper, Table VIII)",
        (
            measures.QUESTIONS,
            measures.EX,
            measures.EXECUTABLE,
            measures.ROUNDS,
            measures.TOKENS,
        ),
        Column("Dialect", "dialect"),
        by_field("dialect"),
    ),
    "outcomes": Grouped(
        "Costs by outcome (paper, Table IX)",
        (
            measures.QUESTIONS,
            measures.SHARE,
            measures.ROUNDS,
            measures.TOKENS,
            measures.SECONDS,
        ),
        Column("Outcome", "outcome"),
        by_outcome,
        with_all=False,
    ),
}
"""Values of `--table`."""


def make_table(name: str, runs: Sequence[FinishedRun]) -> Table:
    """The named table. Raises `UnknownName`, and `BadInput` for runs that it cannot compare."""
    if name not in TABLES:
        raise UnknownName("table", name, TABLES)
    return TABLES[name](name, runs)

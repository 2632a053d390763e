"""Table VI: runs without a part against the full run, by pairs of answers to the same questions."""

from __future__ import annotations

from collections.abc import Sequence

from lynx_dspy.errors import BadInput
from lynx_dspy.metrics.intervals import mcnemar, paired_bootstrap
from lynx_dspy.reporting import measures
from lynx_dspy.reporting.runs import FinishedRun, Part, is_right, same_questions, scored
from lynx_dspy.reporting.table import READING, RUN, Cell, Column, Table

_COSTS = (measures.EXECUTABLE, measures.ROUNDS, measures.TOKENS)


def ablations(name: str, runs: Sequence[FinishedRun]) -> Table:
    """Table VI: what each part is worth, by pairs of answers to the same questions.

    The loss is (EX_full - EX) / EX_full over the questions that both runs were judged on; p is of
    McNemar's exact test. Raises `BadInput` unless exactly one run leaves nothing out, and all are
    over the same questions with the same backbone.
    """
    full = _full_run(runs)
    ordered = [full, *(run for run in runs if run is not full)]
    same_questions(ordered)
    _same_backbone(ordered)
    columns = (
        Column("Variant", "variant"),
        RUN,
        measures.EX.column,
        Column("Difference %", "difference", "score"),
        Column("Relative loss %", "relative_loss", "percent"),
        Column("p", "p", "p"),
        *(measure.column for measure in _COSTS),
    )
    notes = (READING, "Differences are against the full run by pairs; p is not corrected.")
    title = "EX without a part (paper, Table VI)"
    return Table(name, title, columns, tuple(_ablation(run, full) for run in ordered), notes)


def _full_run(runs: Sequence[FinishedRun]) -> FinishedRun:
    full = [run for run in runs if run.variant == "full"]
    if len(full) != 1:
        raise BadInput(
            f"Got {len(full)} full runs among {len(runs)}; the table of ablations compares with "
            "exactly one run of lynx eval that has no --without."
        )
    return full[0]


def _same_backbone(runs: Sequence[FinishedRun]) -> None:
    full = runs[0]
    other = next((run for run in runs if run.backbone != full.backbone), None)
    if other:
        raise BadInput(
            f"{other.label} ran with {other.backbone} and {full.label} with {full.backbone}; "
            "ablations are of one backbone."
        )


def _ablation(run: FinishedRun, full: FinishedRun) -> tuple[Cell, ...]:
    part = Part(run.variant, run.records, scored(run.records))
    compared: tuple[Cell, ...] = (None, None, None)
    if run is not full:
        compared = _compared(full, run)
    return (run.variant, run.label, measures.EX.of(part), *compared, *(m.of(part) for m in _COSTS))


def _compared(full: FinishedRun, run: FinishedRun) -> tuple[Cell, Cell, Cell]:
    before = {record["id"]: is_right(record) for record in scored(full.records)}
    pairs = [(before[r["id"]], is_right(r)) for r in scored(run.records) if r["id"] in before]
    if not pairs:
        return None, None, None
    first, second = (list(side) for side in zip(*pairs, strict=True))
    loss = (sum(first) - sum(second)) / sum(first) if any(first) else None
    return paired_bootstrap(first, second), loss, mcnemar(first, second)

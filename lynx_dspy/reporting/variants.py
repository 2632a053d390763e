"""Variants side by side: programs that a store knows, by dataset, split and backbone.

Only answers to the same questions are compared: a group is what has one hash. Within it each
backbone's variants are set against its own baseline by pairs of questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.metrics.intervals import Interval, bootstrap, mcnemar, paired_bootstrap, wilson
from lynx_dspy.reporting.chart import Chart, Series
from lynx_dspy.reporting.entries import UNCOMPILED
from lynx_dspy.reporting.figures import MAX_RUNS
from lynx_dspy.reporting.table import READING, Cell, Column, Table

COLUMNS = (
    Column("Questions", "questions_of"),
    Column("Backbone", "backbone"),
    Column("Variant", "variant"),
    Column("EX %", "ex", "score"),
    Column("Soft-F1 %", "soft_f1", "score"),
    Column("Difference %", "difference", "score"),
    Column("p", "p", "p"),
    Column("Tokens", "tokens", "count"),
    Column("Calls", "calls", "mean"),
    Column("Seconds", "seconds", "seconds"),
    Column("Front", "front"),
    Column("Run", "run"),
)
_NOTES = (
    READING,
    "Differences are against the same backbone's {baseline}, by pairs of questions; p is of "
    "McNemar's exact test and not corrected.",
    "Front: no other variant here has a higher EX for as few tokens.",
)


@dataclass(frozen=True, slots=True)
class Tracked:
    """A program's answers to one split. `ex` is by question; costs are means a question."""

    run_id: str
    dataset: str
    split: str
    hash: str
    backbone: str
    variant: str
    seed: int
    artifact: str
    ex: Mapping[str, float]
    soft_f1: Sequence[float]
    tokens: float | None = None
    calls: float | None = None
    seconds: float | None = None

    @classmethod
    def by_split(
        cls,
        run_id: str,
        tags: Mapping[str, str],
        metrics: Mapping[str, float],
        rows: Iterable[Mapping[str, Any]],
    ) -> Iterator[Self]:
        """One a split of a run's table of questions (`entries.COLUMNS`)."""
        splits: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            if row["ex"] is not None:
                splits.setdefault(row["split"], []).append(row)
        for split, found in splits.items():
            yield cls(
                run_id=run_id,
                dataset=tags["lynx.dataset"],
                split=split,
                hash=tags.get(f"lynx.hash.{split}", ""),
                backbone=tags["lynx.backbone"],
                variant=tags["lynx.variant"],
                seed=int(tags["lynx.seed"]),
                artifact=tags["lynx.artifact"],
                ex={row["id"]: row["ex"] for row in found},
                soft_f1=[row["soft_f1"] for row in found if row["soft_f1"] is not None],
                tokens=metrics.get(f"{split}/tokens_per_question"),
                calls=metrics.get(f"{split}/calls_per_question"),
                seconds=metrics.get(f"{split}/seconds_per_question"),
            )

    @property
    def group(self) -> tuple[str, str]:
        """What must be equal for a comparison: a compile may call a split otherwise."""
        return self.dataset, self.hash or self.split

    @property
    def program(self) -> tuple[str, ...]:
        """What makes two runs of a group the same."""
        return (*self.group, self.backbone, self.variant, self.artifact, str(self.seed))

    @property
    def score(self) -> Interval:
        """EX with Wilson's interval."""
        return wilson(sum(value == 1.0 for value in self.ex.values()), len(self.ex))


def chosen(
    found: Iterable[Tracked], *, backbone: str = "", dataset: str = "", split: str = ""
) -> list[Tracked]:
    """The newest of each program (`found` is newest first) that the filters let through, sorted.

    Raises `UnknownName` for a filter that nothing answers to, and `BadInput` without any variant.
    """
    newest: dict[tuple[str, ...], Tracked] = {}
    for one in found:
        known = newest.setdefault(one.program, one)
        if one.soft_f1 and not known.soft_f1:  # a run tells more than the baseline of a compile
            newest[one.program] = one
    kept = list(newest.values())
    for name, wanted in (("dataset", dataset), ("split", split), ("backbone", backbone)):
        names = sorted({getattr(one, name) for one in kept})
        if wanted and wanted not in names:
            raise UnknownName(f"tracked {name}", wanted, names)
        kept = [one for one in kept if not wanted or getattr(one, name) == wanted]
    if not kept:
        raise BadInput("The store holds no answers to compare. Track a run with lynx track.")
    return sorted(kept, key=lambda one: (one.group, one.backbone, -one.score.value, one.variant))


def table_of(found: Sequence[Tracked], baseline: str = "") -> Table:
    """Variants by backbones with intervals, paired tests and costs.

    `baseline` is a variant, by default the program that is not compiled. Raises `UnknownName` if
    no backbone has it.
    """
    known = list(dict.fromkeys(one.variant for one in found))
    if baseline and baseline not in known:
        raise UnknownName("variant for --baseline", baseline, known)
    against = baseline or UNCOMPILED
    bases = {(*one.group, one.backbone): one for one in found if one.variant == against}
    front = {id(one) for group in groups(found) for one in pareto(group)}
    labels = {id(one): label for group in groups(found) for one, label in _labelled(group)}
    rows = [
        _row(one, labels[id(one)], bases.get((*one.group, one.backbone)), id(one) in front)
        for one in found
    ]
    notes = tuple(note.format(baseline=against) for note in _NOTES)
    return Table("compare", "Variants by backbone", COLUMNS, tuple(rows), notes)


def chart_of(found: Sequence[Tracked]) -> Chart:
    """EX against tokens a question, with the Pareto front; a colour a backbone.

    Raises `BadInput` for variants that answered different questions, or whose costs are unknown.
    """
    kinds = list(dict.fromkeys(one.group for one in found))
    if len(kinds) > 1:
        names = ", ".join(dict.fromkeys(f"{one.dataset} {one.split}" for one in found))
        raise BadInput(
            f"A figure is of one set of questions; choose --dataset and --split: {names}."
        )
    costed = [one for one in found if one.tokens is not None]
    backbones = list(dict.fromkeys(one.backbone for one in costed))
    if not costed or len(backbones) > MAX_RUNS:
        raise BadInput(
            f"Got {len(costed)} variants with known tokens of {len(backbones)} backbones; a figure "
            f"shows at least one, and at most {MAX_RUNS} backbones."
        )
    labels = {id(one): label for one, label in _labelled(costed)}
    series = tuple(
        Series(
            backbone,
            tuple(one.score for one in costed if one.backbone == backbone),
            position,
            at=tuple(one.tokens or 0.0 for one in costed if one.backbone == backbone),
            names=tuple(labels[id(one)] for one in costed if one.backbone == backbone),
        )
        for position, backbone in enumerate(backbones)
    )
    front = tuple((one.tokens or 0.0, one.score.value) for one in pareto(costed))
    n = max(len(one.ex) for one in costed)
    title = f"EX and cost on {found[0].dataset} {found[0].split} (n = {n:,})"
    return Chart(
        "compare", title, "Tokens a question", "EX (%)", (), series, kind="scatter", front=front
    )


def groups(found: Iterable[Tracked]) -> list[list[Tracked]]:
    """The variants by the questions that they answered."""
    parts: dict[tuple[str, str], list[Tracked]] = {}
    for one in found:
        parts.setdefault(one.group, []).append(one)
    return list(parts.values())


def pareto(found: Iterable[Tracked]) -> list[Tracked]:
    """Those that no other beats in EX for as few tokens, cheapest first; unknown costs are out."""
    costed = [one for one in found if one.tokens is not None]
    front: list[Tracked] = []
    for one in sorted(costed, key=lambda v: (v.tokens or 0.0, -v.score.value)):
        if not front or one.score.value > front[-1].score.value:
            front.append(one)
    return front


def _labelled(group: Sequence[Tracked]) -> Iterator[tuple[Tracked, str]]:
    """Variants with names that differ within a backbone: seed or hash only where needed."""
    for one in group:
        twins = [v for v in group if (v.backbone, v.variant) == (one.backbone, one.variant)]
        parts = [one.variant]
        if len({v.seed for v in twins}) > 1:
            parts.append(f"seed {one.seed}")
        if len({v.artifact for v in twins}) > 1 and one.artifact:
            parts.append(f"@{one.artifact.rpartition('@')[2]}")
        yield one, " ".join(parts)


def _row(one: Tracked, label: str, base: Tracked | None, on_front: bool) -> tuple[Cell, ...]:
    questions = f"{one.dataset} {one.split}"
    soft_f1 = bootstrap(sorted(one.soft_f1)) if one.soft_f1 else None
    compared = _compared(base, one) if base is not None and base is not one else (None, None)
    costs = (one.tokens, one.calls, one.seconds)
    marks = ("yes" if on_front else "", one.run_id)
    return (questions, one.backbone, label, one.score, soft_f1, *compared, *costs, *marks)


def _compared(base: Tracked, one: Tracked) -> tuple[Cell, Cell]:
    shared = sorted(base.ex.keys() & one.ex.keys())
    if not shared:
        return None, None
    before, after = ([side.ex[id_] == 1.0 for id_ in shared] for side in (base, one))
    return paired_bootstrap(before, after), mcnemar(before, after)

"""What a compile came to: the program, the manifest of its artifact, rows and a page to read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import dspy

from lynx_dspy.lm import describe
from lynx_dspy.metrics.intervals import Interval, bootstrap, wilson
from lynx_dspy.optimize.budget import Budget, Spent
from lynx_dspy.optimize.fronts import front
from lynx_dspy.optimize.journal import write_whole
from lynx_dspy.optimize.manifest import Backbone, Manifest, RecipeRun, Scores, SplitRecord, Used
from lynx_dspy.optimize.questions import Questions
from lynx_dspy.optimize.recipes import Recipe, flat
from lynx_dspy.optimize.records import Record
from lynx_dspy.optimize.search import Candidate, Standing, Verdict
from lynx_dspy.optimize.splitting import Splits
from lynx_dspy.program import Lynx

PAGE, SEARCH, TIMES = "compile.md", "search.json", "times.json"
FIGURE = "search"
"""Drawn as PNG and SVG: the candidates, EX against tokens."""

TIMED = ("r_ves", "ves")
"""Scores that are made of timings: they stand beside the artifact, which is the same each time."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Records of both programs on one split."""

    baseline: Sequence[Record]
    compiled: Sequence[Record]


@dataclass(frozen=True, slots=True)
class Job:
    """How a compile was called, and what its search did."""

    name: str
    recipes: Sequence[tuple[str, Recipe]]
    lm: dspy.LM
    splits: Splits
    seed: int
    token_weight: float
    budget: Budget
    spent: Spent
    budget_spent: bool
    standings: Sequence[Standing]
    writer: dspy.LM | None = None
    """The model that wrote instructions, where it was another than `lm`."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """The end of a compile.

    `program` is what is shipped: the winner if it was `kept`, else the program as it was.
    `verdict` says why; `scores` are by split, then baseline and compiled; `spent` leaves out
    nothing, the test split included.
    """

    program: Lynx
    winner: str
    verdict: Verdict
    scores: Mapping[str, Mapping[str, Scores]]
    spent: Spent
    budget_spent: bool
    standings: Sequence[Standing]
    left_out: Sequence[str]
    manifest: Manifest
    rows: Sequence[Mapping[str, Any]] = field(repr=False)
    times: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """By split, program (baseline, compiled) and question: seconds, and VES where it was asked."""

    @property
    def kept(self) -> bool:
        """Whether a compiled program takes the place of the one that was given."""
        return self.verdict.kept


def compiled(
    job: Job,
    *,
    best: Candidate,
    shipped: Candidate,
    verdict: Verdict,
    measured: Mapping[str, Measured],
) -> Compiled:
    """All that is recorded."""
    scores = {
        split: {"baseline": scores_of(both.baseline), "compiled": scores_of(both.compiled)}
        for split, both in measured.items()
    }
    manifest = Manifest(
        variant=job.name,
        backbone=Backbone.described(describe(job.lm)),
        recipe=_recipe_run(job, best, verdict),
        metric={"rule": job.splits.val.examples[0].rule, "score": "ex", "tie_break": "soft_f1"},
        splits=_split_records(job.splits),
        scores=scores,
        notes=_notes(job, best, verdict),
    )
    return Compiled(
        program=shipped.program,
        winner=best.name,
        verdict=verdict,
        scores=scores,
        spent=job.spent,
        budget_spent=job.budget_spent,
        standings=tuple(job.standings),
        left_out=job.splits.left_out,
        manifest=manifest,
        rows=[row for split, both in measured.items() for row in _rows(split, both)],
        times={
            split: {"baseline": _times(both.baseline), "compiled": _times(both.compiled)}
            for split, both in measured.items()
        },
    )


def scores_of(records: Sequence[Record]) -> Scores:
    """Scores with intervals over the questions that could be judged."""
    scored = [r for r in records if r["scores"]]
    if not scored:
        return Scores()
    right = sum(r["scores"]["ex"] == 1.0 for r in scored)
    return Scores(
        ex=wilson(right, len(scored)),
        soft_f1=bootstrap([r["scores"]["soft_f1"] for r in scored]),
        tokens_per_question=round(fmean(r["usage"]["total_tokens"] for r in scored), 1),
    )


def write(made: Compiled, folder: Path) -> None:
    """Write beside the runs: a page, the search with its figure where it has one, the times."""
    from lynx_dspy.reporting.plots import image
    from lynx_dspy.reporting.searches import chart_of_search

    write_whole(folder / PAGE, page(made))
    on_front = {id(one) for one in front(made.standings)}
    standings = [_standing(one, id(one) in on_front) for one in made.standings]
    write_whole(folder / SEARCH, json.dumps(standings, indent=1))
    write_whole(folder / TIMES, json.dumps(made.times))
    chart = chart_of_search(standings, made.manifest.variant)
    if chart is not None:
        for form in ("png", "svg"):
            (folder / f"{FIGURE}.{form}").write_bytes(image(chart, form))


def _standing(one: Standing, on_front: bool) -> dict[str, Any]:
    scores = {"ex": one.worth.ex, "soft_f1": one.worth.soft_f1, "tokens": -one.worth.thrift}
    return {
        "name": one.candidate.name,
        "program": one.candidate.hash,
        "asked": one.asked,
        "scored": one.worth.n,
        "front": on_front,
        "scores": scores if one.worth.n else {},
        "about": dict(one.candidate.about),
    }


def _times(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """What differs between equal compiles: seconds, and the scores that are made of them."""
    return {
        r["id"]: {
            "seconds": r["seconds"],
            **{name: r["scores"][name] for name in TIMED if name in r["scores"]},
        }
        for r in records
        if r["scores"]
    }


def page(made: Compiled) -> str:
    """A compile for people, in Markdown."""
    manifest = made.manifest
    lines = [
        f"# {manifest.variant} for {manifest.backbone.name}",
        "",
        f"{'Kept' if made.kept else 'Not kept'}: {made.winner}. {made.verdict.reason[:1].upper()}"
        f"{made.verdict.reason[1:]}.",
        "",
        "| split | program | questions | EX | Soft-F1 | tokens |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for split, both in made.scores.items():
        lines += [_score_row(split, name, scores) for name, scores in both.items()]
    lines += [
        "",
        *_facts(made),
        "",
        "| candidate | questions | EX | tokens | front | made of |",
        "|---|---:|---:|---:|---|---|",
    ]
    on_front = {id(one) for one in front(made.standings)}
    for one in sorted(made.standings, key=lambda s: (s.asked, s.worth), reverse=True):
        lines.append(_candidate_row(one, id(one) in on_front))
    lines += ["", "Front: no other candidate that was asked as much is as good and costs less."]
    return "\n".join(lines) + "\n"


def _candidate_row(one: Standing, on_front: bool) -> str:
    about = ", ".join(f"{k} {_short(v)}" for k, v in one.candidate.about.items())
    scores = f"{one.asked} | {one.worth.ex:.1%} | {-one.worth.thrift:,.0f}"
    return f"| {one.candidate.name} | {scores} | {'yes' if on_front else ''} | {about} |"


def _facts(made: Compiled) -> list[str]:
    spent, change = made.spent, made.verdict.change
    facts = [
        f"Spent: {spent.calls:,} calls, {spent.tokens:,} tokens, {spent.seconds / 60:.1f} minutes"
        f"{'; the budget ended the search' if made.budget_spent else ''}.",
    ]
    if change is not None:
        facts.append(
            f"EX of the best less that of the baseline: {change.value * 100:+.1f} points "
            f"[{change.low * 100:+.1f}, {change.high * 100:+.1f}], "
            f"McNemar p = {made.verdict.p:.3f}."
        )
    if made.left_out:
        facts.append(f"Left out as too like a later split: {', '.join(made.left_out)}.")
    return facts


def _score_row(split: str, name: str, scores: Scores) -> str:
    n = scores.ex.n if scores.ex else 0
    tokens = f"{scores.tokens_per_question:,.0f}" if scores.tokens_per_question else "-"
    ex, soft_f1 = _interval(scores.ex), _interval(scores.soft_f1)
    return f"| {split} | {name} | {n} | {ex} | {soft_f1} | {tokens} |"


def _interval(found: Interval | None) -> str:
    if found is None:
        return "-"
    return f"{found.value * 100:.1f} [{found.low * 100:.1f}, {found.high * 100:.1f}]"


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{k}={v}" for k, v in value.items())
    return str(value)


def _recipe_run(job: Job, best: Candidate, verdict: Verdict) -> RecipeRun:
    budget = job.budget
    return RecipeRun(
        name=job.name,
        params={
            **{name: _plain(flat(recipe)) for name, recipe in job.recipes},
            "objective": {"token_weight": job.token_weight},
            **({"reflection_lm": describe(job.writer)} if job.writer is not None else {}),
            "winner": {"name": best.name, "kept": verdict.kept, **best.about},
        },
        seed=job.seed,
        budget={
            "lm_calls": budget.lm_calls,
            "tokens": budget.tokens,
            "minutes": budget.minutes,
        },
        used=Used(
            lm_calls=job.spent.calls,
            tokens=job.spent.tokens,
            seconds=round(job.spent.seconds, 1),
        ),
    )


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def _split_records(splits: Splits) -> dict[str, SplitRecord]:
    parts: dict[str, Questions | None] = {
        "train": splits.train,
        "val": splits.val,
        "test": splits.test,
    }
    return {
        name: SplitRecord(hash=part.hash, n=len(part.examples), dataset=part.dataset or "examples")
        for name, part in parts.items()
        if part is not None
    }


def _notes(job: Job, best: Candidate, verdict: Verdict) -> str:
    shipped = f"{best.name} is shipped" if verdict.kept else "the un-compiled program is shipped"
    n = len(job.splits.left_out)
    left_out = f" {n} questions left out as leaks." if n else ""
    ended = " The budget ended the search." if job.budget_spent else ""
    return f"On val {verdict.reason}: {shipped}.{ended}{left_out}"


def _rows(split: str, both: Measured) -> list[dict[str, Any]]:
    """A row a question, without golds and times: equal for equal compiles."""
    before = {r["id"]: r["scores"].get("ex") for r in both.baseline}
    return [
        {
            "split": split,
            "id": r["id"],
            "db": r["db"],
            "question": r["question"],
            "code": r["code"],
            "status": r["status"],
            "scores": {k: v for k, v in r["scores"].items() if k not in TIMED},
            "baseline_ex": before.get(r["id"]),
            "tokens": r["usage"]["total_tokens"],
            "calls": r["usage"]["calls"],
        }
        for r in both.compiled
    ]

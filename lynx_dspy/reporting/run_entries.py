"""Entries of finished runs of `lynx eval` and `lynx score`, and of studies of `lynx ablate`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lynx_dspy.errors import BadInput
from lynx_dspy.optimize.records import PREDICTIONS, REPORT, REPORT_PAGE, RUN, Report, read_run
from lynx_dspy.reporting.entries import (
    QUESTIONS,
    UNCOMPILED,
    Entry,
    Input,
    Point,
    Question,
    experiment_of,
    flat,
    interval_points,
    measured,
    table_of,
    tags_of,
)
from lynx_dspy.reporting.figures import make_chart
from lynx_dspy.reporting.runs import FinishedRun, open_runs

_FIGURES = ("stages", "attempts", "dialects")


def entry_of_run(folder: str | Path) -> Entry:
    """The entry of a finished `lynx eval` or `lynx score`. Raises `BadInput`."""
    run, report = open_runs([folder])[0], read_run(folder).report
    assert report is not None  # `open_runs` refuses a run without one
    config, place = run.config, Path(folder)
    split = config["split"] or "all"
    table = table_of(_asked(run, split))
    kept = {name: place / name for name in (RUN, PREDICTIONS, REPORT, REPORT_PAGE)}
    return Entry(
        experiment=experiment_of(config["dataset"]),
        name=f"{variant_of(run)} on {split}",
        tags=tags_of(
            kind="run",
            backbone=run.backbone or "none",
            variant=variant_of(run),
            dataset=config["dataset"],
            recipe=_program_of(run) if config["artifact"] else "none",
            artifact=config["artifact"] or "",
            hashes={split: config["dataset_hash"]},
            table=table,
        ),
        params=flat(
            {
                "lm": config["lm"] or {},
                "without": config["without"],
                "deadline": config["deadline"],
                "version": config["version"],
                "code": config["code"],
                "config": config["config"] or {},
            }
        ),
        metrics=tuple(_report_points(split, report)),
        inputs=(Input(config["dataset"], config["dataset_hash"], split, report.n),),
        files={
            QUESTIONS: table,
            **{name: path for name, path in kept.items() if path.is_file()},
            **_figures(run),
        },
    )


def entry_of_study(folder: str | Path) -> Entry:
    """The entry of a `lynx ablate`: a child a variant. Raises `BadInput`."""
    place = Path(folder)
    children = tuple(entry_of_run(path.parent) for path in sorted(place.glob(f"*/{RUN}")))
    if not children:
        raise BadInput(f"{folder} holds no runs. Name an --out folder of lynx ablate.")
    first = children[0]
    shared = {n: first.tags[n] for n in ("lynx.backbone", "lynx.dataset")}
    return Entry(
        experiment=first.experiment,
        name="ablations",
        tags={**shared, "lynx.kind": "study", "lynx.variant": "ablations"},
        metrics=(Point("variants", len(children)),),
        inputs=first.inputs,
        files={path.name: path for path in sorted(place.glob("ablations.*"))},
        children=children,
    )


def variant_of(run: FinishedRun) -> str:
    """How a run's program is called: its artifact, and what was left out.

    `un-compiled`, `demos`, `demos w/o verification`, `predictions`.
    """
    if run.variant in ("full", "predictions"):
        return _program_of(run) if run.variant == "full" else run.variant
    return f"{_program_of(run)} {run.variant}"


def _program_of(run: FinishedRun) -> str:
    return (run.config["artifact"] or UNCOMPILED).partition("@")[0]


def _report_points(split: str, report: Report) -> Iterator[Point]:
    for name, score in report.scores.items():
        yield from interval_points(f"{split}/{name}", score)
    single = {
        "questions": report.n,
        "scored": report.scored,
        "executable": report.executable,
        "tokens_per_question": report.tokens_per_question,
        "calls_per_question": report.cost.calls,
        "seconds_per_question": report.seconds_per_question,
        "rounds_per_question": report.rounds_mean,
    }
    for name, value in single.items():
        if value is not None:
            yield Point(f"{split}/{name}", value)
    for round_, ex in enumerate(report.ex_by_round):
        yield Point(f"{split}/ex_by_round", ex, round_)


def _asked(run: FinishedRun, split: str) -> Iterator[Question]:
    for record in run.records:
        yield measured({**record, "split": split}) | {"seconds": record["seconds"]}


def _figures(run: FinishedRun) -> dict[str, bytes]:
    """The figures of a single run that its records can show."""
    from lynx_dspy.reporting.plots import image

    found: dict[str, bytes] = {}
    for name in _FIGURES:
        try:
            found[f"figures/{name}.png"] = image(make_chart(name, [run]), "png")
        except BadInput:  # a run of `lynx score` has no attempts
            continue
    return found

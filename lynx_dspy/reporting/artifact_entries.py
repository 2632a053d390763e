"""The entry of a compiled artifact: what it was made of, what it scored, what was tried."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from lynx_dspy.metrics.intervals import bootstrap
from lynx_dspy.optimize import plainjson
from lynx_dspy.optimize.artifact import EVAL, PROMPTS, read_manifest
from lynx_dspy.optimize.folders import located
from lynx_dspy.optimize.manifest import Manifest, Scores, identity
from lynx_dspy.optimize.outcome import FIGURE, PAGE, SEARCH, TIMED, TIMES
from lynx_dspy.reporting.chart import Chart, Series
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
from lynx_dspy.reporting.searches import chart_of_search


def entry_of_artifact(folder: str | Path) -> Entry:
    """The entry of a compiled artifact; its baseline and its candidates are children.

    What lies beside it from its compile is read too. Raises `ArtifactError`.
    """
    place = located(Path(folder))
    manifest = read_manifest(place)
    lines = (place / EVAL).read_text("utf-8").splitlines() if (place / EVAL).is_file() else []
    rows = [json.loads(line) for line in lines]
    standings = _standings(Path(folder))
    times = _times(Path(folder))
    table = table_of(
        measured(row) | _taken(times, row["split"], "compiled", row["id"]) for row in rows
    )
    recipe = manifest.recipe
    points = [
        *_artifact_points(manifest, rows),
        *_timed_points(times),
        *_best_so_far(standings),
    ]
    return Entry(
        experiment=experiment_of(_dataset_of(manifest)),
        name=f"{manifest.variant} seed {recipe.seed}",
        tags=_artifact_tags(manifest, "compile", manifest.variant, identity(manifest), table),
        params=_artifact_params(manifest),
        metrics=tuple(points),
        inputs=tuple(Input(s.dataset, s.hash, n, s.n) for n, s in manifest.splits.items()),
        prompts=plainjson.read(place / PROMPTS)["prompts"],
        files={
            QUESTIONS: table,
            "artifact": place,
            "scores.png": _scores_figure(manifest),
            **dict(_search_files(Path(folder), manifest, standings)),
        },
        children=(
            *_baseline(manifest, rows, times),
            *(_candidate(manifest, standing, _whole(standings)) for standing in standings),
        ),
    )


def _dataset_of(manifest: Manifest) -> str:
    return next((split.dataset for split in manifest.splits.values()), "examples")


def _artifact_tags(
    manifest: Manifest, kind: str, variant: str, artifact: str, table: bytes
) -> dict[str, str]:
    return tags_of(
        kind=kind,
        backbone=manifest.backbone.name,
        variant=variant,
        dataset=_dataset_of(manifest),
        recipe=manifest.recipe.name,
        artifact=artifact,
        seed=manifest.recipe.seed,
        hashes={name: split.hash for name, split in manifest.splits.items()},
        table=table,
    )


def _artifact_params(manifest: Manifest) -> dict[str, str]:
    decoding = manifest.backbone.decoding
    return flat(
        {
            "recipe": {"name": manifest.recipe.name, **manifest.recipe.params},
            "seed": manifest.recipe.seed,
            "budget": manifest.recipe.budget,
            "lm": {
                "name": manifest.backbone.name,
                "digest": manifest.backbone.digest,
                "quantisation": manifest.backbone.quantisation,
                "temperature": decoding.temperature,
                "max_tokens": decoding.max_tokens,
            },
            "adapter": manifest.adapter,
            "prompt_hash": manifest.prompt_hash,
            "without": manifest.without,
            "config": manifest.config_changes,
            "metric": manifest.metric,
            "parent": manifest.parent or None,
            "packages": manifest.packages,
        }
    )


def _artifact_points(manifest: Manifest, rows: Sequence[Question]) -> Iterator[Point]:
    for split, both in manifest.scores.items():
        for name, scores in both.items():
            yield from _score_points(f"{split}/{'' if name == 'compiled' else f'{name}_'}", scores)
        asked = [row["calls"] for row in rows if row["split"] == split]
        if asked:
            yield Point(f"{split}/calls_per_question", fmean(asked))
    used = manifest.recipe.used
    yield Point("search/lm_calls", used.lm_calls)
    yield Point("search/tokens", used.tokens)
    yield Point("search/seconds", used.seconds)


def _score_points(before: str, scores: Scores) -> Iterator[Point]:
    yield from interval_points(f"{before}ex", scores.ex)
    yield from interval_points(f"{before}soft_f1", scores.soft_f1)
    if scores.tokens_per_question is not None:
        yield Point(f"{before}tokens_per_question", scores.tokens_per_question)


def _beside(folder: Path, name: str) -> Path:
    """A file of the compile, which is kept beside its artifact."""
    return folder.parent / f".{folder.name}.work" / name


def _standings(folder: Path) -> list[dict[str, Any]]:
    """The candidates of a compile, in the order of the search; none without its work folder."""
    path = _beside(folder, SEARCH)
    found = plainjson.read(path) if path.is_file() else []
    return [one for one in found if one["scores"]]


def _search_files(
    folder: Path, manifest: Manifest, standings: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, bytes | Path]]:
    """The page of the compile, and the figure of its candidates."""
    from lynx_dspy.reporting.plots import image

    page = _beside(folder, PAGE)
    if page.is_file():
        yield PAGE, page
    chart = chart_of_search(standings, manifest.variant)
    if chart is not None:
        for form in ("png", "svg"):
            yield f"figures/{FIGURE}.{form}", image(chart, form)


Times = Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]
"""By split, program and question: seconds, and VES where it was asked for."""


def _times(folder: Path) -> Times:
    path = _beside(folder, TIMES)
    found: Times = plainjson.read(path) if path.is_file() else {}
    return found


def _taken(times: Times, split: str, program: str, id_: str) -> dict[str, float]:
    """The seconds of a question as a cell of the table; none where they are not known."""
    found = times.get(split, {}).get(program, {}).get(id_, {})
    return {"seconds": found["seconds"]} if found else {}


def _timed_points(times: Times, program: str = "compiled") -> Iterator[Point]:
    """Means of what was timed: VES with intervals, seconds a question."""
    for split, both in times.items():
        asked = list(both[program].values())
        for name in TIMED:
            values = [one[name] for one in asked if name in one]
            if values:
                yield from interval_points(f"{split}/{name}", bootstrap(values))
        if asked:
            yield Point(f"{split}/seconds_per_question", fmean(one["seconds"] for one in asked))


def _best_so_far(standings: Sequence[Mapping[str, Any]]) -> Iterator[Point]:
    """Over the candidates that were asked all: EX on fewer questions is another number."""
    whole, best = _whole(standings), 0.0
    for step, one in enumerate(one for one in standings if one["asked"] == whole):
        best = max(best, one["scores"]["ex"])
        yield Point("search/best_ex", best, step)


def _baseline(manifest: Manifest, rows: Sequence[Question], times: Times) -> Iterator[Entry]:
    """The program before it was compiled: EX of each question, costs as means."""
    before = {split: both["baseline"] for split, both in manifest.scores.items()}
    if not any(scores.ex for scores in before.values()):
        return
    variant = manifest.parent.partition("@")[0] or UNCOMPILED
    if manifest.without:
        variant = f"{variant} w/o {', '.join(manifest.without)}"
    shown = ("split", "id", "db", "question")
    table = table_of(
        {**{n: row[n] for n in shown}, "ex": row["baseline_ex"]}
        | _taken(times, row["split"], "baseline", row["id"])
        for row in rows
    )
    yield Entry(
        experiment=experiment_of(_dataset_of(manifest)),
        name=f"{variant}, before {manifest.variant}",
        tags=_artifact_tags(manifest, "baseline", variant, manifest.parent, table)
        | {"lynx.recipe": "none", "lynx.seed": "0"},
        metrics=(
            *(p for split, scores in before.items() for p in _score_points(f"{split}/", scores)),
            *_timed_points(times, "baseline"),
        ),
        files={QUESTIONS: table},
    )


def _whole(standings: Sequence[Mapping[str, Any]]) -> int:
    """How many questions those were asked that were not dropped."""
    return max((one["asked"] for one in standings), default=0)


def _candidate(manifest: Manifest, standing: Mapping[str, Any], whole: int) -> Entry:
    # Scores on a share of the questions have names of their own, so that nothing is ranked by both.
    split = "val" if standing["asked"] == whole else "val_share"
    scores = [Point(f"{split}/{name}", value) for name, value in standing["scores"].items()]
    return Entry(
        experiment=experiment_of(_dataset_of(manifest)),
        name=standing["name"],
        tags={
            "lynx.kind": "trial" if "trial" in standing["about"] else "candidate",
            "lynx.backbone": manifest.backbone.name,
            "lynx.variant": manifest.variant,
            "lynx.dataset": _dataset_of(manifest),
            "lynx.program": standing["program"],
        },
        params=flat(standing["about"]),
        metrics=(*scores, Point(f"{split}/questions", standing["asked"])),
    )


def _scores_figure(manifest: Manifest) -> bytes:
    from lynx_dspy.reporting.plots import image

    splits = tuple(manifest.scores)
    series = tuple(
        Series(name, tuple(manifest.scores[split][name].ex for split in splits), position)
        for position, name in enumerate(("baseline", "compiled"))
    )
    chart = Chart("scores", f"EX of {manifest.variant}", "Split", "EX (%)", splits, series)
    return image(chart, "png")

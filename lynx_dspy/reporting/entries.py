"""What a store of experiments is told of finished work: plain values, whatever the store is.

A run of `lynx eval` or `lynx score`, a compiled artifact and a study of `lynx ablate` each become
an `Entry`; `tracking.py` sends it. Every entry that answers questions holds `QUESTIONS`, a table
with a row a question, so that variants can be compared by pairs from the store alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from lynx_dspy.errors import BadInput
from lynx_dspy.metrics.intervals import Interval
from lynx_dspy.optimize import plainjson
from lynx_dspy.optimize.artifact import EVAL, MANIFEST, PROMPTS, read_manifest
from lynx_dspy.optimize.folders import located
from lynx_dspy.optimize.manifest import Manifest, Scores, identity
from lynx_dspy.optimize.outcome import SEARCH
from lynx_dspy.optimize.plainjson import digest_of, text_digest
from lynx_dspy.optimize.records import PREDICTIONS, REPORT, REPORT_PAGE, RUN, Report, read_run
from lynx_dspy.reporting.chart import Chart, Series
from lynx_dspy.reporting.figures import make_chart
from lynx_dspy.reporting.runs import FinishedRun, open_runs

QUESTIONS = "questions.json"
UNCOMPILED = "un-compiled"
"""The variant that no recipe has touched."""

COLUMNS = (
    "split", "id", "db", "question", "code", "status", "ex", "soft_f1", "tokens", "calls", "seconds"
)  # fmt: skip
"""Of the table of questions; None where a cell was not measured."""

_FIGURES = ("stages", "attempts", "dialects")
_NO_KEY = re.compile(r"[^\w\-./ ]")

Question = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Point:
    """A value of a metric; `step` counts where it changes during one piece of work."""

    name: str
    value: float
    step: int = 0


@dataclass(frozen=True, slots=True)
class Input:
    """The questions of a split that went in, known by their hash."""

    dataset: str
    hash: str
    context: str
    n: int


@dataclass(frozen=True)
class Entry:
    """One run in a store. `files` are contents, or paths of files and folders, by their place."""

    experiment: str
    name: str
    tags: Mapping[str, str]
    params: Mapping[str, str] = field(default_factory=dict)
    metrics: tuple[Point, ...] = ()
    inputs: tuple[Input, ...] = ()
    prompts: Mapping[str, Any] = field(default_factory=dict)
    """Chat messages by predictor."""
    files: Mapping[str, bytes | Path] = field(default_factory=dict)
    children: tuple[Entry, ...] = ()

    @cached_property
    def key(self) -> str:
        """Equal for entries that say the same, wherever their files lie."""
        return digest_of(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """All but the contents of files, in JSON values."""
        return {
            "experiment": self.experiment,
            "name": self.name,
            "tags": dict(self.tags),
            "params": dict(self.params),
            "metrics": [asdict(point) for point in self.metrics],
            "inputs": [asdict(one) for one in self.inputs],
            "prompts": dict(self.prompts),
            "files": sorted(self.files),
            "children": [child.to_json() for child in self.children],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], files: Path) -> Entry:
        """The entry that `to_json` gave; its files lie in a folder, those of children in `0/`..."""
        own = {
            "metrics": tuple(Point(**point) for point in value["metrics"]),
            "inputs": tuple(Input(**one) for one in value["inputs"]),
            "files": {place: files / "files" / place for place in value["files"]},
            "children": tuple(
                cls.from_json(child, files / str(n)) for n, child in enumerate(value["children"])
            ),
        }
        return cls(**{**value, **own})


def entry_of(folder: str | Path) -> Entry:
    """The entry of a finished run, an artifact or a study, whichever lies in `folder`.

    Raises `BadInput` for a folder that is none of them, or that is not finished.
    """
    place = located(Path(folder))
    if (place / MANIFEST).is_file():
        return entry_of_artifact(place)
    if (place / RUN).is_file():
        return entry_of_run(place)
    if any(place.glob(f"*/{RUN}")):
        return entry_of_study(place)
    raise BadInput(
        f"{folder} holds neither a run of lynx eval, nor an artifact of lynx compile, nor a study "
        "of lynx ablate. Name one of their --out folders."
    )


def entry_of_run(folder: str | Path) -> Entry:
    """The entry of a finished `lynx eval` or `lynx score`. Raises `BadInput`."""
    run, report = open_runs([folder])[0], read_run(folder).report
    assert report is not None  # `open_runs` refuses a run without one
    config, place = run.config, Path(folder)
    split = config["split"] or "all"
    table = _table(_asked(run, split))
    kept = {name: place / name for name in (RUN, PREDICTIONS, REPORT, REPORT_PAGE)}
    return Entry(
        experiment=_experiment(config["dataset"]),
        name=f"{variant_of(run)} on {split}",
        tags=_tags(
            kind="run",
            backbone=run.backbone or "none",
            variant=variant_of(run),
            dataset=config["dataset"],
            recipe=_program_of(run) if config["artifact"] else "none",
            artifact=config["artifact"] or "",
            hashes={split: config["dataset_hash"]},
            table=table,
        ),
        params=_flat(
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


def entry_of_artifact(folder: str | Path) -> Entry:
    """The entry of a compiled artifact; its baseline and its candidates are children.

    What lies beside it from its compile is read too. Raises `ArtifactError`.
    """
    place = located(Path(folder))
    manifest = read_manifest(place)
    lines = (place / EVAL).read_text("utf-8").splitlines() if (place / EVAL).is_file() else []
    rows = [json.loads(line) for line in lines]
    standings = _standings(Path(folder))
    table = _table(_measured(row) for row in rows)
    recipe = manifest.recipe
    points = [*_artifact_points(manifest, rows), *_best_so_far(standings)]
    return Entry(
        experiment=_experiment(_dataset_of(manifest)),
        name=f"{manifest.variant} seed {recipe.seed}",
        tags=_artifact_tags(manifest, "compile", manifest.variant, identity(manifest), table),
        params=_artifact_params(manifest),
        metrics=tuple(points),
        inputs=tuple(Input(s.dataset, s.hash, n, s.n) for n, s in manifest.splits.items()),
        prompts=plainjson.read(place / PROMPTS)["prompts"],
        files={QUESTIONS: table, "artifact": place, "scores.png": _scores_figure(manifest)},
        children=(
            *_baseline(manifest, rows),
            *(_candidate(manifest, standing) for standing in standings),
        ),
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


def _experiment(dataset: str) -> str:
    return f"lynx-{dataset or 'examples'}"


def _dataset_of(manifest: Manifest) -> str:
    return next((split.dataset for split in manifest.splits.values()), "examples")


def _tags(
    *,
    kind: str,
    backbone: str,
    variant: str,
    dataset: str,
    recipe: str,
    artifact: str,
    hashes: Mapping[str, str],
    table: bytes,
    seed: int = 0,
) -> dict[str, str]:
    return {
        "lynx.kind": kind,
        "lynx.backbone": backbone,
        "lynx.variant": variant,
        "lynx.dataset": dataset or "examples",
        "lynx.recipe": recipe,
        "lynx.seed": str(seed),
        "lynx.artifact": artifact,
        **{f"lynx.hash.{split}": hash_ for split, hash_ in hashes.items()},
        "lynx.questions": text_digest(table.decode()),
    }


def _artifact_tags(
    manifest: Manifest, kind: str, variant: str, artifact: str, table: bytes
) -> dict[str, str]:
    return _tags(
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
    return _flat(
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


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Nested values as texts under dotted names; what is not set is left out.

    >>> _flat({"recipe": {"name": "demos", "sizes": [2, 4]}, "deadline": None})
    {'recipe.name': 'demos', 'recipe.sizes': '2, 4'}
    """
    found: dict[str, str] = {}
    for name, value in values.items():
        key = _NO_KEY.sub("_", f"{before}{name}")
        if isinstance(value, Mapping):
            found |= _flat(value, f"{key}.")
        elif isinstance(value, list | tuple):
            found[key] = ", ".join(map(str, value))
        elif value is not None:
            found[key] = str(value)
    return found


def _interval_points(name: str, found: Interval | None) -> Iterator[Point]:
    if found:
        yield Point(name, found.value)
        yield Point(f"{name}_low", found.low)
        yield Point(f"{name}_high", found.high)


def _report_points(split: str, report: Report) -> Iterator[Point]:
    for name, score in report.scores.items():
        yield from _interval_points(f"{split}/{name}", score)
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
    yield from _interval_points(f"{before}ex", scores.ex)
    yield from _interval_points(f"{before}soft_f1", scores.soft_f1)
    if scores.tokens_per_question is not None:
        yield Point(f"{before}tokens_per_question", scores.tokens_per_question)


def _standings(folder: Path) -> list[dict[str, Any]]:
    """The candidates of a compile that is kept beside its artifact, in the order of the search."""
    path = folder.parent / f".{folder.name}.work" / SEARCH
    found = plainjson.read(path) if path.is_file() else []
    return [one for one in found if one["scores"]]


def _best_so_far(standings: Sequence[Mapping[str, Any]]) -> Iterator[Point]:
    """Over the candidates that were asked all: EX on fewer questions is another number."""
    whole = max((one["asked"] for one in standings), default=0)
    best = 0.0
    for step, one in enumerate(one for one in standings if one["asked"] == whole):
        best = max(best, one["scores"]["ex"])
        yield Point("search/best_ex", best, step)


def _baseline(manifest: Manifest, rows: Sequence[Question]) -> Iterator[Entry]:
    """The program before it was compiled: EX of each question, costs as means."""
    measured = {split: both["baseline"] for split, both in manifest.scores.items()}
    if not any(scores.ex for scores in measured.values()):
        return
    variant = manifest.parent.partition("@")[0] or UNCOMPILED
    if manifest.without:
        variant = f"{variant} w/o {', '.join(manifest.without)}"
    shown = ("split", "id", "db", "question")
    table = _table({**{n: row[n] for n in shown}, "ex": row["baseline_ex"]} for row in rows)
    yield Entry(
        experiment=_experiment(_dataset_of(manifest)),
        name=f"{variant}, before {manifest.variant}",
        tags=_artifact_tags(manifest, "baseline", variant, manifest.parent, table)
        | {"lynx.recipe": "none", "lynx.seed": "0"},
        metrics=tuple(
            point
            for split, scores in measured.items()
            for point in _score_points(f"{split}/", scores)
        ),
        files={QUESTIONS: table},
    )


def _candidate(manifest: Manifest, standing: Mapping[str, Any]) -> Entry:
    scores = {name: Point(f"val/{name}", value) for name, value in standing["scores"].items()}
    return Entry(
        experiment=_experiment(_dataset_of(manifest)),
        name=standing["name"],
        tags={
            "lynx.kind": "candidate",
            "lynx.backbone": manifest.backbone.name,
            "lynx.variant": manifest.variant,
            "lynx.dataset": _dataset_of(manifest),
            "lynx.program": standing["program"],
        },
        params=_flat(standing["about"]),
        metrics=(*scores.values(), Point("val/questions", standing["asked"])),
    )


def _asked(run: FinishedRun, split: str) -> Iterator[Question]:
    for record in run.records:
        yield _measured({**record, "split": split}) | {"seconds": record["seconds"]}


def _measured(row: Question) -> dict[str, Any]:
    """A row of the table from a record of a run, or from a line of `eval.jsonl`."""
    usage = row.get("usage") or {"total_tokens": row.get("tokens"), "calls": row.get("calls")}
    return {
        **{name: row[name] for name in ("split", "id", "db", "question", "code", "status")},
        "ex": row["scores"].get("ex"),
        "soft_f1": row["scores"].get("soft_f1"),
        "tokens": usage["total_tokens"],
        "calls": usage["calls"],
    }


def _table(rows: Iterable[Question]) -> bytes:
    """JSON with `columns` and `data`, which MLflow shows as a table."""
    data = [[row.get(name) for name in COLUMNS] for row in rows]
    return json.dumps({"columns": COLUMNS, "data": data}, ensure_ascii=False).encode()


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


def _scores_figure(manifest: Manifest) -> bytes:
    from lynx_dspy.reporting.plots import image

    splits = tuple(manifest.scores)
    series = tuple(
        Series(name, tuple(manifest.scores[split][name].ex for split in splits), position)
        for position, name in enumerate(("baseline", "compiled"))
    )
    chart = Chart("scores", f"EX of {manifest.variant}", "Split", "EX (%)", splits, series)
    return image(chart, "png")

"""An artifact for people: what it is, what it scored, and what each stage is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lynx_dspy.errors import ArtifactError
from lynx_dspy.metrics.intervals import Interval
from lynx_dspy.modules.nearest import FILE as NEAREST
from lynx_dspy.optimize import plainjson, states
from lynx_dspy.optimize.artifact import PROGRAM, read_manifest
from lynx_dspy.optimize.folders import located
from lynx_dspy.optimize.manifest import Manifest, Scores, identity, to_json
from lynx_dspy.tokens import estimate

_COLUMNS = ("split", "program", "EX %", "Soft-F1 %", "tokens/question")

Demo = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Contents:
    """An artifact as read from its folder: nothing is run and no program is built.

    `picks` are the demos, by stage, of which the nearest are picked for each question.
    """

    folder: str
    manifest: Manifest
    states: Mapping[str, states.State]
    picks: Mapping[str, list[Demo]]

    @property
    def name(self) -> str:
        """`variant@hash`."""
        return identity(self.manifest)

    def demos(self, path: str) -> list[Demo]:
        """All demos of a stage, fixed ones first."""
        fixed = self.states[path]["demos"] if path in self.states else []
        return [*fixed, *self.picks.get(path, [])]


def contents(folder: str | Path) -> Contents:
    """What lies in an artifact's folder. Raises `ArtifactError` for another shape."""
    place = located(Path(folder))
    manifest = read_manifest(place)
    record = plainjson.read(place / PROGRAM)
    if not isinstance(record, dict):
        raise ArtifactError(f"{place / PROGRAM} holds a {type(record).__name__}, not an object.")
    try:
        kept = {path: states.checked(path, state) for path, state in record.items()}
    except ArtifactError as error:
        raise ArtifactError(f"{place / PROGRAM} cannot be used. {error}") from None
    picks = _picks(place / NEAREST) if NEAREST in manifest.files else {}
    return Contents(str(folder), manifest, kept, picks)


def summary(folder: str | Path) -> dict[str, Any]:
    """`lynx artifact show --json`: the manifest, and each stage's instructions and demos."""
    found = contents(folder)
    return {
        "folder": found.folder,
        "identity": found.name,
        "manifest": to_json(found.manifest),
        "stages": {
            path: {
                "instructions": "\n".join(state["instructions"]),
                "demos": state["demos"],
                "picked_from": found.picks.get(path, []),
                "config": state["config"],
            }
            for path, state in found.states.items()
        },
    }


def page(folder: str | Path) -> Iterator[str]:
    """`lynx artifact show`, line by line."""
    found = contents(folder)
    manifest = found.manifest
    yield f"{found.name} ({found.folder})"
    yield from _origin(manifest)
    yield ""
    yield from _scores(manifest)
    yield ""
    yield f"config changes: {_pairs(manifest.config_changes)}"
    yield f"adapter: {manifest.adapter}; prompts {manifest.prompt_hash}"
    yield f"packages: {_pairs(manifest.packages)}"
    for path in sorted(found.states):
        yield from _stage(found, path)


def demo_lines(demo: Mapping[str, Any]) -> Iterator[str]:
    """A demo, one field after the other; texts of several lines are indented."""
    for name, value in demo.items():
        text = str(value)
        if "\n" in text:
            yield f"{name}:"
            yield from (f"  {line}" for line in text.splitlines())
        else:
            yield f"{name}: {text}"


def shown_interval(interval: Interval | None) -> str:
    """A score as per cent with its interval.

    >>> shown_interval(Interval(0.5, 0.25, 0.75, 40))
    '50.0 [25.0, 75.0] n=40'
    """
    if interval is None:
        return "-"
    value, low, high = (f"{100 * x:.1f}" for x in (interval.value, interval.low, interval.high))
    return f"{value} [{low}, {high}] n={interval.n}"


def _origin(manifest: Manifest) -> Iterator[str]:
    backbone, recipe = manifest.backbone, manifest.recipe
    known = {
        "quantisation": backbone.quantisation,
        "context": backbone.context,
        "temperature": backbone.decoding.temperature,
        "max_tokens": backbone.decoding.max_tokens,
        "digest": backbone.digest,
    }
    details = {name: value for name, value in known.items() if value is not None}
    yield f"backbone: {backbone.name} ({_pairs(details)})"
    yield f"recipe: {recipe.name}, seed {recipe.seed}; parameters: {_pairs(recipe.params)}"
    used = recipe.used
    yield (
        f"budget: {_pairs(recipe.budget)}; used {used.lm_calls:,} calls, {used.tokens:,} tokens, "
        f"{used.seconds:,.0f} s"
    )
    yield f"created: {manifest.created}; parent: {manifest.parent or 'none'}"
    yield f"without: {', '.join(manifest.without) or 'nothing left out'}"
    yield f"metric: {_pairs(manifest.metric)}"
    for name, split in manifest.splits.items():
        yield f"{name}: {split.n} questions of {split.dataset} ({split.hash})"
    if manifest.notes:
        yield f"notes: {manifest.notes}"


def _scores(manifest: Manifest) -> Iterator[str]:
    rows = [
        (split, program, *_score_cells(scores))
        for split, programs in manifest.scores.items()
        for program, scores in programs.items()
    ]
    if not rows:
        yield "scores: not measured"
        return
    yield from table([_COLUMNS, *rows])


def _score_cells(scores: Scores) -> tuple[str, str, str]:
    tokens = scores.tokens_per_question
    return (
        shown_interval(scores.ex),
        shown_interval(scores.soft_f1),
        "-" if tokens is None else f"{tokens:,.0f}",
    )


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows as lines with aligned columns.

    >>> list(table([("a", "b"), ("cc", "d")]))
    ['a   b', 'cc  d']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()


def _stage(found: Contents, path: str) -> Iterator[str]:
    state, picks = found.states[path], found.picks.get(path, [])
    if path not in found.manifest.config.stages:
        yield f"── {path}: not asked"
        return
    tokens = sum(estimate(str(value)) for demo in state["demos"] for value in demo.values())
    picked = f", picks from {len(picks)} demos" if picks else ""
    yield f"── {path}: {len(state['demos'])} demos of about {tokens} tokens{picked}"
    yield from (f"  {line}" for line in state["instructions"])
    if state["config"]:
        yield f"  decoding: {_pairs(state['config'])}"
    for number, demo in enumerate(found.demos(path), 1):
        yield f"  demo {number}"
        yield from (f"    {line}" for line in demo_lines(demo))


def _picks(path: Path) -> dict[str, list[Demo]]:
    record = plainjson.read(path)
    try:
        return {
            stage: [{**shot["fields"], "database": shot["database"]} for shot in value["shots"]]
            for stage, value in record.items()
        }
    except (AttributeError, TypeError, KeyError) as error:
        raise ArtifactError(f"{path} does not hold demos to pick from ({error!r}).") from None


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_short(value)}" for name, value in values.items()) or "none"


def _short(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(map(str, value)) or "(none)"
    return str(value)

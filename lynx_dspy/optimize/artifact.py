"""A compiled program as a folder of plain JSON that others load, review and compare.

    FOLDER/program.json    the state of each predictor (`states.state_of`)
    FOLDER/prompts.json    each predictor's prompt for a fixed probe, and the hash over them
    FOLDER/eval.jsonl      a JSON object a question of the evaluation that chose it
    FOLDER/NAME.json       what a program keeps beside its predictors (`KeepsFiles`)
    FOLDER/manifest.json   Manifest: what it is, what it was made from, what it scored

No pickle, no code, no secrets. A folder is replaced whole or not at all.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import dspy

from lynx_dspy import config as configs
from lynx_dspy.ablations import ABLATIONS, ablate
from lynx_dspy.errors import ArtifactError, BadInput, UnknownName
from lynx_dspy.lm.adapter import KINDS, adapter_for
from lynx_dspy.optimize import manifest as manifests
from lynx_dspy.optimize import plainjson, states
from lynx_dspy.optimize.folders import located, replace_files
from lynx_dspy.optimize.manifest import Manifest
from lynx_dspy.optimize.origin import (
    ArtifactWarning,
    BackboneWarning,
    Origin,
    PackageWarning,
    check_backbone,
    check_packages,
    origin,
)
from lynx_dspy.optimize.prompts import Messages, prompts_hash, rendered
from lynx_dspy.optimize.secret_scan import found_in, require_none
from lynx_dspy.program import Lynx

__all__ = [
    "ArtifactWarning",
    "BackboneWarning",
    "KeepsFiles",
    "Manifest",
    "PackageWarning",
    "check_backbone",
    "check_packages",
    "load",
    "origin",
    "read_manifest",
    "save",
    "verify",
]

MANIFEST, PROGRAM, PROMPTS, EVAL = "manifest.json", "program.json", "prompts.json", "eval.jsonl"

_FILE_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}\.json")
_HERE_ONLY = {"fix_patterns": ""}
"""Knobs that name places of one machine: neither saved nor taken from an artifact."""

_MANIFEST_BYTES = 4_000_000
_EXTRA_BYTES = 256_000_000


@runtime_checkable
class KeepsFiles(Protocol):
    """A `Lynx` that keeps more than predictors do, such as demos to pick the nearest of."""

    def artifact_files(self) -> Mapping[str, Any]:
        """JSON values by file name (`demos.json`); empty if there is nothing to keep."""

    def restore_files(self, files: Mapping[str, Any]) -> None:
        """Take up what `artifact_files` gave, on a fresh program.

        Raises `ArtifactError` for values of another shape: a file may have been tampered with.
        """


def save(
    program: Lynx,
    folder: str | Path,
    manifest: Manifest,
    eval_rows: Iterable[Mapping[str, Any]] = (),
) -> Path:
    """Write the artifact; its folder. An artifact that is there is replaced, whole or not at all.

    `manifest` says what the program cannot: variant, parent, backbone, recipe, metric, splits,
    scores, notes; the rest is filled in. Other files in the folder stay. Raises `ArtifactError`
    for values that JSON cannot hold, for secrets, and for a program that could not be loaded
    again, and `BadInput` where the folder cannot be written.
    """
    folder = Path(folder)
    values, manifest = _described(program, manifest)
    rows = [states.plain(f"{EVAL} row {n}", row) for n, row in enumerate(eval_rows, 1)]
    for name, value in {**values, EVAL: rows}.items():
        require_none(name, value)
    contents = {name: plainjson.dumped(value) for name, value in values.items()}
    contents[EVAL] = "".join(plainjson.line(row) for row in rows)
    hashes = {name: plainjson.text_digest(text) for name, text in contents.items()}
    record = manifests.to_json(manifest.with_(files=hashes))
    record["checksum"] = manifests.checksum(record)
    manifests.from_json(record)
    require_none(MANIFEST, record)
    contents[MANIFEST] = plainjson.dumped(record)
    replace_files(folder, contents, _names_in(folder))
    return folder


def load(folder: str | Path, *, into: Lynx | None = None, strict: bool = True) -> Lynx:
    """The program of an artifact: module graph, config, adapter, instructions and demos.

    `into` is a fresh program of your own parts; by default `Lynx()` without the parts that the
    manifest names. Raises `ArtifactError`, in one line, for files that cannot be read or were
    changed, and for another module graph or other fields, naming both sides; with `strict=False`
    changes and differences are warnings and what fits is loaded. Another package version is a
    `PackageWarning` now, another backbone a `BackboneWarning` when the program runs.
    """
    place = located(Path(folder))
    manifest = read_manifest(place)
    _judge(place, _changed_files(place, manifest), strict)
    program = _fresh(place, manifest, into)
    files = {
        name: plainjson.read(place / name, _EXTRA_BYTES)
        for name in manifest.files
        if name not in (PROGRAM, PROMPTS, EVAL)
    }
    try:
        _restore_files(program, files)
        _judge(place, _other_program(manifest, program), strict)
        _restore_states(program, plainjson.read(place / PROGRAM), strict)
    except ArtifactError as error:
        raise ArtifactError(f"{place}: {error}") from None
    _warn_of_prompts(program, manifest, place)
    check_packages(manifest)
    program.callbacks = [*program.callbacks, Origin(manifest)]
    return program


def read_manifest(folder: str | Path) -> Manifest:
    """The manifest in an artifact's folder. Raises `ArtifactError`."""
    path = located(Path(folder)) / MANIFEST
    if not path.parent.is_dir():
        raise ArtifactError(f"{folder} is no artifact folder: there is no such folder.")
    record = plainjson.read(path, _MANIFEST_BYTES)
    try:
        manifest = manifests.from_json(record)
        _require_known(manifest)
    except (ArtifactError, UnknownName) as error:
        raise ArtifactError(f"{path} cannot be used. {error}") from None
    return manifest


def verify(folder: str | Path) -> list[str]:
    """Every difference between an artifact's record and what it holds or gives now; a line each.

    Recomputes all hashes, compares module graph and fields with this program, renders the prompts
    again and looks for secrets. Raises `ArtifactError` for an artifact that cannot be read.
    """
    place = located(Path(folder))
    manifest = read_manifest(place)
    return [*_false_records(place, manifest), *_false_program(place, manifest)]


def _described(program: Lynx, manifest: Manifest) -> tuple[dict[str, Any], Manifest]:
    """The files but for `eval.jsonl`, and the manifest with all that the program says."""
    config = program.config or configs.profile(manifest.backbone.name)
    adapter = config.adapter or manifest.adapter or _adapter_now()
    config = config.with_(adapter=adapter, **_HERE_ONLY)
    kept = states.predictors(program)
    record = {path: states.state_of(path, one) for path, one in kept.items()}
    prompts = rendered(program, config)
    fields = {path: states.fields_of(one.signature) for path, one in kept.items()}
    extra = program.artifact_files() if isinstance(program, KeepsFiles) else {}
    values = {
        PROGRAM: record,
        PROMPTS: {"hash": prompts_hash(prompts), "prompts": prompts},
        **{name: states.plain(name, value) for name, value in extra.items()},
    }
    came_from = origin(program)
    filled = manifest.with_(
        parent=manifest.parent or (came_from.identity if came_from else ""),
        created=manifest.created or manifests.now(),
        without=tuple(sorted({*manifest.without, *ablations_of(program)})),
        modules=states.module_graph(program),
        signatures={path: states.signature_hash(text) for path, text in fields.items()},
        fields=fields,
        prompt_hash=prompts_hash(prompts),
        config=config,
        config_changes=manifests.changes_of(config),
        adapter=adapter,
        packages=manifests.packages_now(),
        files=dict.fromkeys(values, ""),
        checksum="",
    )
    _require_known(filled)
    _require_loadable(filled, values)
    return values, filled


def _adapter_now() -> str:
    """The kind of adapter that an un-configured program would use with the model in settings."""
    if dspy.settings.lm is None:
        return "fenced"
    chosen = type(adapter_for(dspy.settings.lm))
    return next(kind for kind, make in KINDS.items() if make is chosen)


def ablations_of(program: Lynx) -> Iterator[str]:
    """The parts that were left out, read off the module graph."""
    graph, whole = states.module_graph(program), states.module_graph(Lynx())
    for name in ABLATIONS:
        ablated = states.module_graph(ablate([name]))
        changed = ablated.items() - whole.items()
        gone = whole.keys() - ablated.keys()
        if (changed or gone) and changed <= graph.items() and not gone & graph.keys():
            yield name


def _require_loadable(manifest: Manifest, values: Mapping[str, Any]) -> None:
    """Load what is about to be written; own parts need `into` and are told of."""
    fresh = ablate(manifest.without)
    fresh.config = manifest.config
    _restore_files(fresh, {n: v for n, v in values.items() if n not in (PROGRAM, PROMPTS)})
    if parts := list(_other_parts(manifest, fresh)):
        warnings.warn(
            f"Loading {manifest.variant} will need `into=` a program with the same parts: "
            f"{'; '.join(parts)}.",
            ArtifactWarning,
            stacklevel=4,
        )
        return
    if differences := list(_other_program(manifest, fresh)):
        raise ArtifactError(f"The program cannot be loaded again: {'; '.join(differences)}.")
    _restore_states(fresh, values[PROGRAM], strict=True)
    again = rendered(fresh, manifest.config)
    if lost := _unequal(values[PROMPTS]["prompts"], again):
        raise ArtifactError(
            f"The prompts of {', '.join(lost)} hold what an artifact cannot keep: they would "
            "differ after loading."
        )


def _require_known(manifest: Manifest) -> None:
    for name in manifest.without:
        if name not in ABLATIONS:
            raise UnknownName("part in `without`", name, ABLATIONS)
    for adapter in (manifest.adapter, manifest.config.adapter):
        if adapter not in KINDS:
            raise UnknownName("adapter", adapter, KINDS)
    for name in manifest.files:
        if name != EVAL and not _FILE_NAME.fullmatch(name):
            raise ArtifactError(
                f"{name[:80]!r} is no file name of an artifact: small letters, then .json."
            )


def _names_in(folder: Path) -> set[str]:
    """The files of the artifact that is in the folder; none if there is none.

    Raises `BadInput` if a manifest of something else lies there.
    """
    place = located(folder)
    if not (place / MANIFEST).exists():
        return set()
    try:
        return {MANIFEST, *read_manifest(place).files}
    except ArtifactError as error:
        raise BadInput(f"{error} Delete {folder}, or name another folder.") from None


def _judge(place: Path, differences: Iterable[str], strict: bool) -> None:
    lines = list(differences)
    if lines and strict:
        raise ArtifactError(f"{place} does not fit: {'; '.join(lines)}.")
    if lines:
        warnings.warn(f"{place}: {'; '.join(lines)}.", ArtifactWarning, stacklevel=3)


def _changed_files(place: Path, manifest: Manifest) -> Iterator[str]:
    for name in (PROGRAM, PROMPTS):
        if name not in manifest.files:
            yield f"the manifest does not list {name}"
    for name, hash_ in manifest.files.items():
        if plainjson.digest(place / name) != hash_:
            yield f"{name} was changed after it was saved"


def _fresh(place: Path, manifest: Manifest, into: Lynx | None) -> Lynx:
    program = ablate(manifest.without) if into is None else into
    program.config = manifest.config.with_(**_HERE_ONLY)
    return program


def _restore_files(program: Lynx, files: Mapping[str, Any]) -> None:
    if not files:
        return
    if not isinstance(program, KeepsFiles):
        raise ArtifactError(f"{', '.join(files)}: this program does not know what to do with it.")
    try:
        program.restore_files(files)
        unknown = files.keys() ^ program.artifact_files().keys()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"{', '.join(files)} cannot be taken up ({error}).") from None
    if unknown:
        raise ArtifactError(f"{', '.join(unknown)}: this program does not know what to do with it.")


def _other_parts(manifest: Manifest, program: Lynx) -> Iterator[str]:
    here = states.module_graph(program)
    for path in sorted({*manifest.modules, *here}):
        there, now = manifest.modules.get(path, "nothing"), here.get(path, "nothing")
        if there != now:
            yield f"{path} is {there} in the artifact, {now} in this program"


def _other_program(manifest: Manifest, program: Lynx) -> Iterator[str]:
    """Where module graph or fields differ, both sides named."""
    yield from _other_parts(manifest, program)
    here = {p: states.fields_of(one.signature) for p, one in states.predictors(program).items()}
    for path in manifest.signatures.keys() & here.keys():
        if manifest.signatures[path] != states.signature_hash(here[path]):
            there = manifest.fields.get(path, "other fields")
            yield f"{path} asks ({there}) in the artifact, ({here[path]}) in this program"


def _restore_states(program: Lynx, record: object, strict: bool) -> None:
    if not isinstance(record, dict):
        raise ArtifactError(f"{PROGRAM} holds a {type(record).__name__}, not an object.")
    kept = states.predictors(program)
    if strict and record.keys() != kept.keys():
        missing = ", ".join(sorted(kept.keys() ^ record.keys()))
        raise ArtifactError(f"{PROGRAM} does not hold the states of this program: {missing}.")
    for path in record.keys() & kept.keys():
        try:
            states.restore(path, kept[path], record[path])
        except ArtifactError as error:
            if strict:
                raise
            warnings.warn(f"Left as it was: {error}", ArtifactWarning, stacklevel=3)


def _unequal(there: Mapping[str, Messages], here: Mapping[str, Messages]) -> list[str]:
    return sorted(p for p in {*there, *here} if there.get(p) != here.get(p))


def _warn_of_prompts(program: Lynx, manifest: Manifest, place: Path) -> None:
    assert program.config is not None
    if prompts_hash(rendered(program, program.config)) != manifest.prompt_hash:
        warnings.warn(
            f"{place}: this version makes other prompts than those that were compiled; "
            "`lynx artifact verify` names them.",
            PackageWarning,
            stacklevel=3,
        )


def _false_records(place: Path, manifest: Manifest) -> Iterator[str]:
    """Where the files do not say what the manifest says of them, and where secrets are."""
    record = plainjson.read(place / MANIFEST)
    if manifests.checksum(record) != manifest.checksum:
        yield f"{MANIFEST} was changed after it was saved"
    yield from _changed_files(place, manifest)
    for path, text in manifest.fields.items():
        if states.signature_hash(text) != manifest.signatures.get(path):
            yield f"the signature hash of {path} is not that of its fields"
    if manifests.changes_of(manifest.config) != manifest.config_changes:
        yield "config_changes are not the changes in config"
    for name in (MANIFEST, *(n for n in manifest.files if n != EVAL)):
        value = plainjson.read(place / name, _EXTRA_BYTES)
        for field, what in found_in(value):
            yield f"{name}: {field} holds what looks like {what}"


def _false_program(place: Path, manifest: Manifest) -> Iterator[str]:
    """Where this program is not that of the manifest, or is asked otherwise."""
    stored = plainjson.read(place / PROMPTS)
    prompts = stored.get("prompts") if isinstance(stored, dict) else None
    if not isinstance(prompts, dict):
        yield f"{PROMPTS} holds no prompts"
        return
    if not stored.get("hash") == prompts_hash(prompts) == manifest.prompt_hash:
        yield f"{PROMPTS} is not what the prompt hash was made of"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ArtifactWarning)
        try:
            program = load(place, strict=False)
        except ArtifactError as error:
            yield str(error)
            return
    yield from _other_program(manifest, program)
    assert program.config is not None
    for path in _unequal(prompts, rendered(program, program.config)):
        yield f"the prompt of {path} is not what it was when it was compiled"

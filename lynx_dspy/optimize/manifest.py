"""The manifest of a compiled program: what it is, what it was made from, and what it scored.

`manifest.json` is this module's `Manifest` in JSON, keys sorted. What can be read off the program
(module graph, signatures, config, prompt hash, files) is filled in by `artifact.save`, so that it
cannot say anything else than the program does.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from lynx_dspy.config import LynxConfig
from lynx_dspy.errors import ArtifactError
from lynx_dspy.metrics.intervals import Interval
from lynx_dspy.optimize.plainjson import digest_of

FORMAT = 1
"""Version of the files of an artifact; a later one is refused."""

PACKAGES = ("lynx-dspy", "dspy", "sqlglot", "bm25s", "faiss-cpu", "sentence-transformers")
"""Packages that have a say in prompts, demos or results."""

_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

Json = Any
"""A value as `json.loads` gives it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How the backbone was asked; None is the provider's own choice."""

    temperature: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backbone:
    """The language model that the program was compiled for (`lm.describe`)."""

    name: str
    digest: str | None = None
    quantisation: str | None = None
    context: int | None = None
    decoding: Decoding = field(default_factory=Decoding)

    @classmethod
    def described(cls, about: Mapping[str, Any]) -> Backbone:
        """From what `lm.describe` says of a model.

        >>> Backbone.described({"name": "openai/gpt-4o", "temperature": 0.0}).decoding.temperature
        0.0
        """
        return cls(
            name=str(about["name"]),
            digest=about.get("digest"),
            quantisation=about.get("quantisation"),
            context=about.get("context"),
            decoding=Decoding(
                temperature=about.get("temperature"), max_tokens=about.get("max_tokens")
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a compile cost."""

    lm_calls: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeRun:
    """The recipe with what it was given and what it used; chained names are joined by `+`."""

    name: str = "none"
    params: dict[str, Json] = field(default_factory=dict)
    seed: int = 0
    budget: dict[str, float | int | None] = field(default_factory=dict)
    used: Used = field(default_factory=Used)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRecord:
    """The questions of one split: hash (`datasets.fingerprint`), number, dataset."""

    hash: str
    n: int
    dataset: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Scores on one split with 95 % intervals, as fractions; None where not measured."""

    ex: Interval | None = None
    soft_f1: Interval | None = None
    tokens_per_question: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """All that is recorded of an artifact. Its fields are the keys of `manifest.json`."""

    variant: str
    backbone: Backbone
    format: int = FORMAT
    parent: str = ""
    """Identity of the artifact that this one was compiled from; empty for none."""
    created: str = ""
    """ISO 8601, UTC; filled in on saving."""
    without: tuple[str, ...] = ()
    """Parts left out (`ablations.ABLATIONS`)."""
    modules: dict[str, str] = field(default_factory=dict)
    """The module graph: dotted path to class; filled in on saving."""
    signatures: dict[str, str] = field(default_factory=dict)
    """Hash of names, types and order of each predictor's fields; filled in on saving."""
    fields: dict[str, str] = field(default_factory=dict)
    """What is hashed in `signatures`, for people; filled in on saving."""
    prompt_hash: str = ""
    """Hash over `prompts.json`; filled in on saving."""
    config: LynxConfig = field(default_factory=LynxConfig)
    """Every knob; filled in on saving."""
    config_changes: dict[str, Json] = field(default_factory=dict)
    """The knobs that differ from `LynxConfig()`; filled in on saving."""
    adapter: str = ""
    """Prompt form (`lm.adapter.KINDS`); filled in on saving."""
    recipe: RecipeRun = field(default_factory=RecipeRun)
    metric: dict[str, str] = field(default_factory=dict)
    """Rules that judged, by what they are for: `{"rule": "bird", "tie_break": "soft_f1"}`."""
    splits: dict[str, SplitRecord] = field(default_factory=dict)
    """By train, val, test."""
    scores: dict[str, dict[str, Scores]] = field(default_factory=dict)
    """By val, test; then by baseline, compiled."""
    packages: dict[str, str] = field(default_factory=dict)
    """Versions; filled in on saving."""
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the other files, 16 digits; filled in on saving."""
    notes: str = ""
    checksum: str = ""
    """Hash over all the other keys; filled in on saving."""

    def with_(self, **changes: Any) -> Manifest:
        """A copy with some fields changed."""
        return replace(self, **changes)


@cache
def _adapter() -> TypeAdapter[Manifest]:
    Manifest.__pydantic_config__ = _STRICT  # type: ignore[attr-defined]
    return TypeAdapter(Manifest)


def to_json(manifest: Manifest) -> dict[str, Json]:
    """The manifest in JSON values; sets are sorted."""
    record: dict[str, Json] = _adapter().dump_python(manifest, mode="json")
    record["config"] = config_json(manifest.config)
    return record


def checksum(record: Mapping[str, Json]) -> str:
    """The hash over a manifest in JSON values, but for its own `checksum`."""
    return digest_of({name: value for name, value in record.items() if name != "checksum"})


def identity(manifest: Manifest) -> str:
    """`variant@hash` of what decides the answers: equal for equal programs, wherever they lie."""
    record = to_json(manifest)
    decides = {name: record[name] for name in ("modules", "signatures", "config", "adapter")}
    files = {n: h for n, h in manifest.files.items() if n not in ("prompts.json", "eval.jsonl")}
    return f"{manifest.variant}@{digest_of({**decides, 'files': files})}"


def from_json(record: Json) -> Manifest:
    """The manifest of a JSON value. Raises `ArtifactError` naming each field that is wrong."""
    if not isinstance(record, dict):
        raise ArtifactError(f"It holds a {type(record).__name__}; a JSON object is needed.")
    version = record.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise ArtifactError(
            f"It has format {version}; this version of lynx_dspy reads up to {FORMAT}. Update it."
        )
    try:
        return _adapter().validate_json(json.dumps(record))
    except ValidationError as error:
        raise ArtifactError(_first_faults(error)) from None


def _first_faults(error: ValidationError) -> str:
    faults = [
        f"{'.'.join(map(str, fault['loc'])) or 'the object'}: {fault['msg'].lower()}"
        for fault in error.errors(include_url=False, include_input=False)
    ]
    more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""
    return f"{'; '.join(faults[:3])}{more}."


def config_json(config: LynxConfig) -> dict[str, Json]:
    """Every knob in JSON values.

    >>> config_json(LynxConfig(omitted_outputs=frozenset("ba")))["omitted_outputs"]
    ['a', 'b']
    """
    record: dict[str, Json] = TypeAdapter(LynxConfig).dump_python(config, mode="json")
    return {k: sorted(v) if isinstance(v, list) else v for k, v in record.items()}


def changes_of(config: LynxConfig) -> dict[str, Json]:
    """The knobs that differ from the defaults.

    >>> changes_of(LynxConfig(top_k=3))
    {'top_k': 3}
    """
    default = LynxConfig()
    changed = {
        f.name for f in fields(config) if getattr(config, f.name) != getattr(default, f.name)
    }
    return {name: value for name, value in config_json(config).items() if name in changed}


def packages_now() -> dict[str, str]:
    """Versions of `PACKAGES` that are installed here, and of Python."""
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def now() -> str:
    """The time as manifests write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")

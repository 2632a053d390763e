"""What a store of experiments is told of finished work: plain values, whatever the store is.

A run (`run_entries.py`) and an artifact (`artifact_entries.py`) each become an `Entry`;
`tracking.py` sends it. Every entry that answers questions holds `QUESTIONS`, a table with a row a
question, so that variants can be compared by pairs from the store alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lynx_dspy.metrics.intervals import Interval
from lynx_dspy.optimize.plainjson import digest_of, text_digest

QUESTIONS = "questions.json"
UNCOMPILED = "un-compiled"
"""The variant that no recipe has touched."""

COLUMNS = (
    "split", "id", "db", "question", "code", "status", "ex", "soft_f1", "tokens", "calls", "seconds"
)  # fmt: skip
"""Of the table of questions; None where a cell was not measured."""

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


def experiment_of(dataset: str) -> str:
    return f"lynx-{dataset or 'examples'}"


def tags_of(
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


def flat(values: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Nested values as texts under dotted names; what is not set is left out.

    >>> flat({"recipe": {"name": "demos", "sizes": [2, 4]}, "deadline": None})
    {'recipe.name': 'demos', 'recipe.sizes': '2, 4'}
    """
    found: dict[str, str] = {}
    for name, value in values.items():
        key = _NO_KEY.sub("_", f"{before}{name}")
        if isinstance(value, Mapping):
            found |= flat(value, f"{key}.")
        elif isinstance(value, list | tuple):
            found[key] = ", ".join(map(str, value))
        elif value is not None:
            found[key] = str(value)
    return found


def interval_points(name: str, found: Interval | None) -> Iterator[Point]:
    if found:
        yield Point(name, found.value)
        yield Point(f"{name}_low", found.low)
        yield Point(f"{name}_high", found.high)


def measured(row: Question) -> dict[str, Any]:
    """A row of the table from a record of a run, or from a line of `eval.jsonl`."""
    usage = row.get("usage") or {"total_tokens": row.get("tokens"), "calls": row.get("calls")}
    return {
        **{name: row[name] for name in ("split", "id", "db", "question", "code", "status")},
        "ex": row["scores"].get("ex"),
        "soft_f1": row["scores"].get("soft_f1"),
        "tokens": usage["total_tokens"],
        "calls": usage["calls"],
    }


def table_of(rows: Iterable[Question]) -> bytes:
    """JSON with `columns` and `data`, which MLflow shows as a table."""
    data = [[row.get(name) for name in COLUMNS] for row in rows]
    return json.dumps({"columns": COLUMNS, "data": data}, ensure_ascii=False).encode()

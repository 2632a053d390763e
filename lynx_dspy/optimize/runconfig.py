"""What makes two runs the same: written before the first question, compared on resume."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, cast

import dspy

import lynx_dspy
from lynx_dspy import config as configs
from lynx_dspy.config import LynxConfig
from lynx_dspy.datasets.hashing import files_hash
from lynx_dspy.errors import BadInput
from lynx_dspy.lm import describe, redact
from lynx_dspy.optimize.journal import write_whole
from lynx_dspy.optimize.origin import origin
from lynx_dspy.optimize.questions import Questions
from lynx_dspy.optimize.records import (
    FORMAT,
    PREDICTIONS,
    REPORT,
    RUN,
    RunConfig,
    read_config,
)

_INFORMATION = ("command", "started", "machine")
"""Fields that may differ between the parts of one run."""

_LEFT_OUT = ("cli", "reporting")
"""Rooms that show results and make none."""


def describe_run(
    kind: str,
    questions: Questions,
    *,
    program: dspy.Module | None = None,
    lm: dspy.LM | None = None,
    without: tuple[str, ...] = (),
    artifact: str | None = None,
    deadline: float | None = None,
    ves: int = 0,
    predictions_hash: str | None = None,
    described: str | None = None,
) -> RunConfig:
    """The configuration of a run that begins now.

    A program that was loaded from an artifact is known by the artifact's identity, which changes
    when it is compiled anew, and not when it is moved.
    """
    return RunConfig(
        format=FORMAT,
        kind=kind,
        dataset=questions.dataset,
        split=questions.split,
        dataset_hash=questions.hash,
        lm=describe(lm) if lm is not None else None,
        artifact=artifact or _artifact_of(program),
        config=_config_of(program, lm),
        without=sorted(without),
        deadline=deadline,
        ves=ves,
        predictions_hash=predictions_hash,
        described=described,
        version=lynx_dspy.__version__,
        code=code_hash(),
        command=redact(" ".join([Path(sys.argv[0]).name, *sys.argv[1:]])),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores",
    )


def settle(out: Path, config: RunConfig) -> RunConfig:
    """Begin a run in `out`, or go on with the one that is there; its configuration.

    Raises `BadInput` if `out` cannot be written, or holds a run of another configuration.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "it is a file" if out.is_file() else error.strerror
        raise BadInput(f"Cannot write to {out}: {reason}. Name a folder for --out.") from None
    if not (out / RUN).is_file():
        if (out / PREDICTIONS).exists():
            raise BadInput(f"{out} holds {PREDICTIONS} but no {RUN}. Use another --out.")
        write_whole(out / RUN, json.dumps(config, indent=1, ensure_ascii=False) + "\n")
        return config
    before = read_config(out)
    # Compared as JSON gives them back: tuples have become lists.
    now = cast(RunConfig, json.loads(json.dumps(config)))
    for name, value in now.items():
        if name not in _INFORMATION and before.get(name) != value:
            raise BadInput(
                f"{out} holds a run whose {name} differs ({_differing(before.get(name), value)}). "
                "Use another --out, or delete it."
            )
    (out / REPORT).unlink(missing_ok=True)
    return before


@cache
def code_hash() -> str:
    """A hash over the source of what makes results: all of this package but cli and reporting."""
    root = Path(lynx_dspy.__file__).parent
    files = (p for ending in ("*.py", "*.md") for p in root.rglob(ending))
    return files_hash(p for p in files if p.relative_to(root).parts[0] not in _LEFT_OUT)


def sources_hash(sources: Sequence[str | Path]) -> str | None:
    """A hash over the files that describe a run's databases; None if there are none."""
    paths = [Path(str(source).partition("#")[0]) for source in sources]
    inside = (sorted(path.rglob("*")) if path.is_dir() else [path] for path in paths)
    files = [path for some in inside for path in some if path.is_file()]
    return files_hash(files) if sources else None


def _artifact_of(program: dspy.Module | None) -> str | None:
    came_from = origin(program) if program is not None else None
    return came_from.identity if came_from else None


def _config_of(program: dspy.Module | None, lm: dspy.LM | None) -> dict[str, Any] | None:
    if program is None:
        return None
    config = getattr(program, "config", None)
    if config is None and lm is not None:
        config = configs.profile(str(lm.model))
    if not isinstance(config, LynxConfig):
        return None
    return {k: sorted(v) if isinstance(v, frozenset) else v for k, v in asdict(config).items()}


def _differing(before: Any, now: Any) -> str:
    """The first difference of two values, short.

    >>> _differing({"a": 1, "b": 2}, {"a": 1, "b": 3})
    'b: 2 there, 3 now'
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in (*before, *now):
            if before.get(key) != now.get(key):
                return f"{key}: {_differing(before.get(key), now.get(key))}"
    return f"{_clip(before)} there, {_clip(now)} now"


def _clip(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:59] + "…"

"""Ablation: the program with each part left out in turn, over the same questions (Table VI).

Prompts that two variants share are asked once: the second finds the reply in DSPy's cache. So
variants that differ late in the loop cost little beside the full run, which goes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import dspy

from lynx_dspy.ablations import ABLATIONS, ablate
from lynx_dspy.errors import UnknownName
from lynx_dspy.optimize.evaluate import evaluate
from lynx_dspy.optimize.questions import Questions
from lynx_dspy.optimize.records import Report
from lynx_dspy.optimize.runner import Watch
from lynx_dspy.program import Lynx

FULL = "full"

PARTS: tuple[str, ...] = (
    "ssd-saa",
    "semantics",
    "staged-reasoning",
    "delta-memory",
    "revision",
    "verification",
    "static-check",
    "candidates",
)
"""What is left out, one at a time, unless asked otherwise: the paper's rows, then ours."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A finished run of the table: `name` is `full` or the part that it lacks."""

    name: str
    folder: Path
    report: Report


def ablation_study(
    questions: Questions,
    *,
    lm: dspy.LM,
    out: str | Path,
    parts: Sequence[str] = (),
    make: Callable[[], Lynx] = Lynx,
    workers: int = 1,
    deadline: float | None = None,
    watch: Callable[[str], Watch] | None = None,
) -> Iterator[Variant]:
    """Run the full program, then each variant, as they are finished.

    Each has a folder of its own in `out` and resumes by itself. `make` gives the program that parts
    are taken out of; `watch` gives the listener of a variant's progress. Raises `UnknownName` for a
    part that is none, before anything is asked, and what `evaluate` raises.
    """
    chosen = parts or PARTS
    for part in chosen:
        if part not in ABLATIONS:
            raise UnknownName("part for --only", part, ABLATIONS)
    for name in (FULL, *dict.fromkeys(chosen)):
        without = () if name == FULL else (name,)
        folder = Path(out) / name
        report = evaluate(
            ablate(without, make()),
            questions,
            lm=lm,
            out=folder,
            workers=workers,
            deadline=deadline,
            without=without,
            watch=watch(name) if watch else None,
        )
        yield Variant(name, folder, report)

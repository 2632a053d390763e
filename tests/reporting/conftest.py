"""Runs written by hand through the types of `optimize/records.py`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lynx_dspy.metrics.intervals import Interval
from lynx_dspy.optimize import records
from lynx_dspy.optimize.records import AttemptRecord, Record, Report, RunConfig, StageUse

MakeRun = Callable[..., Path]


def make_attempt(round_: int, source: str, status: str, **changes: Any) -> AttemptRecord:
    """An attempt that is right as far as it runs, unless `changes` say otherwise."""
    ran = status in ("ok", "empty")
    return (
        AttemptRecord(
            round=round_,
            source=source,
            code=f"SELECT {round_} FROM {'good' if ran else 'missing'}",
            status=status,
            error="" if ran else f"no such table: missing_{round_}",
            failure_class=None if ran else "schema",
            verified=None,
            extracted=True,
            delta="",
            suggestion="",
            right=ran,
        )
        | changes
    )


def use(stage: str, round_: int, tokens: int, seconds: float = 1.0) -> StageUse:
    """One call of which a tenth of the tokens were written."""
    return StageUse(
        stage=stage,
        round=round_,
        calls=1,
        prompt_tokens=tokens - tokens // 10,
        completion_tokens=tokens // 10,
        billed_tokens=tokens,
        seconds=seconds,
        cut=0,
    )


def make_record(id_: str, tried: Sequence[AttemptRecord] = (), /, **changes: Any) -> Record:
    """A question answered by the last attempt; one right program if none is given."""
    tried = list(tried) or [make_attempt(0, "formulate", "ok")]
    last, stages = tried[-1], [use("generator.formulate", 0, 1000)]
    stages += [use("reviser.repair", r + 1, 500) for r in range(last["round"])]
    tokens = sum(stage["billed_tokens"] for stage in stages)
    found = Record(
        id=id_,
        db="shop",
        dialect="sqlite",
        difficulty="simple",
        question="How many?",
        code=last["code"],
        status=last["status"],
        error=last["error"],
        failure_class=last["failure_class"],
        verified=last["verified"],
        finish="unjudged" if last["status"] in ("ok", "empty") else "failed",
        rounds=last["round"],
        extracted=True,
        attempts=tried,
        right_by_round=[],
        usage={
            "calls": len(stages),
            "prompt_tokens": tokens - tokens // 10,
            "completion_tokens": tokens // 10,
            "total_tokens": tokens,
            "billed_tokens": tokens,
        },
        stages=stages,
        seconds=2.0 * len(stages),
        scores={"ex": float(bool(last["right"])), "soft_f1": 0.5, "soft_f1_cells": 0.25},
        linking=None,
        linked=None,
        failure=None,
    )
    return found | changes


def config(**changes: Any) -> RunConfig:
    """`run.json` of a full run."""
    found = RunConfig(
        format=records.FORMAT,
        kind="eval",
        dataset="sample",
        split="dev",
        dataset_hash="d1",
        lm={"name": "test/small"},
        artifact=None,
        config={"history_tokens": 700},
        without=[],
        deadline=None,
        ves=0,
        predictions_hash=None,
        version="0",
        code="c",
        command="lynx eval",
        started="2026-01-01T00:00:00Z",
        machine="",
    )
    return found | changes


def report(n: int) -> Report:
    """A report of which only the number of questions is read."""
    return Report(
        dataset="sample",
        split="dev",
        dataset_hash="d1",
        n=n,
        scored=n,
        unscored={},
        statuses={},
        scores={"ex": Interval(0.5, 0.0, 1.0, n)},
        executable=None,
        extraction=None,
        tokens_per_question=0.0,
        rounds_mean=0.0,
        seconds_per_question=0.0,
        cost=records.Cost(),
        by_stage={},
        by_round={},
        cut_replies=0,
        finishes={},
        failures={},
        linking={},
        linked={},
        verifier=records.Verifier(),
        changes={},
        ex_by_round=[],
        any_right=None,
        by={},
    )


MENDED = [make_attempt(0, "formulate", "error"), make_attempt(0, "static", "ok")]
REPAIRED = [
    make_attempt(0, "formulate", "error"),
    make_attempt(1, "repair", "error"),
    make_attempt(2, "repair", "ok"),
]
CORRECTED = [
    make_attempt(0, "formulate", "ok", right=False, verified=False, failure_class="semantic"),
    make_attempt(1, "repair", "ok", verified=True),
]
HOPELESS = [make_attempt(0, "formulate", "error"), make_attempt(1, "repair", "error")]
WRONG = [make_attempt(0, "formulate", "ok", right=False)]


def make_mixed() -> list[Record]:
    """Seven questions of three difficulties and two dialects, one of them without a judgement."""
    return [
        make_record("q1"),
        make_record("q2", MENDED, difficulty="moderate"),
        make_record("q3", REPAIRED, difficulty="challenging", dialect="duckdb"),
        make_record("q4", CORRECTED, dialect="duckdb"),
        make_record("q5", HOPELESS, difficulty="moderate", dialect="duckdb"),
        make_record("q6", WRONG),
        make_record("q7", status="gold_broken", scores={}),
    ]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """A factory: name, records, changes to `run.json` -> the run's folder."""

    def make(name: str, found: Sequence[Record], *, finished: bool = True, **changes: Any) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / records.RUN).write_text(json.dumps(config(**changes)))
        lines = [json.dumps(one) + "\n" for one in found]
        (folder / records.PREDICTIONS).write_text("".join(lines))
        if finished:
            (folder / records.REPORT).write_text(json.dumps(report(len(found)).to_json()))
        return folder

    return make


@pytest.fixture
def attempt() -> Callable[..., AttemptRecord]:
    """A factory: round, source, status, changes -> an attempt."""
    return make_attempt


@pytest.fixture
def record() -> Callable[..., Record]:
    """A factory: id, attempts, changes -> a record."""
    return make_record


@pytest.fixture
def mixed() -> list[Record]:
    """The questions of `make_mixed`."""
    return make_mixed()

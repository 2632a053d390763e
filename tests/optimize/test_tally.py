"""The tally: what attempts say of the loop's parts, whatever order records come in."""

from __future__ import annotations

import random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.datasets.examples import example
from lynx_dspy.metrics.intervals import Interval
from lynx_dspy.optimize.pages import report_page
from lynx_dspy.optimize.questions import Questions
from lynx_dspy.optimize.recording import blank
from lynx_dspy.optimize.records import AttemptRecord, Record, Report, RunConfig, Verifier
from lynx_dspy.optimize.runconfig import describe_run
from lynx_dspy.optimize.tally import report_on

CONFIG: RunConfig = describe_run("score", Questions("bird", "dev", "hash", ()))


def attempt(right: bool, source: str = "repair", verified: bool | None = None) -> AttemptRecord:
    return cast(
        AttemptRecord,
        {"source": source, "right": right, "verified": verified, "extracted": True, "round": 0},
    )


def record(id: str, ex: float | None = None, **fields: Any) -> Record:
    one = example(id=id, question="", db="d", database="", dialect="sqlite", rule="bird")
    made: Any = blank(one) | fields
    if ex is not None:
        made |= {"scores": {"ex": ex, "soft_f1": ex / 3}, "status": "ok"}
    return cast(Record, made)


def test_the_verifier_is_judged_by_all_its_verdicts() -> None:
    judged = [
        record("1", 0.0, attempts=[attempt(False, verified=False), attempt(True, verified=True)]),
        record("2", 0.0, attempts=[attempt(True, verified=False), attempt(False, verified=True)]),
        record("3", 0.0, attempts=[attempt(False, verified=False), attempt(False)]),
    ]
    assert report_on(judged, CONFIG).verifier == Verifier(
        rejected_wrong=2,
        rejected_right=1,
        passed_right=1,
        passed_wrong=1,
        precision=pytest.approx(2 / 3, abs=1e-6),  # type: ignore[arg-type]
        recall=pytest.approx(2 / 3, abs=1e-6),  # type: ignore[arg-type]
    )


def test_changes_are_counted_by_who_made_them() -> None:
    attempts = [
        attempt(False, "formulate"),
        attempt(True, "static"),
        attempt(False, "repair"),
        attempt(True, "sample"),
        attempt(True, "repair"),
    ]
    changes = report_on([record("1", 1.0, attempts=attempts)], CONFIG).changes
    assert (changes["static"].repaired, changes["static"].broken) == (1, 0)
    assert (changes["repair"].repaired, changes["repair"].broken) == (0, 1)
    assert (changes["sample"].repaired, changes["sample"].attempts) == (0, 1)


def test_a_candidate_changes_no_other() -> None:
    tried = [attempt(True, "sample"), attempt(False, "formulate"), attempt(True, "static")]
    changes = report_on([record("1", 1.0, attempts=tried)], CONFIG).changes
    assert (changes["formulate"].broken, changes["static"].repaired) == (0, 1)


def test_stopping_earlier_is_told_by_round() -> None:
    rights = [[True], [False, True], [False, False, True], [True, False]]
    found = [record(str(i), 1.0, right_by_round=r) for i, r in enumerate(rights)]
    assert report_on(found, CONFIG).ex_by_round == [0.5, 0.5, 0.75]


@given(scores=st.lists(st.sampled_from([None, 0.0, 1.0]), max_size=30), seed=st.integers(0, 9))
def test_the_order_of_records_does_not_matter(scores: list[float | None], seed: int) -> None:
    found = [record(str(i), score) for i, score in enumerate(scores)]
    mixed = random.Random(seed).sample(found, len(found))
    report, again = report_on(found, CONFIG), report_on(mixed, CONFIG)
    assert report.scores == again.scores
    scored = [s for s in scores if s is not None]
    assert (report.n, report.scored) == (len(scores), len(scored))
    assert report.unscored["unavailable"] == len(scores) - len(scored)
    if scored:
        assert report.scores["ex"].value == pytest.approx(sum(scored) / len(scored))
        assert report.scores["ex"].low <= report.scores["ex"].value <= report.scores["ex"].high
    assert Report.from_json(report.to_json()) == report


def test_official_shares_are_over_all_tasks_of_the_benchmark() -> None:
    spider2 = describe_run("score", Questions("spider2", "lite", "hash", ()))
    right = [record(id, 1.0) for id in ("sf009", "sf010", "bq011")]
    report = report_on([*right, record("sf011", 0.0), record("sf012")], spider2)
    assert report.official == {"547": 3, "544": 2}
    assert "3/547 = 0.55 %, 2/544 = 0.37 %" in report_page(report)
    assert report_on(right, CONFIG).official == {}


def test_nothing_is_no_score() -> None:
    report = report_on([], CONFIG)
    assert (report.n, report.scores, report.executable) == (0, {}, None)


def test_ves_appears_where_it_was_measured() -> None:
    found = record("1", 1.0)
    found["scores"] |= {"r_ves": 1.118, "ves": 2.5}
    assert report_on([found], CONFIG).scores["ves"] == Interval(2.5, 2.5, 2.5, 1)

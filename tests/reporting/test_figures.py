"""What the figures show, against counts made by hand; each is drawn, and drawn alike twice."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import matplotlib
import pytest

from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.metrics.intervals import wilson
from lynx_dspy.optimize.records import AttemptRecord, Record
from lynx_dspy.reporting import FIGURES, make_chart, open_runs
from lynx_dspy.reporting.chart import Chart, Series
from lynx_dspy.reporting.figures import verdicts_by_step
from lynx_dspy.reporting.histories import failed_rounds, lengths
from lynx_dspy.reporting.plots import draw, image

MakeRun = Callable[..., Path]
MakeRecord = Callable[..., Record]
MakeAttempt = Callable[..., AttemptRecord]


def test_attempts_are_shares_that_add_up(make_run: MakeRun, mixed: list[Record]) -> None:
    chart = make_chart("attempts", open_runs([make_run("a", mixed)]))
    (series,) = chart.series
    assert chart.ticks == ("1", "2", "3", "does\nnot run")
    assert series.points == (wilson(3, 6), wilson(1, 6), wilson(1, 6), wilson(1, 6))


def test_a_question_out_of_time_counts_as_failed(make_run: MakeRun, record: MakeRecord) -> None:
    late = record("q", attempts=[], finish="deadline", status="timeout", scores={"ex": 0.0})
    runs = open_runs([make_run("a", [late, record("r")])])
    assert make_chart("attempts", runs).series[0].points == (wilson(1, 2), wilson(1, 2))
    assert make_chart("stages", runs).series[0].points == (wilson(1, 2),) * 4


def test_dialects_leave_a_gap_where_a_run_has_none(make_run: MakeRun, record: MakeRecord) -> None:
    one = make_run("one", [record("q", dialect="sqlite")])
    two = make_run("two", [record("q", dialect="sqlite"), record("r", dialect="duckdb")])
    chart = make_chart("dialects", open_runs([one, two]))
    assert chart.ticks == ("duckdb\nn = 1", "sqlite\nn = 1")
    assert [s.points[0] for s in chart.series] == [None, wilson(1, 1)]


@pytest.mark.parametrize(
    ("question", "verdicts"),
    [
        ("q1", (True, True, True, True)),
        ("q2", (False, True, True, True)),
        ("q3", (False, False, True, True)),
        ("q4", (False, False, False, True)),
        ("q5", (False, False, False, False)),
    ],
)
def test_each_part_of_the_loop_gets_its_due(
    question: str, verdicts: tuple[bool, ...], mixed: list[Record]
) -> None:
    found = {one["id"]: one for one in mixed}
    assert verdicts_by_step(found[question]) == verdicts


def test_history_grows_without_bound_only_if_nothing_is_condensed(attempt: MakeAttempt) -> None:
    tried = [attempt(r, "repair", "error", code=f"SELECT {'column_ ' * 40}") for r in range(8)]
    pairs = lengths(tried, budget=200)
    appended, condensed = zip(*pairs, strict=True)
    assert list(appended) == sorted(set(appended))
    assert max(condensed) <= 200 < appended[-1]
    assert pairs[0][0] == pairs[0][1]


def test_history_holds_one_attempt_a_failed_round(attempt: MakeAttempt) -> None:
    tried = [
        attempt(0, "formulate", "error"),
        attempt(0, "static", "error"),
        attempt(1, "repair", "ok"),
    ]
    assert [a.source for a in failed_rounds(tried)] == ["static"]


def test_history_needs_a_failure(make_run: MakeRun, record: MakeRecord) -> None:
    with pytest.raises(BadInput, match="none has a history"):
        make_chart("history", open_runs([make_run("a", [record("q")])]))


def test_figures_refuse_what_they_cannot_show(make_run: MakeRun, record: MakeRecord) -> None:
    runs = open_runs([make_run(f"r{i}", [record("q")]) for i in range(9)])
    with pytest.raises(BadInput, match="Got 9 runs; a figure shows at most 8"):
        make_chart("attempts", runs)
    with pytest.raises(UnknownName, match="Did you mean 'stages'"):
        make_chart("stage", runs[:1])
    predictions = make_run("predictions", [record("q", attempts=[])], kind="score")
    with pytest.raises(BadInput, match="predictions holds no attempts"):
        make_chart("stages", open_runs([predictions]))


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_alike_twice(
    name: str, make_run: MakeRun, mixed: list[Record]
) -> None:
    runs = open_runs([make_run("full", mixed), make_run("cut", mixed, without=["revision"])])
    before = dict(matplotlib.rcParams)
    chart = make_chart(name, runs)
    png, svg = image(chart, "png"), image(chart, "svg")
    assert png.startswith(b"\x89PNG")
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert b"<dc:date>" not in svg
    assert (image(chart, "png"), image(chart, "svg")) == (png, svg)
    assert dict(matplotlib.rcParams) == before


def test_names_from_files_are_text_in_a_figure() -> None:
    label = r"_a $\frac{1}$ & <b>"
    chart = Chart("t", "T", "x", "y", ("$x",), (Series(label, (wilson(1, 2),), 0),) * 2)
    shown = [text.get_text().strip() for text in draw(chart).legends[0].get_texts()]
    assert shown == [label, label]
    ElementTree.fromstring(image(chart, "svg"))

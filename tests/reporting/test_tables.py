"""The numbers in the tables, against counts made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.metrics.intervals import Interval, mcnemar, wilson
from lynx_dspy.optimize.records import Record
from lynx_dspy.reporting import FORMATS, TABLES, make_table, open_runs, render
from lynx_dspy.reporting.table import Cell, Table

MakeRun = Callable[..., Path]
MakeRecord = Callable[..., Record]


def cells(table: Table) -> list[dict[str, Cell]]:
    keys = [column.key for column in table.columns]
    return [dict(zip(keys, row, strict=True)) for row in table.rows]


def table_of(name: str, *folders: Path) -> list[dict[str, Any]]:
    return cells(make_table(name, open_runs(folders)))


def test_difficulty_splits_and_sums_up(make_run: MakeRun, mixed: list[Record]) -> None:
    rows = table_of("difficulty", make_run("a", mixed))
    assert [(row["level"], row["questions"], row["ex"].value) for row in rows] == [
        ("simple", 4, 2 / 3),
        ("moderate", 2, 0.5),
        ("challenging", 1, 1.0),
        ("all", 7, 4 / 6),
    ]
    assert rows[-1]["ex"] == wilson(4, 6)
    assert rows[2]["tokens"] == 2000


def test_backbones_have_a_row_each(make_run: MakeRun, mixed: list[Record]) -> None:
    other = make_run("b", mixed, lm={"name": "test/large"})
    rows = table_of("backbones", make_run("a", mixed), other)
    assert [row["backbone"] for row in rows] == ["test/small", "test/large"]
    assert rows[0]["rounds"] == pytest.approx(4 / 7)
    assert rows[0]["tokens"] == pytest.approx((7 * 1000 + 4 * 500) / 7)


def test_executability_counts_programs_that_run(make_run: MakeRun, mixed: list[Record]) -> None:
    (row,) = table_of("executability", make_run("a", mixed))
    assert row["executable"] == wilson(5, 6)
    assert row["attempts"] == pytest.approx(11 / 7)
    assert row["within_few"] == wilson(5, 6)


def test_a_fourth_attempt_is_not_within_three(
    make_run: MakeRun, record: MakeRecord, attempt: Callable[..., Any]
) -> None:
    late = [attempt(r, "repair", "ok" if r == 3 else "error") for r in range(4)]
    (row,) = table_of("executability", make_run("a", [record("q1", late), record("q2")]))
    assert row["executable"].value == 1.0
    assert row["within_few"].value == 0.5


def test_levels_show_each_score_with_its_own_n(make_run: MakeRun, record: MakeRecord) -> None:
    found = [
        record("q1", scores={"ex": 1.0, "soft_f1": 1.0, "r_ves": 1.25}),
        record("q2", scores={"ex": 0.0, "soft_f1": 0.5}),
    ]
    row = table_of("levels", make_run("a", found))[-1]
    assert (row["soft_f1"].value, row["soft_f1"].n) == (0.75, 2)
    assert row["r_ves"] == Interval(1.25, 1.25, 1.25, 1)
    assert row["ves"] is None


def test_intervals_do_not_depend_on_the_order_of_answers(
    make_run: MakeRun, record: MakeRecord
) -> None:
    found = [record(f"q{i}", scores={"ex": 1.0, "soft_f1": i / 9}) for i in range(10)]
    first, second = make_run("a", found), make_run("b", found[::2] + found[1::2])
    rows = table_of("levels", first, second)
    assert rows[0]["soft_f1"] == rows[-1]["soft_f1"]


def test_ablations_compare_by_pairs(make_run: MakeRun, record: MakeRecord) -> None:
    def answers(*right: bool) -> list[Record]:
        return [record(f"q{i}", scores={"ex": float(r)}) for i, r in enumerate(right)]

    worse = make_run("worse", answers(True, False, False, False), without=["jit"])
    full, row = table_of("ablations", worse, make_run("full", answers(True, True, True, False)))
    assert (full["variant"], full["relative_loss"], full["p"]) == ("full", None, None)
    assert row["variant"] == "w/o jit"
    assert row["difference"].value == -0.5
    assert row["relative_loss"] == pytest.approx(2 / 3)
    assert row["p"] == mcnemar([True, True, True, False], [True, False, False, False])


def test_ablations_pair_only_what_both_were_judged_on(
    make_run: MakeRun, record: MakeRecord
) -> None:
    full = make_run("full", [record("q1"), record("q2", scores={}, status="unavailable")])
    part = make_run("part", [record("q1"), record("q2", scores={"ex": 0.0})], without=["jit"])
    row = table_of("ablations", full, part)[1]
    assert row["ex"].n == 2
    assert (row["difference"].value, row["difference"].n) == (0.0, 1)


def test_ablations_refuse_what_does_not_compare(make_run: MakeRun, record: MakeRecord) -> None:
    full, part = make_run("full", [record("q")]), make_run("part", [record("q")], without=["jit"])
    with pytest.raises(BadInput, match="Got 0 full runs among 1"):
        table_of("ablations", part)
    with pytest.raises(BadInput, match="Got 2 full runs among 2"):
        table_of("ablations", full, make_run("again", [record("q")]))
    with pytest.raises(BadInput, match="lacks 1 questions"):
        table_of("ablations", full, make_run("other", [record("r")], without=["jit"]))
    large = make_run("large", [record("q")], without=["jit"], lm={"name": "test/large"})
    with pytest.raises(BadInput, match="large ran with test/large and full with test/small"):
        table_of("ablations", full, large)


def test_agents_sum_over_their_stages(make_run: MakeRun, mixed: list[Record]) -> None:
    rows = table_of("agents", make_run("a", mixed))
    named = {(row["agent"], row["stage"]): row for row in rows}
    assert list(named) == [
        ("generator", "all"),
        ("generator", "generator.formulate"),
        ("reviser", "all"),
        ("reviser", "reviser.repair"),
        ("all", "all"),
    ]
    assert named["reviser", "all"]["calls"] == pytest.approx(4 / 7)
    assert named["reviser", "all"]["share_of_tokens"] == pytest.approx(2000 / 9000)
    assert named["generator", "all"]["seconds"] == 1.0
    assert named["all", "all"]["seconds"] == pytest.approx(2 * 11 / 7)


def test_dialects_have_their_own_scores(make_run: MakeRun, mixed: list[Record]) -> None:
    rows = table_of("dialects", make_run("a", mixed))
    assert [(row["dialect"], row["ex"]) for row in rows] == [
        ("duckdb", wilson(2, 3)),
        ("sqlite", wilson(2, 3)),
        ("all", wilson(4, 6)),
    ]


def test_outcomes_share_out_the_judged(make_run: MakeRun, mixed: list[Record]) -> None:
    rows = table_of("outcomes", make_run("a", mixed))
    assert [(row["outcome"], row["share"]) for row in rows] == [
        ("right", wilson(4, 6)),
        ("wrong", wilson(1, 6)),
        ("failed", wilson(1, 6)),
    ]
    assert [row["tokens"] for row in rows] == [(1000 + 1000 + 2000 + 1500) / 4, 1000, 1500]


def test_unknown_table_names_the_near_one(make_run: MakeRun, mixed: list[Record]) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'levels'"):
        make_table("level", open_runs([make_run("a", mixed)]))


def test_predictions_of_others_have_scores_and_no_costs(
    make_run: MakeRun, record: MakeRecord
) -> None:
    others = record("q", finish="scored", attempts=[], stages=[], seconds=0.0)
    folder = make_run("others", [others], kind="score", lm=None, config=None)
    (row,) = table_of("backbones", folder)
    assert (row["backbone"], row["ex"].value) == ("predictions", 1.0)
    assert row["tokens"] is row["rounds"] is None
    assert table_of("agents", folder) == []


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("form", FORMATS)
def test_every_table_in_every_format(
    name: str, form: str, make_run: MakeRun, mixed: list[Record]
) -> None:
    runs = open_runs([make_run("full", mixed), make_run("cut", mixed, without=["revision"])])
    text = render(make_table(name, runs), form)
    assert "full" in text
    assert text.endswith("\n")

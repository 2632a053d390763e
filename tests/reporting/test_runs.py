"""Runs are refused unless they are whole, different, and paired where a table needs pairs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lynx_dspy.errors import BadInput
from lynx_dspy.optimize.records import PREDICTIONS, Record
from lynx_dspy.reporting.runs import by_field, open_runs, same_questions

MakeRun = Callable[..., Path]
MakeRecord = Callable[..., Record]


def test_labels_are_the_shortest_that_differ(make_run: MakeRun, record: MakeRecord) -> None:
    folders = [make_run(name, [record("q")]) for name in ("x/full", "y/full", "z/plain")]
    assert [run.label for run in open_runs(folders)] == ["x/full", "y/full", "z/plain"]
    assert [run.label for run in open_runs(folders[1:])] == ["full", "plain"]


def test_variant_names_what_was_left_out(make_run: MakeRun, record: MakeRecord) -> None:
    found = [
        make_run("a", [record("q")]),
        make_run("b", [record("q")], without=["jit", "demos"]),
        make_run("c", [record("q")], kind="score", lm=None, config=None),
    ]
    assert [run.variant for run in open_runs(found)] == ["full", "w/o jit, demos", "predictions"]
    assert [run.backbone for run in open_runs(found)] == ["test/small", "test/small", ""]


def test_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Got no run"):
        open_runs([])
    with pytest.raises(BadInput, match=r"holds no run\.json"):
        open_runs([tmp_path])


def test_unfinished_runs_are_refused(make_run: MakeRun, record: MakeRecord) -> None:
    stopped = make_run("stopped", [record("q")], finished=False)
    with pytest.raises(BadInput, match="is not finished: it holds 1 answers"):
        open_runs([stopped])
    cut = make_run("cut", [record("q"), record("r")])
    lines = (cut / PREDICTIONS).read_text().splitlines(keepends=True)
    (cut / PREDICTIONS).write_text(lines[0])
    with pytest.raises(BadInput, match="is not finished: it holds 1 of 2 answers"):
        open_runs([cut])


def test_a_run_counts_once(make_run: MakeRun, record: MakeRecord) -> None:
    folder = make_run("a", [record("q")])
    with pytest.raises(BadInput, match="twice"):
        open_runs([folder, folder.parent / "." / "a"])


def test_pairs_need_the_same_ids(make_run: MakeRun, record: MakeRecord) -> None:
    runs = open_runs(
        [
            make_run("a", [record("q1"), record("q2")]),
            make_run("b", [record("q2"), record("q3"), record("q4")]),
            make_run("c", [record("q1"), record("q2")], dataset_hash="d2", split="test"),
        ]
    )
    same_questions([runs[0]])
    with pytest.raises(BadInput, match="b lacks 1 questions of a and has 2 others"):
        same_questions(runs[:2])
    with pytest.raises(BadInput, match=r"\(sample test and sample dev\)"):
        same_questions([runs[0], runs[2]])


def test_groups_keep_the_order_of_the_benchmark(record: MakeRecord) -> None:
    found = [record(level, difficulty=level) for level in ("hard", "", "easy", "odd")]
    groups = by_field("difficulty", ("easy", "hard"))(found)
    assert [label for label, _ in groups] == ["easy", "hard", "(none)", "odd"]

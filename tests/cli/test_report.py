"""`lynx report`: what it writes where, and one line for what it cannot do."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from lynx_dspy.cli import main

_SPEC = importlib.util.spec_from_file_location(
    "runs_by_hand", Path(__file__).parents[1] / "reporting/conftest.py"
)
assert _SPEC and _SPEC.loader
_BY_HAND = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_BY_HAND)
make_run = _BY_HAND.make_run
mixed = _BY_HAND.mixed


@pytest.fixture
def run(make_run: Callable[..., Path], mixed: list[object]) -> str:
    """A finished run."""
    return str(make_run("full", mixed))


def test_a_table_goes_to_stdout(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", run, "--table", "levels"]) == 0
    assert capsys.readouterr().out.startswith("**EX, VES and Soft-F1 by level")


@pytest.mark.parametrize(
    ("name", "begins"), [("t.csv", "run,level"), ("t.tex", r"\begin{table}"), ("t.md", "**EX")]
)
def test_a_file_is_written_as_it_is_called(
    run: str, name: str, begins: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / name
    assert main(["report", run, "--table", "difficulty", "--out", str(out)]) == 0
    assert out.read_text().startswith(begins)
    assert capsys.readouterr().out == ""


def test_a_figure_without_suffix_is_written_twice(run: str, tmp_path: Path) -> None:
    out = tmp_path / "stages"
    assert main(["report", run, "--figure", "stages", "--out", str(out)]) == 0
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert out.with_suffix(".svg").read_bytes().startswith(b"<?xml")


def test_a_figure_with_suffix_is_written_once(run: str, tmp_path: Path) -> None:
    assert main(["report", run, "--figure", "stages", "--out", str(tmp_path / "s.svg")]) == 0
    assert [path.name for path in tmp_path.glob("s.*")] == ["s.svg"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--table", "level"], "Unknown table 'level'. Did you mean 'levels'?"),
        (["--figure", "stage"], "Unknown figure 'stage'. Did you mean 'stages'?"),
        (["--table", "levels", "--format", "cvs"], "Unknown table format 'cvs'"),
        (["--figure", "stages", "--out", "x.pdf"], "Unknown picture format 'pdf'"),
        (["--figure", "stages", "--format", "csv"], "--format is of tables"),
        ([], "give one of --table NAME and --figure NAME"),
        (["--table", "levels", "--figure", "stages"], "give one of"),
        (["--table", "levels", "--out", "/dev/null/x"], "Cannot write /dev/null/x"),
    ],
)
def test_a_bad_call_is_one_line(
    run: str, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", run, *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert says in captured.err
    assert captured.err.count("\n") == 1


def test_bad_runs_are_one_line(
    make_run: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = make_run("stopped", [], finished=False)
    for folder, says in ((tmp_path, "holds no run.json"), (stopped, "is not finished")):
        assert main(["report", str(folder), "--table", "levels"]) == 2
        error = capsys.readouterr().err
        assert says in error
        assert error.count("\n") == 1

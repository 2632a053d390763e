"""What a run shows while it goes on."""

from __future__ import annotations

import pytest

from lynx_dspy.cli.runs import Bar, line
from lynx_dspy.optimize.runner import Progress

BEGUN = Progress(total=40, done=10, scored=8, right=4, unavailable=2, tokens=12_345)
ON = Progress(total=40, done=11, asked=1, scored=9, right=5, unavailable=2, tokens=13_000)


def test_the_figures_beside_the_bar() -> None:
    assert line(BEGUN) == "EX 50.0 %, 12,345 tokens, 2 unavailable"
    assert line(Progress(total=3)) == ""


def test_a_terminal_gets_a_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with Bar() as bar:
        bar.watch(BEGUN)
        bar.watch(ON)
    said = capsys.readouterr()
    assert "11/40" in said.err
    assert "EX 55.6 %" in said.err
    assert said.out == ""


def test_a_file_gets_a_line_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar() as bar:
        bar.watch(Progress(total=2, done=1, asked=1))
        bar.watch(Progress(total=2, done=2, asked=2, scored=2, right=1))
    assert capsys.readouterr().err == "2/2 EX 50.0 %\n"

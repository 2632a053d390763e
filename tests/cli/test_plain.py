"""What comes from a database or a model may not steer the terminal that shows it."""

from __future__ import annotations

import io
import json
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lynx_dspy.cli.plain import echo_json, one_line, visible
from lynx_dspy.cli.show import attempt_lines, program_view, result_view, show_answer
from lynx_dspy.values import Attempt, Outcome, Status, UsageReport

EVIL = "\x1b]0;title\x07\x9b31m\u202e\r"


@given(st.text(st.characters()))
def test_visible_text_can_be_encoded_and_holds_no_control_character(text: str) -> None:
    shown = visible(text)
    shown.encode()
    assert all(c in "\t\n" or not (ord(c) < 32 or 127 <= ord(c) < 160) for c in shown)


@given(st.text(max_size=3_000))
def test_one_line_is_one_short_line(text: str) -> None:
    assert len(one_line(text)) <= 1_000
    assert "\n" not in one_line(text)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_result_shows_what_would_steer_the_terminal(terminal: bool) -> None:
    outcome = Outcome(Status.OK, (EVIL,), ((EVIL,), (b"\x1b",), (None,)))
    sink = io.StringIO()
    console = Console(file=sink, force_terminal=terminal, color_system=None, width=120)
    console.print(result_view(outcome))
    console.print(result_view(Outcome(Status.ERROR, error=EVIL)))
    console.print(program_view(f"SELECT '{EVIL}'", console))
    assert not set(sink.getvalue()) & set("\x1b\x07\x9b\u202e\r")
    assert r"\x1b]0;title\x07\x9b31m\u202e" in sink.getvalue()


def test_an_attempt_keeps_its_lines() -> None:
    attempt = Attempt(0, "SELECT 1\nFROM t", Outcome(Status.OK), "formulate")
    assert "SELECT 1\nFROM t" in attempt_lines(attempt)


def test_json_is_one_ascii_line(capsys: pytest.CaptureFixture[str]) -> None:
    record: dict[str, Any] = {"a": ["é😀\x9b\ud800", None, 10**30]}
    echo_json(record)
    said = capsys.readouterr().out
    assert said.isascii() and said.count("\n") == 1
    assert json.loads(said) == record


def test_a_long_program_is_not_wrapped_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    code = f"SELECT '{'a b ' * 100}'"
    answer = dspy.Prediction(
        code=code,
        outcome=Outcome(Status.OK, ("a",), ((1,),)),
        verified=True,
        explanation="",
        mismatch="",
        agreement=(1, 1),
        attempts=(),
        usage=UsageReport({}),
        seconds=0.1,
    )
    show_answer(answer)
    assert code in capsys.readouterr().out.splitlines()

"""`lynx ask --language python`: where the data is named, and what a wrong call is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from lynx_dspy.cli import main
from lynx_dspy.cli.ask import _place
from lynx_dspy.cli.doctor import _sandbox


@pytest.mark.parametrize(
    ("url", "data", "language", "place"),
    [
        ("", "shop", "python", "frames:///shop"),
        ("", "/data/shop", "python", "frames:////data/shop"),
        ("shop", "", "python", "frames:///shop"),
        ("files:///shop", "", "python", "frames:///shop"),
        ("frames:////data/shop", "", "python", "frames:////data/shop"),
        ("shop.sqlite", "", "sql", "shop.sqlite"),
    ],
)
def test_where_the_data_is(url: str, data: str, language: str, place: str) -> None:
    assert _place(url, data, language) == place


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--db"),
        (["--data", "shop"], "--language python"),
        (["--db", "a", "--data", "b", "--language", "python"], "Name one of"),
        (["--data", "shop", "--language", "R"], "python"),
        (["--data", "nowhere-at-all", "--language", "python"], "no such file or folder"),
    ],
)
def test_a_call_that_cannot_be_carried_out_is_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ask", "How many?", *arguments]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told


def test_sql_on_frames_and_python_on_a_database_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "b.sql").write_text("SELECT 1")
    assert main(["ask", "Q?", "--language", "python", "--db", str(tmp_path / "b.sql")]) == 2
    assert "SQL script" in capsys.readouterr().err


def test_the_doctor_tells_every_layer() -> None:
    layers = _sandbox()
    assert layers["limits"] == layers["audit hook"] == "on"
    assert {"seccomp", "landlock", "network namespace"} <= layers.keys()

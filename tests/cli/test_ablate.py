"""`lynx ablate` over a real HTTP service: every variant, one table, nothing asked twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from lynx_dspy.cli import main


@pytest.fixture
def ablate(data: Path, tmp_path: Path, service: Any) -> Callable[..., int]:
    name = f"openai/tiny-{uuid4().hex}"

    def call(*more: str) -> int:
        fixed = ["--dataset", "jsonl", "--data", str(data), "--lm", name]
        return main(["ablate", *fixed, "--out", str(tmp_path / "study"), *more])

    return call


def test_each_part_is_left_out_in_turn(
    ablate: Callable[..., int], service: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = ("staged-reasoning", "verification", "candidates")
    assert ablate("--json", *(word for part in parts for word in ("--only", part))) == 0
    rows = json.loads(capsys.readouterr().out)["variants"]
    assert [row["variant"] for row in rows] == ["full", *(f"w/o {part}" for part in parts)]
    assert [row["ex"] for row in rows] == [0.5] * 4
    tokens = {row["variant"]: row["tokens"] for row in rows}
    assert tokens["w/o staged-reasoning"] < tokens["full"] == tokens["w/o candidates"] == 5 * 59
    folder = tmp_path / "study"
    assert {p.name for p in folder.iterdir()} == {
        *parts, "full", "ablations.md", "ablations.png", "ablations.svg"
    }  # fmt: skip
    assert len(set(service.asked)) == len(service.asked) < 4 * 4 * 3

    asked = len(service.asked)
    assert ablate("--only", "verification") == 0
    assert len(service.asked) == asked
    assert "| w/o verification |" in capsys.readouterr().out


def test_an_unknown_part_is_refused_before_anything_is_asked(
    ablate: Callable[..., int], service: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ablate("--only", "everything") == 2
    assert "everything" in capsys.readouterr().err
    assert not service.asked

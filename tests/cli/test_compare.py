"""`lynx compare` and `lynx track` over runs of two backbones: table, picture, errors."""

from __future__ import annotations

import importlib.util
import json
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
make_run, make_mixed, make_record = _BY_HAND.make_run, _BY_HAND.make_mixed, _BY_HAND.make_record


def test_variants_of_two_backbones_side_by_side(
    make_run: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    better = [make_record(f"q{n}") for n in range(1, 7)]
    runs = [
        make_run("a", make_mixed()),
        make_run("b", better, artifact="demos@1f"),
        make_run("c", make_mixed(), lm={"name": "test/large"}),
        make_run("d", better, lm={"name": "test/large"}, without=["verification"]),
    ]
    assert main(["track", *map(str, runs), str(runs[0])]) == 0
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 5 and told[0] == told[4]

    assert main(["compare", "--out", "cost"]) == 0
    out = capsys.readouterr().out
    assert Path("cost.png").read_bytes().startswith(b"\x89PNG") and Path("cost.svg").is_file()
    rows = [line.split(" | ")[1:7] for line in out.splitlines() if line.startswith("| sample")]
    assert [(row[0], row[1], row[2][:5]) for row in rows] == [
        ("test/large", "un-compiled w/o verification", "100.0"),
        ("test/large", "un-compiled", "66.7 "),
        ("test/small", "demos", "100.0"),
        ("test/small", "un-compiled", "66.7 "),
    ]
    assert rows[0][5] == "0.500", "two of six gained: McNemar"

    assert main(["compare", "--backbone", "test/small", "--baseline", "demos", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["variants"]
    assert [(row["variant"], row["difference"]) for row in found] == [
        ("demos", None), ("un-compiled", pytest.approx(-1 / 3))
    ]  # fmt: skip

    for option, said in (("--dataset", "Unknown tracked dataset"), ("--baseline", "--baseline")):
        assert main(["compare", option, "other"]) == 2
        captured = capsys.readouterr()
        assert captured.out == "" and said in captured.err and captured.err.count("\n") == 1

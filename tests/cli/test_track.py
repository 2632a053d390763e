"""`lynx track` and `--track`, `--trace-mlflow` of other commands, on the project's own store."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from mlflow import MlflowClient

from lynx_dspy.cli import main
from lynx_dspy.tracking import Store

_SPEC = importlib.util.spec_from_file_location(
    "compile_by_hand", Path(__file__).with_name("test_compile.py")
)
assert _SPEC and _SPEC.loader
_COMPILE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_COMPILE)
mine, prompts, compile_mine = _COMPILE.mine, _COMPILE.prompts, _COMPILE.compile_mine


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own without a store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tmp_path


def test_a_compile_is_tracked_at_its_end_and_compared(
    compile_mine: Callable[..., int],
    prompts: list[str],
    project: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert compile_mine(*_COMPILE.PLAIN, *_COMPILE.SMALL, "--json", "--track") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["kept"] and "tracked demos seed 0: run " in captured.err
    assert "MLFLOW_TRACKING_URI" not in os.environ

    assert main(["compare", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["variants"]
    assert [(row["variant"].split(" w/o ")[0], row["ex"]) for row in rows] == [
        ("demos", 1.0), ("un-compiled", 0.0)
    ]  # fmt: skip
    assert rows[0]["tokens"] > 0 and rows[0]["questions_of"] == "csv val"

    artifact = str(project / "artifacts/tiny/mine")
    assert main(["track", artifact, "--json"]) == 0
    (again,) = json.loads(capsys.readouterr().out)["tracked"]
    assert again["run_id"] in captured.err, "what is there is not logged again"
    assert main(["track", "sync"]) == 0
    assert capsys.readouterr().out == "Nothing is waiting.\n"


def test_traces_have_a_span_a_stage(
    data: Path, service: Any, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["eval", "--dataset", "jsonl", "--data", str(data), "--limit", "1", "--out", "run"]
    assert main([*call, "--lm", f"openai/tiny-{uuid4().hex}", "--trace-mlflow"]) == 0
    store = Store()
    (trace,) = MlflowClient(store.uri).search_traces([store.experiment("lynx-jsonl")])
    names = [span.name for span in trace.data.spans]
    assert names[0] == "Lynx.forward"
    assert {"Formulate.forward", "Compare.forward"} <= set(names)
    assert "none-needed-here" not in json.dumps([span.to_dict() for span in trace.data.spans])
    assert "No traces" not in capsys.readouterr().err


def test_a_server_that_is_down_changes_no_result(
    data: Path, service: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:secret-word@127.0.0.1:9")
    call = ["eval", "--dataset", "jsonl", "--data", str(data), "--limit", "1", "--out", "run"]
    more = ["--lm", f"openai/tiny-{uuid4().hex}", "--track", "--trace-mlflow", "--json"]
    assert main([*call, *more]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["n"] == 1
    assert "No traces: " in captured.err and "Send it with lynx track sync." in captured.err
    assert main(["track", "sync"]) == 1
    assert main(["compare"]) == 2
    later = capsys.readouterr()
    assert later.err.startswith("lynx: Cannot read the MLflow store http://***@127")
    assert "secret-word" not in captured.err + later.out + later.err


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (["track", "."], "holds neither a run of lynx eval, nor an artifact"),
        (["compare"], "Nothing is tracked in"),
    ],
)
def test_a_call_that_cannot_be_carried_out_is_one_line(
    call: list[str], said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(call) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and said in captured.err and captured.err.count("\n") == 1

"""`lynx artifact` and `--artifact`, as a user meets them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import dspy
import pytest

from lynx_dspy.cli import main
from lynx_dspy.config import LynxConfig
from lynx_dspy.metrics.intervals import Interval
from lynx_dspy.optimize.artifact import Manifest, save
from lynx_dspy.optimize.manifest import Backbone, RecipeRun, Scores, SplitRecord, Used
from lynx_dspy.program import Lynx

DEMO = {
    "dialect": "sqlite",
    "grounding": "g",
    "syntax": "",
    "intent": "i",
    "question": "How many orders?",
    "code": "SELECT COUNT(*)\nFROM orders",
}


def variant(folder: Path, name: str, *, top_k: int = 6, demos: int = 0, brief: bool = False) -> str:
    program = Lynx(config=LynxConfig(adapter="fenced", top_k=top_k))
    stage = program.generator.formulate
    stage.demos = [dspy.Example(**DEMO | {"intent": f"count {n}"}) for n in range(demos)]
    if brief:
        stage.signature = stage.signature.with_instructions("Be brief.\x1b[31m")
    manifest = Manifest(
        variant=name,
        backbone=Backbone(name="openai/tiny", quantisation="Q4"),
        recipe=RecipeRun(name="demos", budget={"lm_calls": 50}, used=Used(lm_calls=42)),
        splits={"train": SplitRecord(hash="ab12", n=105, dataset="sql_eval")},
        scores={"val": {"compiled": Scores(ex=Interval(0.5, 0.25, 0.75, 40))}},
    )
    return str(save(program, folder / name, manifest, [{"id": "q1", "ex": 1.0}]))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("artifacts")
    return variant(folder, "first", demos=1), variant(
        folder, "second", demos=2, top_k=3, brief=True
    )


def printed(capsys: Any, *arguments: str, code: int = 0) -> str:
    assert main(["artifact", *arguments]) == code
    return str(capsys.readouterr().out)


def test_show_says_what_it_is(capsys: Any, both: tuple[str, str]) -> None:
    said = printed(capsys, "show", both[1])
    for part in (
        "second@",
        "openai/tiny (quantisation Q4)",
        "recipe: demos, seed 0",
        "lm_calls 50; used 42 calls",
        "train: 105 questions of sql_eval",
        "50.0 [25.0, 75.0] n=40",
        "top_k 3",
        "── generator.formulate: 2 demos",
        "  Be brief.\\x1b[31m",
        "      SELECT COUNT(*)",
    ):
        assert part in said
    assert "\x1b" not in said


def test_show_as_json(capsys: Any, both: tuple[str, str]) -> None:
    found = json.loads(printed(capsys, "show", both[0], "--json"))
    assert found["identity"].startswith("first@")
    assert found["manifest"]["recipe"]["used"]["lm_calls"] == 42
    assert found["stages"]["generator.formulate"]["demos"][0]["code"] == DEMO["code"]


def test_diff_shows_demos_instructions_and_config(capsys: Any, both: tuple[str, str]) -> None:
    said = printed(capsys, "diff", *both)
    assert "config.top_k: 6 -> 3" in said
    assert "  +Be brief." in said
    assert "  -Write one SQL query" in said
    assert "  +   intent: count 1" in said
    assert "intent: count 0" not in said
    assert "1 demos stay" in said
    found = json.loads(printed(capsys, "diff", *both, "--json"))
    assert found["manifest"]["config.top_k"] == [6, 3]
    assert len(found["stages"]["generator.formulate"]["demos"]["added"]) == 1


def test_diff_of_one_with_itself(capsys: Any, both: tuple[str, str]) -> None:
    assert "no differences" in printed(capsys, "diff", both[0], both[0])


def test_verify(capsys: Any, both: tuple[str, str], tmp_path: Path) -> None:
    assert "as recorded" in printed(capsys, "verify", *both)
    spoilt = Path(variant(tmp_path, "spoilt"))
    path = spoilt / "eval.jsonl"
    path.write_text(path.read_text().replace("1.0", "0.0"))
    said = printed(capsys, "verify", both[0], str(spoilt), code=1)
    assert f"{spoilt}: eval.jsonl was changed after it was saved" in said
    found = json.loads(printed(capsys, "verify", str(spoilt), "--json", code=1))
    assert found["ok"] is False
    assert len(found["differences"][str(spoilt)]) == 1


@pytest.mark.parametrize("call", ["show", "verify", "diff", "ask"])
@pytest.mark.parametrize("content", [None, "[" * 99_999, '{"format": 9}', "NaN", '{"x": 1}'])
def test_what_is_no_artifact_is_one_line(
    capsys: Any, tmp_path: Path, call: str, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    folder = str(tmp_path)
    arguments = {
        "show": ["artifact", "show", folder],
        "verify": ["artifact", "verify", folder],
        "diff": ["artifact", "diff", folder, folder],
        "ask": ["ask", "How many?", "--db", "sqlite:///x", "--artifact", folder],
    }[call]
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "manifest.json" in said.err


def test_warnings_are_lines_on_stderr(capsys: Any, tmp_path: Path) -> None:
    folder = Path(variant(tmp_path, "old"))
    record = json.loads((folder / "manifest.json").read_text())
    record["packages"]["dspy"] = "2.0"
    (folder / "manifest.json").write_text(json.dumps(record))
    assert main(["artifact", "verify", str(folder)]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith("warning: The artifact old was made with other packages: dspy 2.0")


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = tmp_path / "store.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    connection.close()
    return str(path)


def test_ask_runs_the_artifact_and_tells_of_another_model(
    capsys: Any, store: str, both: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing listens at the address: what is told before the first call is looked at."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none-at-all-0123456789")
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/v1")
    call = ["ask", "How many?", "--db", store, "--artifact", both[1], "--lm", "openai/other"]
    assert main(call) == 2
    said = capsys.readouterr().err
    assert said.count("compiled for another backbone: model openai/tiny there, openai/other") == 1

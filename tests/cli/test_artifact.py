"""`lynx artifact` and `--artifact`, as a user meets them."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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


PROGRAM = "SELECT COUNT(*) FROM orders"


class Service(BaseHTTPRequestHandler):
    """A chat service of OpenAI's form that answers every stage with the same program."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": f"Analysis: -\n```sql\n{PROGRAM}\n```"}
        body = {
            "id": "1", "object": "chat.completion", "created": 1, "model": "tiny",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59},
        }  # fmt: skip
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: object) -> None:
        """Nothing on stderr: it is looked at."""


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none-at-all-0123456789")
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{server.server_port}/v1")
    yield
    server.shutdown()
    server.server_close()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO orders VALUES (1), (2)")
    connection.close()
    return path


@pytest.mark.usefixtures("service")
def test_ask_runs_the_artifact_and_tells_of_another_model(
    capsys: Any, store: Path, both: tuple[str, str]
) -> None:
    call = ["ask", "How many orders are there?", "--db", str(store), "--lm", "openai/other"]
    assert main([*call, "--artifact", both[1], "--json"]) == 0
    said = capsys.readouterr()
    assert said.err.count("for another backbone: model openai/tiny there, openai/other") == 1
    answer = json.loads(said.out)
    assert answer["artifact"].startswith("second@")
    assert answer["rows"] == [[2]]


@pytest.mark.usefixtures("service")
def test_eval_goes_on_with_the_same_artifact_only(capsys: Any, store: Path, tmp_path: Path) -> None:
    row = {"id": "q1", "db": "store", "question": "How many orders?", "gold_sql": PROGRAM}
    (tmp_path / "test.jsonl").write_text(json.dumps({**row, "database": "store.sqlite"}) + "\n")
    folder = variant(tmp_path, "mine")
    call = ["eval", "--dataset", "jsonl", "--data", str(tmp_path), "--out", str(tmp_path / "run"),
            "--lm", "openai/tiny", "--artifact"]  # fmt: skip
    assert main([*call, folder]) == 0, capsys.readouterr().err
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["artifact"].startswith("mine@")
    Path(folder).rename(tmp_path / "moved")
    assert main([*call, str(tmp_path / "moved")]) == 0
    capsys.readouterr()
    assert main([*call, variant(tmp_path, "mine", demos=1)]) == 2
    assert "holds a run whose artifact differs (mine@" in capsys.readouterr().err

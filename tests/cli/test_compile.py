"""`lynx compile` as a user meets it, over a real HTTP service that is right once it is shown."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import uuid4

import pytest

import lynx_dspy as lynx
from lynx_dspy.cli import main
from lynx_dspy.cli.compile import line
from lynx_dspy.optimize.budget import Progress, Spent

RIGHT = "SELECT COUNT(*) FROM customers"


def replied(prompt: str) -> dict[str, object]:
    """Right where the prompt holds a demo: the word `assistant` stands in no other."""
    code = RIGHT if '"assistant"' in prompt else "SELECT 7"
    fields = dict.fromkeys(("semantic", "structural", "intent", "grounding", "analysis"), "-")
    content = fields | {"code": code, "terms": [], "links": [], "explanation": "counts"}
    content |= {"consistent": True, "mismatch": "", "summary": "-", "suggestion": "-"}
    message = {"role": "assistant", "content": json.dumps(content)}
    return {
        "id": "1", "object": "chat.completion", "created": 1, "model": "tiny",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59},
    }  # fmt: skip


@pytest.fixture
def prompts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What a service of OpenAI's form was sent."""
    sent: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            text = json.dumps(replied(sent[-1])).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OPENAI_API_KEY", "none-needed-here")
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{server.server_port}/v1")
    yield sent
    server.shutdown()
    server.server_close()


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Own questions, three to learn from and two to choose by."""
    folder = tmp_path / "mine"
    folder.mkdir()
    with sqlite3.connect(folder / "shop.sqlite") as connection:
        connection.execute("CREATE TABLE customers (id INTEGER)")
        connection.execute("INSERT INTO customers VALUES (1), (2)")
    connection.close()
    for name, n in (("train", 3), ("val", 2)):
        # Golds differ in their text: equal ones would be leaks.
        rows = [
            f"{name}{k} {name}s{k} of {name}{k}x?,shop.sqlite,"
            f"SELECT COUNT(*) AS {name}{k} FROM customers"
            for k in range(n)
        ]
        (folder / f"{name}.csv").write_text("question,database,gold_sql\n" + "\n".join(rows))
    return folder


@pytest.fixture
def compile_mine(mine: Path, tmp_path: Path) -> Callable[..., int]:
    """`lynx compile` with some options; each test has a model of its own, for DSPy's cache."""
    model = f"openai/tiny-{uuid4().hex}"

    def run(*options: str) -> int:
        return main(
            ["compile", "--dataset", "csv", "--data", str(mine), "--lm", model,
             "--out", str(tmp_path / "artifacts/tiny/mine"), *options]
        )  # fmt: skip

    return run


PLAIN = tuple(
    word
    for part in ("semantics", "jit", "staged-reasoning", "verification", "revision")
    for word in ("--without", part)
)
SMALL = ("--set", "sets=1", "--set", "sizes=2", "--set", "labels=gold", "--set", "rungs=1")


def test_from_a_table_of_questions_to_an_artifact(
    compile_mine: Callable[..., int],
    prompts: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert compile_mine(*PLAIN, *SMALL, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kept"] and found["winner"] == "demos-1"
    assert found["scores"]["val"]["baseline"]["ex"]["value"] == 0.0
    assert found["scores"]["val"]["compiled"]["ex"]["value"] == 1.0
    assert len(prompts) == 9, "alignment asks both programs the same, which is asked once"
    assert found["recipe"]["used"]["lm_calls"] == 11, "a budget means the same with a cache"
    program = lynx.load(found["out"])
    assert len(program.generator.formulate.demos) == 2

    assert compile_mine(*PLAIN, *SMALL) == 0
    assert len(prompts) == 9, "a compile that is done asks nothing again"
    page = capsys.readouterr().out
    assert "Kept: demos-1" in page and "lynx ask QUESTION --artifact" in page


def test_another_model_writes_the_instructions(
    compile_mine: Callable[..., int],
    prompts: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    writer = f"openai/writer-{uuid4().hex}"
    options = ("--recipe", "gepa", "--set", "metric_calls=8", "--reflection-lm", writer)
    assert compile_mine(*PLAIN, *options, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["recipe"]["params"]["reflection_lm"]["name"] == writer
    wrote = [p for p in prompts if json.loads(p)["model"] == writer.removeprefix("openai/")]
    assert wrote and all("current_instruction" in p and "val0" not in p for p in wrote)
    assert any(f"train{k}" in "".join(wrote) for k in range(3))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--recipe", "magic"), "Unknown recipe 'magic'"),
        (("--set", "sets"), "is no name=value"),
        (("--set", "sats=2"), "Did you mean 'sets'"),
        (("--val-split", "late"), "late.jsonl or late.csv"),
        (("--max-lm-calls", "0"), "--max-lm-calls"),
    ],
)
def test_a_call_that_cannot_be_carried_out_is_one_line(
    compile_mine: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    prompts: list[str],
    options: tuple[str, ...],
    said: str,
) -> None:
    assert compile_mine(*options) == 2
    error = capsys.readouterr().err
    assert said in error and len(error.strip().splitlines()) == 1
    assert prompts == []


def test_the_bar_tells_what_is_best_and_what_it_cost() -> None:
    spent = Spent(calls=1_200, tokens=3_456_789, seconds=60)
    progress = Progress("demos-3, 10 questions", 50, 200, 0.475, "demos-1", spent, 754.0)
    assert line(progress) == (
        "demos-3, 10 questions | best EX 47.5 % (demos-1) | 1,200 calls, 3,456,789 tokens | "
        "13 min left"
    )
    early = Progress("baseline", 0, 40, None, "", Spent(), None)
    assert line(early) == "baseline | 0 calls, 0 tokens"

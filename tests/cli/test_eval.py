"""`lynx eval` as a user meets it, over a real HTTP service that fails at times."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import uuid4

import pytest

from lynx_dspy.cli import main
from lynx_dspy.lm import models
from lynx_dspy.optimize.records import read_run

PROGRAM = "SELECT COUNT(*) FROM customers"


@dataclass
class Service:
    """A chat service of OpenAI's form; `failures` are statuses to give first."""

    url: str = ""
    failures: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    asked: list[bytes] = field(default_factory=list)
    delay: float = 0.0

    def reply(self, body: bytes) -> tuple[int, dict[str, object]]:
        self.times.append(time.monotonic())
        self.asked.append(body)
        time.sleep(self.delay)
        if self.failures:
            status = self.failures.pop(0)
            return status, {"error": {"message": "try again later", "type": "x", "code": "x"}}
        fields = dict.fromkeys(("semantic", "structural", "intent", "grounding", "analysis"), "-")
        content = fields | {"code": PROGRAM, "terms": [], "links": [], "explanation": "counts"}
        content |= {"consistent": True, "mismatch": "", "summary": "-", "suggestion": "-"}
        message = {"role": "assistant", "content": json.dumps(content)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59}
        return 200, {
            "id": "1", "object": "chat.completion", "created": 1, "model": "tiny",
            "choices": [choice], "usage": usage,
        }  # fmt: skip


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Service]:
    found = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, body = found.reply(self.rfile.read(int(self.headers["Content-Length"])))
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            if status == 429:
                self.send_header("Retry-After", "1")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found.url = f"http://127.0.0.1:{server.server_port}/v1"
    monkeypatch.setenv("OPENAI_API_KEY", "none-needed-here")
    monkeypatch.setenv("OPENAI_API_BASE", found.url)
    monkeypatch.setenv("OPENAI_BASE_URL", found.url)
    yield found
    server.shutdown()
    server.server_close()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Four questions of one's own; the program above is right for two of them."""
    folder = tmp_path / "data"
    folder.mkdir()
    with sqlite3.connect(folder / "shop.sqlite") as connection:
        connection.executescript(
            "CREATE TABLE customers (id INTEGER); INSERT INTO customers VALUES (1), (2);"
        )
    connection.close()
    with (folder / "test.jsonl").open("w") as stream:
        for number in range(4):
            question = {
                "id": f"q{number}",
                "question": f"How many customers, {number}?",
                "database": "shop.sqlite",
                "gold_sql": PROGRAM if number % 2 else "SELECT 7",
            }
            stream.write(json.dumps(question) + "\n")
    return folder


@pytest.fixture
def evaluate(data: Path, tmp_path: Path) -> Callable[..., int]:
    """`lynx eval` with some options set; each test has a model of its own, for DSPy's cache."""
    name = f"openai/tiny-{uuid4().hex}"

    def call(*more: str) -> int:
        fixed = ["--dataset", "jsonl", "--data", str(data), "--lm", name]
        fixed += [] if "--out" in more else ["--out", str(tmp_path / "run")]
        return main(["eval", *fixed, *more])

    return call


def test_a_run_over_http_waits_retries_and_resumes(
    service: Service,
    evaluate: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    service.failures = [429]
    assert evaluate("--limit", "2", "--json") == 0
    assert service.times[1] - service.times[0] >= 1.0, "Retry-After was not respected"
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert (report["n"], report["scores"]["ex"]["value"]) == (2, 0.5)
    assert "2/2 EX 50.0 %" in said.err
    assert evaluate("--export", "spider") == 0
    said = capsys.readouterr()
    assert "4 questions, 4 scored." in said.out
    assert "predictions.spider.txt" in said.err
    found = {r["id"]: r for r in read_run(tmp_path / "run").records()}
    assert list(found) == ["q0", "q1", "q2", "q3"]
    assert [found[i]["scores"]["ex"] for i in found] == [0.0, 1.0, 0.0, 1.0]
    assert found["q1"]["usage"]["calls"] == found["q2"]["usage"]["calls"]
    again = Counter(service.asked) - Counter(set(service.asked))
    assert again.total() == 1, "more was asked twice than what had failed"


def test_workers_ask_at_the_same_time(
    service: Service, evaluate: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    service.delay = 0.2
    assert evaluate("--workers", "4", "--json") == 0
    capsys.readouterr()
    assert service.times[3] - service.times[0] < 0.2


def test_ids_choose_and_unknown_ones_are_told(
    service: Service,
    evaluate: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ids = tmp_path / "ids.txt"
    ids.write_text("q3\n")
    assert evaluate("--ids", str(ids), "--json") == 0
    assert json.loads(capsys.readouterr().out)["n"] == 1
    ids.write_text("q3\nq9\n")
    assert evaluate("--ids", str(ids)) == 2
    assert "the first is 'q9'" in capsys.readouterr().err


def test_a_run_of_another_kind_is_not_gone_on_with(
    service: Service, evaluate: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate("--limit", "1") == 0
    capsys.readouterr()
    assert evaluate("--without", "verification") == 2
    assert "without differs ([] there, ['verification'] now)" in capsys.readouterr().err


def test_a_service_that_refuses_the_key_ends_the_run(
    service: Service, evaluate: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    service.failures = [401] * 9
    assert evaluate() == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("lynx: ")
    assert "refuses the key" in last
    assert len(service.times) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--dataset", "brid"], "Did you mean 'bird'?"),
        (["--data", "nowhere"], "No test.jsonl or test.csv in nowhere"),
        (["--split", "other"], "No other.jsonl"),
        (["--ids", "nowhere"], "Cannot read ids from nowhere"),
        (["--without", "everything"], "Unknown part for --without 'everything'"),
        (["--lm", "nothing"], "Unknown model 'nothing'"),
        (["--limit", "0"], "Invalid value for '--limit'"),
        (["--deadline", "0"], "Invalid value for '--deadline'"),
        (["--out", __file__], "it is a file"),
        (["--out", f"{__file__}/below"], "Cannot write to"),
    ],
)
def test_bad_input_is_one_line(
    service: Service,
    evaluate: Callable[..., int],
    options: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert evaluate(*options) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1
    assert not service.times


@pytest.mark.model
@pytest.mark.skipif(models.path("local") is None, reason="the embedded model is not pulled")
def test_the_embedded_model_answers_a_question_of_the_sample(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--dataset", "sample", "--data", ".", "--lm", "local", "--limit", "1", "--json"]
    assert main(["eval", *options, "--out", str(tmp_path / "run")]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["n"], report["scored"]) == (1, 1)
    assert report["tokens_per_question"] > 0


@pytest.mark.parametrize("workers", ["1", "3"])
def test_ctrl_c_ends_at_once_and_keeps_what_is_done(
    service: Service, data: Path, tmp_path: Path, workers: str
) -> None:
    service.delay = 0.15
    out = tmp_path / "run"
    start = "import sys; from lynx_dspy.cli import main; sys.exit(main())"
    options = ["--dataset", "jsonl", "--data", str(data), "--out", str(out), "--workers", workers]
    options += ["--lm", f"openai/tiny-{uuid4().hex}"]
    process = subprocess.Popen(
        [sys.executable, "-c", start, "eval", *options], stderr=subprocess.PIPE
    )
    until = time.monotonic() + 30
    while time.monotonic() < until and process.poll() is None:
        if (out / "predictions.jsonl").exists() and (out / "predictions.jsonl").stat().st_size:
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=10)
    assert process.returncode == 130, said.decode()
    assert said.decode().splitlines()[-1] == "lynx: interrupted"
    assert "Traceback" not in said.decode()
    kept = [r["scores"] for r in read_run(out).records()]
    assert 1 <= len(kept) < 4
    assert all(kept)

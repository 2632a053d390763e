"""`lynx eval` as a user meets it, over a real HTTP service that fails at times."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from lynx_dspy.cli import main
from lynx_dspy.lm import models
from lynx_dspy.optimize.records import read_run


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
    service: Any,
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
    service: Any, evaluate: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    service.delay = 0.2
    assert evaluate("--workers", "4", "--json") == 0
    capsys.readouterr()
    assert service.times[3] - service.times[0] < 0.2


def test_ids_choose_and_unknown_ones_are_told(
    service: Any,
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
    service: Any, evaluate: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate("--limit", "1") == 0
    capsys.readouterr()
    assert evaluate("--without", "verification") == 2
    assert "without differs ([] there, ['verification'] now)" in capsys.readouterr().err


def test_a_service_that_refuses_the_key_ends_the_run(
    service: Any, evaluate: Callable[..., int], capsys: pytest.CaptureFixture[str]
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
    service: Any,
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
    service: Any, data: Path, tmp_path: Path, workers: str
) -> None:
    service.delay = 0.15
    out = tmp_path / "run"
    # A shell that starts its jobs in the background has them ignore SIGINT.
    start = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from lynx_dspy.cli import main; sys.exit(main())"
    )
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

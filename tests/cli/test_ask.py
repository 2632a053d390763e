"""`lynx ask` as a user meets it: bad input is one line and exit code 2."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lynx_dspy.cli import main
from lynx_dspy.lm import models

KEYS = {
    "question",
    "database",
    "dialect",
    "code",
    "status",
    "columns",
    "rows",
    "row_count",
    "truncated",
    "verified",
    "ended",
    "attempts",
    "knowledge",
    "dropped",
    "usage",
    "seconds",
    "lm",
    "artifact",
}
COUNT = "How many customers are there?"
needs_model = pytest.mark.skipif(
    models.path("local") is None, reason="the embedded model is not pulled: `lynx model pull`"
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            """
            CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, country TEXT);
            INSERT INTO customers VALUES (1, 'Ada', 'NO'), (2, 'Bo', 'SE'), (3, 'Cy', 'NO');
            """
        )
    connection.close()
    return path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line with which the call is refused."""
    assert main(list(arguments)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("lynx: ")
    assert said.err.count("\n") == 1
    assert "Traceback" not in said.err
    return said.err


def test_a_missing_database(capsys: Any, tmp_path: Path) -> None:
    path = tmp_path / "nowhere.sqlite"
    assert "nowhere.sqlite" in refused(capsys, "ask", "How many?", "--db", str(path))
    assert not path.exists()


def test_an_empty_file(capsys: Any, tmp_path: Path) -> None:
    path = tmp_path / "empty.sqlite"
    path.touch()
    assert "empty" in refused(capsys, "ask", "How many?", "--db", str(path))


def test_a_database_without_tables(capsys: Any, tmp_path: Path) -> None:
    path = tmp_path / "bare.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    assert "table" in refused(capsys, "ask", "How many?", "--db", str(path))


def test_a_text_file_as_database(capsys: Any, tmp_path: Path) -> None:
    path = tmp_path / "notes.sqlite"
    path.write_text("these are notes, not a database\n" * 100)
    assert "notes.sqlite" in refused(capsys, "ask", "How many?", "--db", str(path))


def test_a_folder_without_tables(capsys: Any, tmp_path: Path) -> None:
    assert ".csv" in refused(capsys, "ask", "How many?", "--db", str(tmp_path))


def test_an_unknown_scheme(capsys: Any) -> None:
    assert "sqlite" in refused(capsys, "ask", "How many?", "--db", "gopher://host/db")


@pytest.mark.parametrize("name", ["gpt-nine", "local:/nowhere/model.gguf", "local:phi"])
def test_an_unknown_model(capsys: Any, store: Path, name: str) -> None:
    refused(capsys, "ask", "How many?", "--db", str(store), "--lm", name)


def test_a_missing_key(capsys: Any, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    said = refused(capsys, "ask", "How many?", "--db", str(store), "--lm", "openai/gpt-4o")
    assert "OPENAI_API_KEY" in said


def test_no_model_pulled(
    capsys: Any, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LYNX_HOME", str(tmp_path / "home"))
    assert "lynx model pull" in refused(capsys, "ask", "How many?", "--db", str(store))


def test_an_unreachable_api(capsys: Any, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-secret-that-must-not-be-shown")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    assert main(["ask", "How many?", "--db", str(store), "--lm", "openai/gpt-4o"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("lynx: ")
    assert "secret" not in last


@pytest.mark.parametrize("docs", ["missing-folder", "empty-folder"])
def test_documents_that_cannot_be_read(capsys: Any, store: Path, tmp_path: Path, docs: str) -> None:
    (tmp_path / "empty-folder").mkdir()
    said = refused(capsys, "ask", "Q?", "--db", str(store), "--docs", str(tmp_path / docs))
    assert docs in said


def test_an_unknown_part(capsys: Any, store: Path) -> None:
    said = refused(capsys, "ask", "How many?", "--db", str(store), "--without", "critic")
    assert "delta-memory" in said


def test_an_unknown_option_and_command(capsys: Any) -> None:
    assert "--help" in refused(capsys, "ask", "How many?", "--database", "x")
    assert "ask" in refused(capsys, "aks")


@needs_model
@pytest.mark.parametrize("question", ["", "x" * 100_000])
def test_an_unusable_question(capsys: Any, store: Path, question: str) -> None:
    assert main(["ask", question, "--db", str(store)]) == 2
    assert "question" in capsys.readouterr().err.splitlines()[-1]


@needs_model
@pytest.mark.model
def test_the_embedded_model_answers_end_to_end(store: Path) -> None:
    """A process of its own, as a user starts it: stdout holds one JSON object and nothing else."""
    before = store.read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "lynx_dspy", "ask", COUNT, "--db", str(store), "--json"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer.keys() == KEYS
    assert answer["rows"] == [[3]]
    assert answer["status"] == "ok"
    assert answer["usage"]["stages"]["generator.formulate"]["calls"] >= 1
    assert answer["lm"]["name"].startswith("local/qwen2.5-coder-0.5b")
    assert store.read_bytes() == before


@needs_model
@pytest.mark.model
def test_a_csv_file_is_a_database(capsys: Any, tmp_path: Path) -> None:
    path = tmp_path / "trips.csv"
    path.write_text("trip,fare\n1,10.5\n2,4.5\n3,9\n")
    code = main(["ask", "What is the sum of fare over all trips?", "--db", str(path), "--trace"])
    said = capsys.readouterr()
    assert code == 0, said.err
    assert "24" in said.out
    assert "generator.formulate" in said.out

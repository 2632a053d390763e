"""Odd streams, names and environments, in processes of their own as a shell starts them."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

LYNX = [sys.executable, "-m", "lynx_dspy"]


def database(path: Path) -> Path:
    connection = sqlite3.connect(path)
    connection.execute('CREATE TABLE "Größe 😀" ("\x1b[31mred" TEXT)')
    connection.close()
    return path


def run(*arguments: str | bytes | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LYNX, *arguments],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one line with which the call is refused."""
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    return done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [["--help"], ["schema", "--db", "{}"], ["model", "list"]])
def test_a_full_disk_behind_stdout_is_one_line(tmp_path: Path, arguments: list[str]) -> None:
    path = database(tmp_path / "a.sqlite")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*LYNX, *(a.format(path) for a in arguments)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("lynx: ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("stderr", ["", " 2>&-"])
def test_closed_streams_are_no_failure(tmp_path: Path, stderr: str) -> None:
    path = database(tmp_path / "a.sqlite")
    command = f"{shlex.join([*LYNX, 'schema', '--db', str(path)])}{stderr} >&-"
    assert subprocess.run(command, shell=True, check=False, timeout=60).returncode == 0
    piped = f"{command.removesuffix(' >&-')} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", piped], check=False, timeout=60, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_that_leaves_is_no_failure(tmp_path: Path) -> None:
    path = database(tmp_path / "a.sqlite")
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        done = subprocess.run(
            [*LYNX, "schema", "--db", path],
            stdout=gone,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_any_encoding_shows_any_name(tmp_path: Path, encoding: str) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.sqlite"
    database(Path(os.fsdecode(path)))
    plain = run("schema", "--db", path, PYTHONIOENCODING=encoding)
    record = run("schema", "--json", "--db", path, PYTHONIOENCODING=encoding)
    assert (plain.returncode, plain.stderr) == (0, "")
    assert r"\x1b[31mred" in plain.stdout and "\x1b" not in plain.stdout
    assert json.loads(record.stdout)["database"].endswith("\udcff.sqlite")


def test_a_user_that_does_not_exist(tmp_path: Path) -> None:
    path = database(tmp_path / "a.sqlite")
    assert "~nobody-here" in refused(run("schema", "--db", "~nobody-here/a.sqlite"))
    assert "~nobody-here" in refused(run("model", "path", LYNX_HOME="~nobody-here"))
    model = "local:~nobody-here/a.gguf"
    assert "~nobody-here" in refused(run("ask", "How many?", "--db", path, "--lm", model))


def test_a_name_that_is_too_long_is_a_short_line(tmp_path: Path) -> None:
    path, name = database(tmp_path / "a.sqlite"), "a" * 5_000
    for arguments in (
        ["schema", "--db", name],
        ["ask", "How many?", "--db", path, "--docs", name],
        ["ask", "How many?", "--db", path, "--lm", f"local:{name}/a.gguf"],
    ):
        assert len(refused(run(*arguments))) < 1_100


def test_a_cache_folder_that_cannot_be_made() -> None:
    refused(run("sample", LYNX_HOME="/dev/null/lynx"))

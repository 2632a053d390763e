"""What the README shows is run: the five lines of Python, and the commands' names and options."""

from __future__ import annotations

import re
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import click
import pytest

from lynx_dspy.cli import cli
from lynx_dspy.lm import models

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)


def commands() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for _, text in FENCE.findall(page.read_text()):
            joined = text.replace("\\\n", " ")
            lines = [line.strip().removeprefix("$ ") for line in joined.splitlines()]
            found += [(page.name, line) for line in lines if line.startswith("lynx ")]
    return found


@pytest.mark.parametrize(("page", "line"), commands())
def test_every_command_and_option_exists(page: str, line: str) -> None:
    words = shlex.split(re.split(r" {2,}|[|#]", line)[0])[1:]
    command: click.Command = cli
    context = click.Context(cli)
    names = iter(words)
    while isinstance(command, click.Group):
        command = command.get_command(context, next(names)) or command
    known = {option for p in command.params for option in p.opts}
    assert {w.partition("=")[0] for w in words if w.startswith("--")} <= known, (page, line)


@pytest.mark.model
@pytest.mark.skipif(models.path("local") is None, reason="needs `lynx model pull`")
def test_the_python_example_runs(tmp_path: Path) -> None:
    (example,) = [
        text for kind, text in FENCE.findall((ROOT / "README.md").read_text()) if kind == "python"
    ]
    with sqlite3.connect(tmp_path / "store.sqlite") as connection:
        connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
        connection.executemany("INSERT INTO customers (name) VALUES (?)", [("Ada",), ("Bo",)])
    connection.close()
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "((2,),)" in done.stdout

"""A run that is killed again and again ends like one that is left alone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lynx_dspy.optimize.records import read_run

SCRIPT = Path(__file__).with_name("counting.py")
KILLS = 10
QUESTIONS = 40


class Runs:
    """Starts runs in forks of one process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, out: str, workers: int) -> int:
        assert self._process.stdin
        self._process.stdin.write(f"{out} {workers}\n")
        self._process.stdin.flush()
        return self._number()

    def finish(self, out: str, workers: int) -> None:
        self.start(out, workers)
        assert self._number() == 0

    def kill_once(self, out: str, workers: int, chance: random.Random) -> None:
        """Kill a run some time after it has finished one more question."""
        predictions = self.folder / out / "predictions.jsonl"
        size = predictions.stat().st_size if predictions.exists() else 0
        child = self.start(out, workers)
        until = time.monotonic() + 20
        while time.monotonic() < until:
            if predictions.exists() and predictions.stat().st_size > size:
                break
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.06))
        os.kill(child, signal.SIGKILL)
        assert self._number() == signal.SIGKILL, "the run had ended before it was killed"

    def close(self) -> None:
        self._process.communicate(timeout=10)

    def _number(self) -> int:
        assert self._process.stdout
        return int(self._process.stdout.readline())


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    found = Runs(tmp_path)
    yield found
    found.close()


def facts(out: Path) -> dict[str, Any]:
    """All that must not depend on how a run came to its end."""
    return {
        r["id"]: (r["code"], r["status"], r["scores"], r["usage"], r["rounds"])
        for r in read_run(out).records()
    }


@pytest.mark.parametrize("workers", [1, 3])
def test_ten_kills_change_nothing(runs: Runs, workers: int) -> None:
    runs.finish("calm", 1)
    chance = random.Random(workers)
    folder, stormy = runs.folder, runs.folder / "stormy"
    for _ in range(KILLS if workers == 1 else 4):
        runs.kill_once("stormy", workers, chance)
        if chance.random() < 0.3:  # what a loss of power may leave
            with (stormy / "predictions.jsonl").open("ab") as stream:
                stream.write(b'{"id": "q39", "code": "SEL\0\0\0')
    runs.finish("stormy", workers)

    assert facts(stormy) == facts(folder / "calm")
    assert len(facts(stormy)) == QUESTIONS
    calm, storm = read_run(folder / "calm").report, read_run(stormy).report
    assert calm and storm
    assert (storm.scores, storm.by, storm.statuses) == (calm.scores, calm.by, calm.statuses)

    lines = (stormy / "predictions.jsonl").read_text().splitlines()
    assert len(lines) == QUESTIONS, "a question that was finished was asked again"
    asked = Counter((folder / "stormy.log").read_text().split())
    calmly = Counter((folder / "calm.log").read_text().split())
    repeats = sum((asked - calmly).values())
    assert repeats <= 2 * workers * KILLS, "more was repeated than was under way at the kills"

"""What the evaluation runner adds to a question in time, and what a long run holds in memory.

    python -m bench.runner [QUESTIONS]

A program that answers at once is asked 10,000 questions over a small database. What is not spent
in it is the runner's: leasing, judging (a gold is run for each question), writing, tallying.
"""

from __future__ import annotations

import json
import resource
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import dspy

import lynx_dspy as lynx
from lynx_dspy.datasets.examples import example
from lynx_dspy.engines.base import Database
from lynx_dspy.optimize.journal import lines
from lynx_dspy.optimize.records import PREDICTIONS
from lynx_dspy.values import Attempt

MOST_MILLISECONDS = 20.0
MOST_MEGABYTES = 300.0


class Instant(dspy.Module):
    """Answers `n >= k` for the question "k", wrongly for every third."""

    def forward(self, question: str, database: Database, **inputs: Any) -> dspy.Prediction:
        k = int(question)
        code = f"SELECT n, label FROM numbers WHERE n >= {k % 50 + (k % 3 == 0)}"
        outcome = database.execute(code)
        attempts = tuple(Attempt(r, code, outcome, "repair" if r else "formulate") for r in (0, 1))
        return dspy.Prediction(code=code, outcome=outcome, attempts=attempts)


def main() -> int:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        examples = questions(Path(folder), n)
        before = megabytes()
        lm = dspy.LM("test/none", cache=False)
        started = time.perf_counter()
        lynx.evaluate(Instant(), examples, lm=lm, out=Path(folder) / "out")
        seconds = time.perf_counter() - started
        records = Path(folder) / "out" / PREDICTIONS
        spent = sum(line["seconds"] for line in lines(records))
        size = records.stat().st_size
    added, held = (seconds - spent) / n * 1000, megabytes()
    print(json.dumps({"questions": n, "seconds": round(seconds, 1), "bytes": size}))
    print(f"added by the runner: {added:.1f} ms a question (budget {MOST_MILLISECONDS:g})")
    print(f"memory: {held:.0f} MB at most (budget {MOST_MEGABYTES:g}), {before:.0f} MB before")
    return 0 if added < MOST_MILLISECONDS and held < MOST_MEGABYTES else 1


def questions(folder: Path, n: int) -> list[dspy.Example]:
    """Counts over one table of 100 rows."""
    path = folder / "numbers.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE numbers (n INTEGER PRIMARY KEY, label TEXT)")
        rows = [(i, f"label {i}") for i in range(100)]
        connection.executemany("INSERT INTO numbers VALUES (?, ?)", rows)
    connection.close()
    return [
        example(
            id=str(k),
            question=str(k),
            db="numbers",
            database=path,
            dialect="sqlite",
            rule="sql_eval",
            gold_sql=[f"SELECT n, label FROM numbers WHERE n >= {k % 50}"],
            difficulty=("easy", "hard")[k % 2],
        )
        for k in range(n)
    ]


def megabytes() -> float:
    """The most memory that this process has held so far."""
    unit = 1024 if sys.platform != "darwin" else 1024 * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


if __name__ == "__main__":
    raise SystemExit(main())

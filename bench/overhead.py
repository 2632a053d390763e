"""Time outside the model, against the budgets of the design, as a table.

    python -m bench.overhead

Start-up times are the best of several fresh processes. The time of a question is measured with an
engine that answers at once, on a warm database of 50 tables; schema abstraction on one of 800.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import dspy

import lynx_dspy as lynx
from lynx_dspy.engines.base import Database
from lynx_dspy.grounding.schema import abstract

REPLY = "Analysis: counts the rows.\n```sql\nSELECT COUNT(*) FROM table_7\n```"


class InstantEngine:
    """Writes the same program at once."""

    def complete(self, request: dspy.lm15.Request) -> dspy.lm15.Response:
        return dspy.lm15.Response(
            id=None,
            model="instant",
            message=dspy.lm15.Message.assistant(REPLY),
            finish_reason="stop",
            usage=dspy.lm15.Usage(input_tokens=1, output_tokens=1, total_tokens=2),
        )


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            ("lynx --help", fresh([str(Path(sys.executable).with_name("lynx")), "--help"]), 0.3),
            ("import lynx_dspy", fresh([sys.executable, "-c", "import lynx_dspy"]), 0.3),
            ("a question, 50 warm tables", question(warehouse(Path(folder), 50)), 0.1),
            ("schema abstraction, 800 tables", cold(warehouse(Path(folder), 800)), 2.0),
        ]
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}\n")
    print("| what | seconds | budget | |\n|---|---:|---:|---|")
    for name, seconds, budget in rows:
        print(f"| {name} | {seconds:.3f} | {budget} | {'ok' if seconds < budget else 'OVER'} |")
    return 0 if all(seconds < budget for _, seconds, budget in rows) else 1


def fresh(command: list[str]) -> float:
    """Best wall time of five fresh processes."""
    return min(
        timed(lambda: subprocess.run(command, check=True, capture_output=True)) for _ in range(5)
    )


def timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def warehouse(folder: Path, tables: int) -> Database:
    """A SQLite database of `tables` tables with 10 columns and 100 rows each, chained by keys."""
    path = folder / f"w{tables}.sqlite"
    with sqlite3.connect(path) as connection:
        for n in range(tables):
            key = f", parent_id INTEGER REFERENCES table_{n - 1} (id)" if n else ""
            columns = "".join(f", metric_{n}_{c} TEXT" for c in range(8))
            connection.execute(f"CREATE TABLE table_{n} (id INTEGER PRIMARY KEY{columns}{key})")
            holes = ", ".join("?" * (9 + bool(n)))
            cells = [f"value {c}" for c in range(8)]
            rows = [[i, *cells, *([i] if n else [])] for i in range(100)]
            connection.executemany(f"INSERT INTO table_{n} VALUES ({holes})", rows)
    connection.close()
    return lynx.connect(path)


def question(database: Database) -> float:
    """Median time of a question once everything is warm."""
    lm = dspy.LM("local/instant", engine=InstantEngine(), cache=False, num_retries=0)
    program = lynx.Lynx()
    with dspy.context(lm=lm):
        times = [
            timed(partial(program.__call__, question=f"How many metrics {i}?", database=database))
            for i in range(12)
        ]
    return statistics.median(times[2:])


def cold(database: Database) -> float:
    """Time to abstract a schema that was not seen before."""
    return timed(lambda: abstract(database))


if __name__ == "__main__":
    raise SystemExit(main())

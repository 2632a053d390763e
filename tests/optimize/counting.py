"""A dataset of counts with known answers, a scripted model for it, and a run of both.

As a script, `python counting.py FOLDER`, it is what the tests kill and start again.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy

import lynx_dspy as lynx
from lynx_dspy.config import LynxConfig
from lynx_dspy.datasets.examples import example

Say = Callable[[int], str | Exception]


def build(folder: Path) -> Path:
    """A database whose table `numbers` holds 0 to 9."""
    path = folder / "numbers.sqlite"
    if not path.exists():
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE numbers (n INTEGER PRIMARY KEY)")
            connection.executemany("INSERT INTO numbers VALUES (?)", [(n,) for n in range(10)])
        connection.close()
    return path


def questions(folder: Path, n: int, **changes: Any) -> list[dspy.Example]:
    """`n` questions; the k-th asks how many numbers are at least k % 9."""
    path = build(folder)
    fields = {"db": "numbers", "database": path, "dialect": "sqlite", "rule": "sql_eval"} | changes
    return [
        example(
            id=f"q{k}",
            question=f"How many numbers of batch {k} count?",
            gold_sql=[gold(k)],
            difficulty=("easy", "hard")[k % 2],
            **fields,
        )
        for k in range(n)
    ]


def gold(k: int) -> str:
    return f"SELECT COUNT(*) FROM numbers WHERE n >= {k % 9}"


def mostly_right(k: int) -> str:
    """Wrong for every fourth question, no SQL for every seventh."""
    if k % 7 == 3:
        return "I do not know."
    return f"```sql\n{gold(k + (k % 4 == 1))}\n```"


class CountingEngine:
    """Answers by the number in the question; `log` takes a line a call."""

    def __init__(self, say: Say = mostly_right, seconds: float = 0.0, log: Path | None = None):
        self.say, self.seconds, self.log = say, seconds, log

    def complete(self, request: dspy.lm15.Request) -> dspy.lm15.Response:
        text = "\n".join(m.text or "" for m in request.messages)
        k = int(re.findall(r"batch (\d+)", text)[-1])
        if self.log is not None:
            with self.log.open("a") as lines:
                lines.write(f"{k}\n")
        time.sleep(self.seconds)
        reply = self.say(k)
        if isinstance(reply, Exception):
            raise reply
        return dspy.lm15.Response(
            id=None,
            model="counting",
            message=dspy.lm15.Message.assistant(reply),
            finish_reason="stop",
            usage=dspy.lm15.Usage(input_tokens=100, output_tokens=20, total_tokens=120),
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> CountingEngine:
        return self


def model(engine: CountingEngine, name: str = "test/counting") -> dspy.LM:
    return dspy.LM(name, engine=engine, cache=False, num_retries=0)


def program(**changes: Any) -> lynx.Lynx:
    """Writes and repairs in one call each; no embedder, since torch's threads die in a fork."""
    config = LynxConfig(
        stages=frozenset({"generator.formulate", "reviser.repair"}),
        omitted_outputs=frozenset({"analysis"}),
        adapter="fenced",
        embedding_links=False,
        max_rounds=1,
    )
    return lynx.Lynx(config=config.with_(**changes))


def main() -> None:
    """Run for each line "OUT WORKERS" on stdin, in a fork: its id, and its status when it ends.

    One process imports for all: what is killed and started again is the run.
    """
    folder = Path(sys.argv[1])
    lynx.evaluate(program(), questions(folder, 1), lm=model(CountingEngine()))
    for line in sys.stdin:
        out, workers = line.split()
        child = os.fork()
        if not child:
            engine = CountingEngine(seconds=0.01, log=folder / f"{out}.log")
            examples = questions(folder, 40)
            lm = model(engine)
            lynx.evaluate(program(), examples, lm=lm, out=folder / out, workers=int(workers))
            os._exit(0)
        tell(child)
        tell(os.waitpid(child, 0)[1])


def tell(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

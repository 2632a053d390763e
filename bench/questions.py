"""Run a JSONL of questions through the program and say what it scores and where it loses.

Each line: `id, db, question, knowledge, gold` (a list of acceptable queries), as in sql_eval;
databases are `DIR/<db>.sql`, loaded freshly into SQLite for each run. Finished questions are kept
in `OUT/answers.jsonl`; running again goes on from there.

    python -m bench.questions --jsonl train.jsonl --databases databases --out runs/train
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy

import lynx_dspy as lynx
from bench.loss import loss_class
from lynx_dspy import metrics
from lynx_dspy.answers import attempt_json, usage_json
from lynx_dspy.config import LynxConfig, profile
from lynx_dspy.engines.base import Database
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.values import Limits, Row

GOLD_LIMITS = Limits(max_rows=100_000, timeout_seconds=60)


def main() -> int:
    options = _parse()
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    questions = [json.loads(line) for line in Path(options.jsonl).read_text().splitlines()]
    lm = lynx.lm(options.lm)
    config = profile(lm.model).with_(**dict(_override(o) for o in options.set))
    program = lynx.ablate(options.without, lynx.Lynx(config=config))
    with tempfile.TemporaryDirectory() as folder:
        databases = Databases(Path(options.databases), Path(folder))
        records = list(
            answers(questions[:: options.every][: options.limit], program, lm, databases, out)
        )
    report = summary(records)
    (out / "report.json").write_text(json.dumps(report, indent=1))
    print(json.dumps(report, indent=1))
    return 0


def answers(
    questions: list[dict[str, Any]],
    program: lynx.Lynx,
    lm: dspy.LM,
    databases: Databases,
    out: Path,
) -> Iterator[dict[str, Any]]:
    """One record a question; what stands in `answers.jsonl` is not asked again."""
    path = out / "answers.jsonl"
    done = (
        {r["id"]: r for r in map(json.loads, path.read_text().splitlines())}
        if path.exists()
        else {}
    )
    for number, item in enumerate(questions, 1):
        record = done.get(item["id"])
        if record is None:
            database = databases.open(item["db"])
            with dspy.context(lm=lm):
                answer = program(
                    question=item["question"], database=database, evidence=item["knowledge"]
                )
            record = judged(item, answer, database)
            with path.open("a") as lines:
                lines.write(json.dumps(record) + "\n")
        yield record
        print(
            f"{number:4d} {record['id']:24s} {record['status']:8s} right={record['right']!s:5s} "
            f"rounds={record['rounds']} tokens={record['usage']['total_tokens']} {record['loss']}",
            file=sys.stderr,
        )


def judged(item: dict[str, Any], answer: dspy.Prediction, database: Database) -> dict[str, Any]:
    """The answer scored against the golds, every attempt of it too."""
    golds = [database.execute(gold, GOLD_LIMITS).rows for gold in item["gold"]]

    def right(code: str) -> bool:
        outcome = database.execute(code, GOLD_LIMITS)
        return outcome.ran and any(_equal(gold, outcome.rows) for gold in golds)

    rights = [right(a.code) for a in answer.attempts]
    final = right(answer.code)
    loss = "" if final else loss_class(answer, any(rights), abstract(database))
    return {
        "id": item["id"],
        "db": item["db"],
        "question": item["question"],
        "code": answer.code,
        "status": answer.outcome.status,
        "error": answer.outcome.error,
        "verified": answer.verified,
        "right": final,
        "rights": rights,
        "loss": loss,
        "rounds": max(a.round for a in answer.attempts),
        "attempts": [attempt_json(a) for a in answer.attempts],
        "usage": usage_json(answer.usage),
        "seconds": answer.seconds,
    }


def _equal(gold: tuple[Row, ...], predicted: tuple[Row, ...]) -> bool:
    return bool(metrics.execution_accuracy(gold, predicted, rule="sql_eval"))


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Scores, costs and losses over all records."""
    n = len(records)

    def mean(values: list[float]) -> float:
        return round(sum(values) / max(n, 1), 3)

    return {
        "n": n,
        "ex": mean([r["right"] for r in records]),
        "executable": mean([r["status"] in ("ok", "empty") for r in records]),
        "verified": mean([r["verified"] for r in records]),
        "first_right": mean([first_right(r) for r in records]),
        "any_right": mean([any(r["rights"]) for r in records]),
        "rounds": mean([r["rounds"] for r in records]),
        "tokens": mean([r["usage"]["total_tokens"] for r in records]),
        "seconds": mean([r["seconds"] for r in records]),
        "losses": dict(Counter(r["loss"] for r in records if not r["right"]).most_common()),
    }


def first_right(record: dict[str, Any]) -> bool:
    """Whether the first program was right as the model wrote it."""
    written = [a["source"] == "formulate" for a in record["attempts"]]
    return bool(record["rights"][written.index(True)])


class Databases:
    """SQLite files made from `DIR/<db>.sql`, one connection a database."""

    def __init__(self, scripts: Path, folder: Path) -> None:
        self._scripts, self._folder = scripts, folder
        self._open: dict[str, Database] = {}

    def open(self, name: str) -> Database:
        if name not in self._open:
            path = self._folder / f"{name}.sqlite"
            with sqlite3.connect(path) as connection:
                connection.executescript((self._scripts / f"{name}.sql").read_text())
            connection.close()
            self._open[name] = lynx.connect(path)
        return self._open[name]


def _override(text: str) -> tuple[str, Any]:
    """`name=value` as a LynxConfig field; `stages` is a comma list."""
    name, _, value = text.partition("=")
    if name in ("stages", "omitted_outputs"):
        return name, frozenset(v for v in value.split(",") if v)
    kind = type(getattr(LynxConfig(), name))
    return name, value if kind is str else kind(value)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jsonl", required=True)
    parser.add_argument("--databases", required=True, help="folder of <db>.sql scripts")
    parser.add_argument("--out", required=True)
    parser.add_argument("--lm", default=None)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--every", type=int, default=1, help="take each N-th question only")
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--set", action="append", default=[], help="a LynxConfig field, name=value")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())

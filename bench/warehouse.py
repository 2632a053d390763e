"""A warehouse of thousands of tables: what abstraction, indexing and a warm question cost.

    python -m bench.warehouse [--tables 10000] [--columns 50] [--dense]

Half of the tables stand in groups of one form (a table a month), each table has few rows. No
language model runs; `--dense` embeds with MiniLM too. Seconds are those of the processor.
"""

from __future__ import annotations

import argparse
import resource
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import lynx_dspy as lynx
from lynx_dspy import config
from lynx_dspy.engines.base import Database
from lynx_dspy.grounding.embedding import default_embedder
from lynx_dspy.grounding.linking import link, tables_for
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.modules.generator import structure, units
from lynx_dspy.tokens import estimate
from lynx_dspy.values import Schema

Made = TypeVar("Made")

MOST_SECONDS = 0.5
MOST_MEGABYTES = 1_000.0

_MONTHS = 100
_SUBJECTS = """
    customer order invoice shipment product supplier payment refund campaign visit session
    warehouse vehicle driver route contract policy claim patient doctor lab sample sensor reading
    station device firmware ticket agent call survey answer employee salary team project task
    """.split()  # noqa: SIM905 - a list of quoted words would fill a page
_ASPECTS = """
    status amount currency region channel category priority source target batch checksum owner
    approved shipped created updated expires score weight height price discount tax margin volume
    """.split()  # noqa: SIM905 - as above


def main() -> int:
    options = _parse()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "warehouse.sqlite"
        build(path, options.tables, options.columns)
        before = megabytes()
        with lynx.connect(path) as database:
            schema, abstraction = timed(lambda: abstract(database))
            first = ground(database, options.dense)
            times = [ground(database, options.dense, i) for i in range(1, 9)]
        print("\n".join(report(schema, abstraction, first, times, before)))
        worst = max(one.total for one in times)
    return 0 if worst < MOST_SECONDS and megabytes() < MOST_MEGABYTES else 1


def build(path: Path, tables: int, columns: int) -> None:
    """SQLite tables of two rows; every second one belongs to a group of a hundred months."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for n in range(tables):
            names = list(_columns(n, columns))
            body = ", ".join(f"{name} {'TEXT' if i % 3 else 'INTEGER'}" for i, name in names)
            connection.execute(f"CREATE TABLE {table_name(n)} ({body})")
            for row in range(2):
                cells = [f"{name} {n % 97} {row}" if i % 3 else n + row for i, name in names]
                holes = ", ".join("?" * columns)
                connection.execute(f"INSERT INTO {table_name(n)} VALUES ({holes})", cells)
    connection.close()


def table_name(n: int) -> str:
    """`visit_route_202001` for the members of a group, `visit_route_17x` for the others."""
    group, member = divmod(n // 2, _MONTHS)
    subject = _SUBJECTS[group % len(_SUBJECTS)]
    other = _SUBJECTS[(n // 2 * 7) % len(_SUBJECTS)]
    if n % 2 == 0:
        year, month = divmod(member, 12)
        return (
            f"{subject}_log_g{chr(97 + group % 26)}{chr(97 + group // 26)}_{2015 + year}{month:02d}"
        )
    return f"{subject}_{other}_{_letters(n)}"


def _letters(n: int) -> str:
    return "".join(chr(97 + n // 26**k % 26) for k in range(3))


def _columns(n: int, columns: int) -> Iterator[tuple[int, str]]:
    shift = n // 2 // _MONTHS if n % 2 == 0 else n
    for i in range(columns):
        subject = _SUBJECTS[(shift + i * 5) % len(_SUBJECTS)]
        yield i, f"{subject}_{_ASPECTS[(shift * 3 + i) % len(_ASPECTS)]}_{i}"


class Grounding:
    """Seconds that each step of one question took."""

    def __init__(self, steps: dict[str, float], tokens: int, found: bool) -> None:
        self.steps, self.tokens, self.found = steps, tokens, found

    @property
    def total(self) -> float:
        return sum(self.steps.values())


def ground(database: Database, dense: bool, n: int = 0) -> Grounding:
    """What `Generator` does for a question before the language model is asked."""
    wanted = table_name(2 * n * 37 + 1)
    question = f"Average discount and owner of each {wanted.replace('_', ' ')} in region North"
    embedder = default_embedder() if dense else None
    steps: dict[str, float] = {}
    schema, steps["schema"] = timed(lambda: abstract(database))
    known, steps["units"] = timed(lambda: units(schema))
    links, steps["links"] = timed(lambda: link(question, "", known.schema, database, embedder))
    text, steps["text"] = timed(partial(structure, schema, links))
    assert estimate(text.text) <= config.current().schema_tokens
    return Grounding(steps, text.tokens, wanted in tables_for(links, known.schema))


def timed(action: Callable[[], Made]) -> tuple[Made, float]:
    started = time.process_time()
    value = action()
    return value, time.process_time() - started


def report(
    schema: Schema, abstraction: float, first: Grounding, warm: list[Grounding], before: float
) -> Iterator[str]:
    columns = sum(len(table.columns) for table in schema.tables)
    known = len(units(schema).schema.tables)
    yield f"{len(schema.tables):,} tables, {columns:,} columns; {known:,} units"
    yield "| step | seconds |\n|---|---:|"
    yield f"| abstraction | {abstraction:.2f} |"
    yield f"| first question: folding, indexes, values | {first.total:.2f} |"
    for step in first.steps:
        yield f"| warm: {step} | {statistics.median(w.steps[step] for w in warm):.3f} |"
    yield f"| warm question, median | {statistics.median(w.total for w in warm):.3f} |"
    yield f"| warm question, slowest | {max(w.total for w in warm):.3f} |"
    yield f"memory: {megabytes():.0f} MB at most, {before:.0f} MB before"
    yield f"asked table kept: {sum(w.found for w in warm)} of {len(warm)}; {warm[0].tokens} tokens"


def megabytes() -> float:
    """The most memory that this process has held so far."""
    unit = 1024 if sys.platform != "darwin" else 1024 * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--dense", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())

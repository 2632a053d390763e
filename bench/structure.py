"""Tokens of K*_struct for every database of a metadata folder: raw, folded and retrieved.

    python -m bench.structure FOLDER... [--questions spider2-lite.jsonl] [--budget 1500]

Each folder is a schema that `lynx_dspy.grounding.sources` reads. `raw` is the CREATE TABLE text of
all tables, `folded` that of the units, `retrieved` the largest text that a question of the database
is given. A text over the budget ends the run with 1.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from lynx_dspy import config
from lynx_dspy.engines.metadata import MetadataDatabase
from lynx_dspy.grounding.folding import folded
from lynx_dspy.grounding.linking import link
from lynx_dspy.grounding.render import render, tokens_raw
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.modules.generator import structure, units


def main() -> int:
    options = _parse()
    questions = _questions(options.questions)
    over = False
    print("| database | dialect | tables | units | columns | raw | folded | retrieved | ms |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for folder in options.folders:
        asked = questions.get(folder.name, ["How many rows are there a year?"])
        with config.using(config.FULL.with_(schema_tokens=options.budget)):
            row, largest = measured(folder, asked)
        over |= largest > options.budget
        print(row, flush=True)
    return int(over)


def measured(folder: Path, asked: Sequence[str]) -> tuple[str, int]:
    """A row of the table, and the tokens of the largest text that any stage is given."""
    with MetadataDatabase(str(folder)) as database:
        schema = abstract(database)
        known = units(schema)
        link(asked[0], "", known.schema, database)
        largest, started = 0, time.process_time()
        for question in asked:
            links = link(question, "", known.schema, database)
            budget = config.current().schema_tokens
            elements = render(known.schema, budget, (), links, "compact", known.notes)
            largest = max(largest, structure(schema, links).tokens, elements.tokens)
        seconds = (time.process_time() - started) / len(asked)
    columns = sum(len(table.columns) for table in schema.tables)
    alike = folded(schema).schema
    cells = (
        folder.name,
        schema.dialect,
        f"{len(schema.tables):,}",
        f"{len(alike.tables):,}",
        f"{columns:,}",
        f"{tokens_raw(schema):,}",
        f"{tokens_raw(alike):,}",
        f"{largest:,}",
        f"{1000 * seconds:.0f}",
    )
    return f"| {' | '.join(cells)} |", largest


def _questions(path: Path | None) -> Mapping[str, list[str]]:
    """Spider 2.0's questions by database."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines() if path else ():
        record = json.loads(line)
        found[record["db"]].append(record.get("question") or record["instruction"])
    return found


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--budget", type=int, default=config.FULL.schema_tokens)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())

"""How much of what a gold query reads survives schema linking, with and without each retrieval.

    python -m bench.linking spider=DIR bird=DIR sql_eval:train=DIR sql_eval:val=DIR
        [--budget TOKENS ...] [--only NAME ...] [--misses] [--values]

`linked` counts the tables that linking keeps and the columns that it names; `shown` counts what the
stages read in K*_struct within the budget, where a schema that fits is shown whole. No language
model runs. Where a benchmark's database is not at hand, its structure is read from `tables.json`.

`--values` measures value grounding instead (`bench/constants.py`): the share of the texts that the
golds compare columns with which are linked, exact in spelling and column, and which are told to the
stages, with exact matching alone and with other spellings too.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean

import dspy

from bench import constants
from lynx_dspy import config, connect, datasets
from lynx_dspy.engines.base import Database
from lynx_dspy.engines.described import DescribedDatabase
from lynx_dspy.grounding.embedding import Embedder, default_embedder
from lynx_dspy.grounding.linking import link, tables_for
from lynx_dspy.grounding.nearness import near_elements
from lynx_dspy.grounding.schema import abstract, with_descriptions
from lynx_dspy.grounding.sources import read_schema
from lynx_dspy.metrics.linking import Names, names_used, parsed
from lynx_dspy.modules.generator import SURE, structure
from lynx_dspy.values import Link, Schema


@dataclass(frozen=True)
class Asked:
    """A question with its schema and the names that its golds read."""

    question: str
    evidence: str
    schema: Schema
    database: Database | None
    golds: Sequence[Names]
    constants: Sequence[frozenset[constants.Constant]] = ()


Retrieval = Callable[[Asked], Sequence[Link]]


def no_links(asked: Asked) -> Sequence[Link]:
    return ()


def lexical(asked: Asked) -> Sequence[Link]:
    return link(asked.question, asked.evidence, asked.schema)


def lexical_and_values(asked: Asked) -> Sequence[Link]:
    return link(asked.question, asked.evidence, asked.schema, asked.database)


def dense(asked: Asked) -> Sequence[Link]:
    texts = [t for t in (asked.question, asked.evidence) if t]
    return list(near_elements(texts, asked.schema, _embedder()))


def everything(asked: Asked) -> Sequence[Link]:
    return link(asked.question, asked.evidence, asked.schema, asked.database, _embedder())


RETRIEVALS: dict[str, Retrieval] = {
    "off": no_links,
    "lexical": lexical,
    "lexical, values": lexical_and_values,
    "dense": dense,
    "all": everything,
}


@dataclass(frozen=True)
class Measured:
    """One question under one retrieval and budget; shares in [0, 1]."""

    table_recall: float
    tables_kept: float
    columns_linked: float
    shown_tables: float
    shown_columns: float
    tokens: int
    seconds: float


def main() -> int:
    options = _parse()
    if options.values:
        return values(options.sources)
    print(
        "| data | n | retrieval | tables linked | all linked | tables kept | columns linked "
        "| budget | tables shown | columns shown | tokens | ms |"
    )
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    with ExitStack() as stack:
        for source in options.sources:
            name, _, folder = source.partition("=")
            asked = list(questions(name, Path(folder), stack))
            for retrieval in options.only or RETRIEVALS:
                for budget in options.budget:
                    print(_row(name, asked, retrieval, budget, options.misses), flush=True)
    return 0


def values(sources: Sequence[str]) -> int:
    """The table of `--values`; questions without a database at hand are left out."""
    print(constants.HEAD)
    with ExitStack() as stack:
        for source in sources:
            name, _, folder = source.partition("=")
            asked = [one for one in questions(name, Path(folder), stack) if one.database]
            for spellings in (False, True):
                print(_values_row(name, asked, spellings), flush=True)
    return 0


def _values_row(name: str, asked: Sequence[Asked], spellings: bool) -> str:
    answers: list[constants.Told] = []
    sure: list[constants.Told] = []
    seconds = 0.0
    for one in asked:
        started = time.process_time()
        links = link(one.question, one.evidence, one.schema, one.database, spellings=spellings)
        seconds += time.process_time() - started
        for told, least in ((answers, 0.0), (sure, SURE)):
            found = [constants.told(gold, links, least) for gold in one.constants]
            told.append(max(found, key=lambda t: t.found / max(1, t.constants)))
    way = "other spellings too" if spellings else "exact"
    return constants.row(name, way, answers, sure, 1000 * seconds / max(1, len(asked)))


def questions(name: str, folder: Path, stack: ExitStack) -> Iterator[Asked]:
    """The questions of one split whose gold query parses."""
    dataset, _, split = name.partition(":")
    open_databases: dict[str, tuple[Schema, Database | None]] = {}
    for example in datasets.load(dataset, folder, split):
        if example.db not in open_databases:
            open_databases[example.db] = _opened(dataset, folder, example, stack)
        schema, database = open_databases[example.db]
        trees = [tree for sql in example.gold_sql if (tree := parsed(sql, schema)) is not None]
        golds = [names_used(tree, schema) for tree in trees]
        texts = [constants.constants(tree, schema) for tree in trees]
        if golds:
            yield Asked(example.question, example.evidence, schema, database, golds, texts)


def _opened(
    dataset: str, folder: Path, example: dspy.Example, stack: ExitStack
) -> tuple[Schema, Database | None]:
    described = datasets.describe(dataset, folder, example.db)
    if not example.database:
        tables = next(folder.glob("*tables.json"))
        return with_descriptions(read_schema(f"{tables}#{example.db}"), described), None
    database = stack.enter_context(connect(example.database))
    told = DescribedDatabase(database, described)
    return abstract(told), told


def measure(asked: Asked, retrieval: Retrieval, budget: int) -> Measured:
    """The best of the golds: any of them is an answer."""
    started = time.process_time()
    links = retrieval(asked)
    with config.using(config.FULL.with_(schema_tokens=budget)):
        text = structure(asked.schema, links)
    seconds = time.process_time() - started
    kept = {name.casefold() for name in tables_for(links, asked.schema)}
    named = {f"{x.table}.{x.column}".casefold() for x in links}
    missing = {name.casefold() for name in text.left_out}
    gold = max(asked.golds, key=lambda g: (g.tables <= kept, _recall(g.tables, kept)))
    hidden = {c for c in gold.columns if c.partition(".")[0] in missing} | missing
    return Measured(
        table_recall=_recall(gold.tables, kept),
        tables_kept=len(kept) / len(asked.schema.tables),
        columns_linked=_recall(gold.columns, named),
        shown_tables=_recall(gold.tables, gold.tables - missing),
        shown_columns=_recall(gold.columns, gold.columns - hidden),
        tokens=text.tokens,
        seconds=seconds,
    )


def _recall(gold: frozenset[str], found: set[str] | frozenset[str]) -> float:
    return len(gold & found) / len(gold) if gold else 1.0


def _row(name: str, asked: Sequence[Asked], retrieval: str, budget: int, misses: bool) -> str:
    measured = [measure(one, RETRIEVALS[retrieval], budget) for one in asked]
    if misses:
        for one, m in zip(asked, measured, strict=True):
            if m.shown_columns < 1 or m.shown_tables < 1:
                _tell(one, m, RETRIEVALS[retrieval], budget)
    linked = mean(m.table_recall == 1 for m in measured)
    cells = [
        name,
        str(len(measured)),
        retrieval,
        f"{mean(m.table_recall for m in measured):.3f}",
        f"{linked:.3f}",
        f"{mean(m.tables_kept for m in measured):.2f}",
        f"{mean(m.columns_linked for m in measured):.3f}",
        str(budget),
        f"{mean(m.shown_tables for m in measured):.3f}",
        f"{mean(m.shown_columns for m in measured):.3f}",
        f"{mean(m.tokens for m in measured):.0f}",
        f"{1000 * mean(m.seconds for m in measured):.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def _tell(asked: Asked, measured: Measured, retrieval: Retrieval, budget: int) -> None:
    with config.using(config.FULL.with_(schema_tokens=budget)):
        missing = {n.casefold() for n in structure(asked.schema, retrieval(asked)).left_out}
    gold = asked.golds[0]
    lost = [n for n in (*gold.tables, *gold.columns) if {n, n.partition(".")[0]} & missing]
    print(f"{asked.schema.name}: {asked.question} ({asked.evidence}) lost {lost}", file=sys.stderr)


class _Embedding:
    """The embedder of the run, found once; without weights the dense rows cannot be measured."""

    @cached_property
    def found(self) -> Embedder:
        embedder = default_embedder()
        if embedder is None:
            raise SystemExit("No embedder: `lynx model pull minilm` fetches one, or use --only.")
        return embedder


_embedding = _Embedding()


def _embedder() -> Embedder:
    return _embedding.found


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="+", metavar="DATASET[:SPLIT]=DIR")
    parser.add_argument(
        "--budget",
        type=int,
        nargs="+",
        default=[config.EMBEDDED.schema_tokens, config.FULL.schema_tokens],
    )
    parser.add_argument("--only", nargs="+", choices=RETRIEVALS)
    parser.add_argument("--values", action="store_true", help="measure value grounding instead")
    parser.add_argument("--misses", action="store_true", help="name what was lost, on stderr")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())

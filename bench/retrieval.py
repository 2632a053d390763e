"""How often retrieval finds the document that a question needs, by way of searching.

    python -m bench.retrieval [--data DIR]

`DIR` holds benchmarks as their projects publish them (`sql_eval`, `bird_mini_dev`, `spider2-lite`);
those that are absent are left out. Which document a question needs is known from the benchmark:
`needs_docs` of the sample, `external_knowledge` of Spider 2.0-Lite, and for `knowledge` of sql_eval
and `evidence` of BIRD the very sentence that was written for the question, among those written for
all questions of the benchmark.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lynx_dspy.datasets import sample
from lynx_dspy.grounding.documents import Documents
from lynx_dspy.grounding.embedding import Embedder, Vectors, default_embedder
from lynx_dspy.grounding.rerank import LastWord
from lynx_dspy.grounding.retrieval import WAYS, Shelf, Way, search

AT = (1, 3, 6)


class Mode(NamedTuple):
    """A way of searching with its name in the table."""

    name: str
    ways: tuple[Way, ...]
    reranker: LastWord = "none"


MODES = (
    Mode("BM25", ("keywords",)),
    Mode("BM25 + exact words", ("keywords", "exact")),
    Mode("dense", ("meaning",)),
    Mode("BM25 + dense (fused)", ("keywords", "meaning")),
    Mode("hybrid (fused)", WAYS),
    Mode("hybrid, re-ranked by cosine", WAYS, "cosine"),
)


class Task(NamedTuple):
    """Documents, and questions with the sources that each needs."""

    name: str
    documents: Documents
    questions: Sequence[tuple[str, frozenset[str]]]


class Remembering:
    """An embedder that embeds a question once for all modes."""

    def __init__(self, embedder: Embedder) -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._questions: dict[str, Vectors] = {}

    def encode(self, texts: Sequence[str]) -> Vectors:
        if len(texts) != 1:
            return self._embedder.encode(texts)
        if texts[0] not in self._questions:
            self._questions[texts[0]] = self._embedder.encode(texts)
        return self._questions[texts[0]]


def main() -> int:
    parser = argparse.ArgumentParser(description="Hit rates of retrieval.")
    parser.add_argument("--data", type=Path, help="folder of benchmarks")
    data: Path | None = parser.parse_args().data
    found = default_embedder()
    embedder = Remembering(found) if found is not None else None
    print(f"embedder: {embedder.name if embedder else 'none'}\n")
    columns = " | ".join(f"hit@{k}" for k in AT)
    print(f"| documents | questions | passages | search | {columns} | MRR |")
    print("|---|---:|---:|---|" + "---:|" * (len(AT) + 1))
    for task in (_sample(), *(_benchmarks(data) if data else ())):
        shelf = Shelf(task.documents.passages)
        for number, mode in enumerate(MODES):
            head = (task.name, str(len(task.questions)), str(len(shelf.passages)))
            cells = head if number == 0 else ("", "", "")
            scores = [f"{100 * s:.1f}" for s in rates(task, shelf, mode, embedder)]
            print("| " + " | ".join([*cells, mode.name, *scores]) + " |", flush=True)
    return 0


def rates(task: Task, shelf: Shelf, mode: Mode, embedder: Embedder | None) -> list[float]:
    """The share of needed documents found among the first 1, 3 and 6 passages, and the MRR."""
    rows = []
    for question, needed in task.questions:
        ranked = search([shelf], question, max(AT), embedder, mode.reranker, mode.ways)
        sources = [p.source for p in ranked]
        hits = [len(needed & set(sources[:k])) / len(needed) for k in AT]
        first = next((rank for rank, s in enumerate(sources, 1) if s in needed), None)
        rows.append([*hits, 1 / first if first else 0.0])
    return [float(mean) for mean in np.mean(rows, axis=0)]


def _sample() -> Task:
    documents = Documents.open(sample.documents_path())
    asked = [q for split in ("train", "val", "test") for q in sample.questions(split)]
    needs = [
        (q["question"], frozenset(f"{name}.md" for name in q["needs_docs"]))
        for q in asked
        if q["needs_docs"]
    ]
    return Task("sample", documents, needs)


def _benchmarks(data: Path) -> Iterator[Task]:
    sql_eval = [r for file in sorted((data / "sql_eval").glob("*.jsonl")) for r in _lines(file)]
    if sql_eval:
        yield _own_sentences("sql_eval knowledge", sql_eval, "knowledge")
    bird = data / "bird_mini_dev" / "mini_dev_sqlite.json"
    if bird.is_file():
        yield _own_sentences("BIRD evidence", json.loads(bird.read_text()), "evidence")
    lite = data / "spider2-lite"
    if lite.is_dir():
        yield _spider2(lite)


def _own_sentences(name: str, records: Iterable[dict[str, str]], field: str) -> Task:
    """Each distinct sentence is a document; a question needs the one written for it."""
    records = [r for r in records if r.get(field)]
    texts = list(dict.fromkeys(r[field] for r in records))
    sources = {text: f"{field} {number}" for number, text in enumerate(texts)}
    documents = Documents.from_texts({source: text for text, source in sources.items()})
    needs = [(r["question"], frozenset([sources[r[field]]])) for r in records]
    return Task(name, documents, needs)


def _spider2(lite: Path) -> Task:
    documents = Documents.open(lite / "resource" / "documents")
    held = {p.source for p in documents.passages}
    needs = [
        (r["question"], frozenset([r["external_knowledge"]]))
        for r in _lines(lite / "spider2-lite.jsonl")
        if r.get("external_knowledge") in held
    ]
    return Task("Spider 2.0-Lite documents", documents, needs)


def _lines(file: Path) -> Iterator[dict[str, str]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


if __name__ == "__main__":
    raise SystemExit(main())

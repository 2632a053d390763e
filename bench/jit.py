"""Whether the score of the evidence tells a question that lacks its definition from others.

    python -m bench.jit --sql-eval DIR --bird DIR

Each question is asked of documents that hold what it needs, and of the same documents without it:
sql_eval's `knowledge` sentences among the sample's pages, the sample's pages, and BIRD's
`evidence` sentences of the same database. Prints, for thresholds of `jit_below`, how often terms
would be asked for without (should be often) and with (should be seldom), and the area under the
ROC curve. A second table says, at the threshold of the default, what asking finds in the documents
that hold what is needed: the share of needed texts among those retrieved, and with those of the
terms, where a model that names every phrase of the question stands in for the stage.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import lynx_dspy as lynx
from lynx_dspy.config import FULL
from lynx_dspy.datasets import sample
from lynx_dspy.grounding.embedding import Embedder, Vectors, default_embedder
from lynx_dspy.grounding.linking import open_concepts
from lynx_dspy.grounding.lookup import support
from lynx_dspy.modules.retrieval import MOST_TERMS, expand

THRESHOLDS = (0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7)


class Case(NamedTuple):
    """A question, the texts of its documents, and the sources of those that it needs."""

    question: str
    texts: dict[str, str]
    needed: frozenset[str]


class Once:
    """An embedder that embeds each text once: the documents of the cases overlap."""

    def __init__(self, inner: Embedder) -> None:
        self.inner, self.name = inner, inner.name
        self.known: dict[str, Vectors] = {}

    def encode(self, texts: Sequence[str]) -> Vectors:
        new = sorted({text for text in texts if text not in self.known})
        self.known.update(zip(new, self.inner.encode(new), strict=True))
        return np.stack([self.known[text] for text in texts])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sql-eval", type=Path, required=True)
    parser.add_argument("--bird", type=Path, required=True)
    parser.add_argument("--every", type=int, default=4, help="take each n-th question of BIRD")
    options = parser.parse_args()
    found = default_embedder()
    embedder = Once(found) if found else None
    print(f"embedder: {found.name if found else None}\n")
    print("| questions | n | AUC |", *(f"{t:.2f} |" for t in THRESHOLDS))
    print("|---|---:|---:|" + "---:|" * len(THRESHOLDS))
    sets = {
        "sql_eval": sql_eval_cases(options.sql_eval),
        "sample": sample_cases(),
        "bird": list(bird_cases(options.bird))[:: options.every],
    }
    held = {name: list(cases) for name, cases in sets.items()}
    for name, cases in held.items():
        print(row(name, cases, embedder))
    print(f"\n| questions | n | asked below {FULL.jit_below} | needed: retrieved | and looked up |")
    print("|---|---:|---:|---:|---:|")
    for name, cases in held.items():
        print(found_row(name, cases, embedder))
    return 0


def sql_eval_cases(folder: Path) -> Iterator[Case]:
    lines = (folder / "train.jsonl").read_text().splitlines()
    asked = [one for one in map(json.loads, lines) if one["knowledge"]]
    texts = {one["knowledge"]: one["knowledge"] for one in asked} | sample_pages()
    for one in asked:
        yield Case(one["question"], texts, frozenset({one["knowledge"]}))


def sample_cases() -> Iterator[Case]:
    questions = Path(sample.__file__).parent / "questions.jsonl"
    for one in map(json.loads, questions.read_text().splitlines()):
        if one["needs_docs"]:
            yield Case(one["question"], sample_pages(), frozenset(one["needs_docs"]))


def sample_pages() -> dict[str, str]:
    return {file.stem: file.read_text() for file in sorted(sample.documents_path().glob("*.md"))}


def bird_cases(folder: Path) -> Iterator[Case]:
    file = next(folder.rglob("mini_dev_sqlite.json"))
    asked = [one for one in json.loads(file.read_text()) if one["evidence"]]
    by_database: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for one in asked:
        by_database[one["db_id"]][one["evidence"]] = one["evidence"]
    for one in asked:
        yield Case(one["question"], by_database[one["db_id"]], frozenset({one["evidence"]}))


def row(name: str, cases: Sequence[Case], embedder: Embedder | None) -> str:
    having = np.array([score(c.question, c.texts, embedder) for c in cases])
    lacking = np.array(
        [
            score(c.question, {s: t for s, t in c.texts.items() if s not in c.needed}, embedder)
            for c in cases
        ]
    )
    wins = (having[:, None] > lacking[None, :]) + 0.5 * (having[:, None] == lacking[None, :])
    asked = (f"{np.mean(lacking < t):.0%} / {np.mean(having < t):.0%} |" for t in THRESHOLDS)
    return f"| {name} | {len(cases)} | {wins.mean():.2f} | {' '.join(asked)}"


def found_row(name: str, cases: Sequence[Case], embedder: Embedder | None) -> str:
    """Of the questions for which terms are asked: the needed texts retrieved, and looked up too."""
    asked = [c for c in cases if score(c.question, c.texts, embedder) < FULL.jit_below]
    shares = np.array([found(c, embedder) for c in asked]) if asked else np.zeros((1, 2))
    before, after = shares.mean(axis=0)
    return f"| {name} | {len(cases)} | {len(asked)} | {before:.0%} | {after:.0%} |"


def found(case: Case, embedder: Embedder | None) -> tuple[float, float]:
    """The share of needed texts among those retrieved, without and with those of the terms."""
    documents = lynx.Documents.from_texts(case.texts, embedder=embedder)
    first = {p.source for p in documents.retrieve(case.question, FULL.top_k)}
    terms = open_concepts(case.question, ())[:MOST_TERMS]
    own = {p.source for p in expand(terms, case.question, documents, ()).own}
    needed = case.needed
    return len(needed & first) / len(needed), len(needed & (first | own)) / len(needed)


def score(question: str, texts: dict[str, str], embedder: Embedder | None) -> float:
    found = lynx.Documents.from_texts(texts, embedder=embedder).retrieve(question, FULL.top_k)
    return support(question, [passage.text for passage in found], embedder)


if __name__ == "__main__":
    raise SystemExit(main())

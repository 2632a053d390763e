"""Documents at scale: first start, second start, a question, memory, and HNSW against exact.

    python -m bench.documents [--passages 100000] [--graph 120000]

The text is made up from real words by chance. 100,000 passages would keep MiniLM busy for an hour,
so its rate is measured on a sample of them, and a stand-in that costs nothing makes the vectors of
the rest. Each start is a process of its own, so that memory is that of one start.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lynx_dspy.datasets import sample
from lynx_dspy.grounding import dense
from lynx_dspy.grounding.documents import Documents
from lynx_dspy.grounding.embedding import Vectors, default_embedder

WIDTH = 384
RATED = 512
ASKED = 200
NEIGHBOURS = 10
_PARAGRAPH_WORDS = 90


class StandIn:
    """Vectors from sums of chance vectors of the words: texts of like words are near."""

    name = "stand-in"

    def __init__(self) -> None:
        self._table = np.random.default_rng(7).normal(size=(4_096, WIDTH)).astype(np.float32)

    def encode(self, texts: Sequence[str]) -> Vectors:
        sums = np.stack(
            [self._table[[zlib.crc32(w.encode()) % 4_096 for w in t.split()]].sum(0) for t in texts]
            if texts
            else [np.zeros(WIDTH, dtype=np.float32)]
        )
        lengths = np.linalg.norm(sums, axis=1, keepdims=True) + 1e-9
        return np.ascontiguousarray(sums / lengths, dtype=np.float32)[: len(texts)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Documents at scale.")
    parser.add_argument("--passages", type=int, default=99_000)
    parser.add_argument("--graph", type=int, default=120_000, help="vectors of the comparison")
    parser.add_argument("--start", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.start:
        return start(given.start)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "manual.md"
        write(file, given.passages)
        print(f"{os.cpu_count()} cores; one document of {file.stat().st_size / 1e6:.0f} MB\n")
        print("| start | reading | indexing | a question | peak memory | passages | index |")
        print("|---|---:|---:|---:|---:|---:|---|")
        for name in ("first", "second"):
            print(f"| {name} | {fresh(file, Path(scratch) / 'home')} |", flush=True)
    rate()
    compare(given.graph)
    return 0


def write(file: Path, passages: int) -> None:
    """A Markdown document of about so many passages, a heading to every five."""
    chance = random.Random(3)
    words = [w for page in sample.documents_path().glob("*.md") for w in page.read_text().split()]
    with file.open("w", encoding="utf-8") as out:
        for number in range(passages):
            if number % 5 == 0:
                out.write(f"## Section {number // 5}\n\n")
            text = " ".join(w.strip("#|`") for w in chance.choices(words, k=_PARAGRAPH_WORDS))
            out.write(f"Entry X{number}Q: {text}\n\n")


def fresh(file: Path, home: Path) -> str:
    """The figures of one start in a process of its own, with the cache in `home`."""
    command = [sys.executable, "-m", "bench.documents", "--start", str(file)]
    environment = os.environ | {"LYNX_HOME": str(home)}
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=environment
    ).stdout.strip()


def start(file: Path) -> int:
    """Open, prepare and ask, and print what that took as cells of a table."""
    embedder = StandIn()
    begun = time.perf_counter()
    documents = Documents.open(file, embedder=embedder)
    read = time.perf_counter()
    indexed = documents.prepare()
    ready = time.perf_counter()
    numbers = random.Random(1).sample(range(1_000), 20)
    for number in numbers:
        best = documents.retrieve(f"what is the status of entry X{number}Q in orders", 6)
        assert best
    asked = (time.perf_counter() - ready) / len(numbers)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
    cells = (
        *(f"{read - begun:.1f} s", f"{ready - read:.1f} s", f"{1_000 * asked:.0f} ms"),
        *(f"{peak:,.0f} MB", f"{indexed.passages:,}", indexed.kind),
    )
    print(" | ".join(cells))
    return 0


def rate() -> None:
    """How many passages the default embedder takes a second."""
    embedder = default_embedder()
    if embedder is None:
        print("\nno embedder is pulled: no rate")
        return
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "manual.md"
        write(file, RATED)
        texts = [p.text for p in Documents.open(file, embedder=None).passages]
    embedder.encode(["warm"])
    begun = time.perf_counter()
    embedder.encode(texts)
    print(f"\n{embedder.name}: {len(texts) / (time.perf_counter() - begun):.0f} passages a second")


def compare(count: int) -> None:
    """Recall and time of a graph against the exact search, on vectors that lie in clusters."""
    vectors, asked = clustered(count), clustered(ASKED, seed=5)
    print(f"\n| index of {count:,} | building | a question | recall@{NEIGHBOURS} |")
    print("|---|---:|---:|---:|")
    truth: list[set[int]] = []
    kinds: tuple[dense.Kind, ...] = ("exact", "hnsw")
    for kind in kinds:
        begun = time.perf_counter()
        index = dense.build(vectors, kind)
        built = time.perf_counter()
        found = [set(index.nearest(asked[i : i + 1], NEIGHBOURS)) for i in range(ASKED)]
        took = 1_000 * (time.perf_counter() - built) / ASKED
        truth = truth or found
        recall = np.mean([len(f & t) / NEIGHBOURS for f, t in zip(found, truth, strict=True)])
        print(f"| {kind} | {built - begun:.1f} s | {took:.2f} ms | {recall:.3f} |", flush=True)


def clustered(count: int, seed: int = 0) -> Vectors:
    """Unit vectors round 1,000 centres, as near to them as passages are to their topic."""
    centres = np.random.default_rng(11).normal(size=(1_000, WIDTH))
    chance = np.random.default_rng(seed)
    spread = chance.normal(size=(count, WIDTH)) * 0.8
    vectors = (centres[chance.integers(0, 1_000, count)] + spread).astype(np.float32)
    return np.ascontiguousarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


if __name__ == "__main__":
    raise SystemExit(main())

"""Passages by their words: BM25, and what a question writes exactly (paper, III-A1).

BM25 is bm25s over stems. Identifiers, codes and quoted words are looked up as they are written, so
that a question about `ZX-9` finds the one passage that names it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import tempfile
import zipfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lynx_dspy.grounding import store
from lynx_dspy.grounding.identifiers import fold, stem, words
from lynx_dspy.grounding.lexical import STOP_WORDS
from lynx_dspy.progress import report

if TYPE_CHECKING:
    import bm25s

WORTH_KEEPING = 2_000
"""Passages whose keyword index is kept: fewer are counted in less than a second."""

_MOST_KEPT = 8
_FORMAT = "1"
_TOKEN = re.compile(r"\w+")
_EXACT = re.compile(
    r"""['"`“]([^'"`”]{2,60})['"`”]"""
    r"""|\b(\w+_\w+|[A-Z]{2,}\w*|[a-z]+[A-Z]\w*|(?=\d*[^\W\d])\w*\d\w*)\b"""
)
"""Quoted words, identifiers and codes. A bare number is none: every text holds some of them."""

_RARE = 0.1
_FEW = 3
"""What more than a tenth of the texts hold (and more than three) names none of them."""


class Keywords:
    """Keyword search over texts, which are known by their position."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._folded = [fold(text) for text in texts]
        self._bm25 = _bm25_of(texts)

    def by_keywords(self, query: str, k: int) -> list[int]:
        """At most `k` texts that share words with `query`, by BM25, best first."""
        terms = [term for term in terms_of(query) if term in self._bm25.vocab_dict]
        if not terms:
            return []
        k = min(k, len(self._folded))
        found, scores = self._bm25.retrieve([terms], k=k, show_progress=False)
        return [int(i) for i, score in zip(found[0], scores[0], strict=True) if score > 0]

    def by_exact_words(self, query: str, k: int) -> list[int]:
        """At most `k` texts that hold what `query` quotes or names, rare ones first."""
        scores: Counter[int] = Counter()
        for exact in sorted({fold(a or b) for a, b in _EXACT.findall(query)} - {""}):
            holding = self._holding(exact)
            if len(holding) > max(_FEW, _RARE * len(self._folded)):
                continue
            for i in holding:
                scores[i] += math.log1p(len(self._folded) / len(holding))  # type: ignore[assignment]
        return [i for i, _ in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:k]]

    def _holding(self, exact: str) -> list[int]:
        """Texts that hold `exact` as whole words; asking for the letters first is far faster."""
        whole = re.compile(rf"(?<!\w){re.escape(exact)}(?!\w)")
        return [i for i, text in enumerate(self._folded) if exact in text and whole.search(text)]


def terms_of(text: str) -> list[str]:
    """Stems for BM25; an identifier counts whole and word by word.

    >>> terms_of("the order_items of orders")
    ['order', 'item', 'order_items', 'order']
    """
    terms = []
    for token in _TOKEN.findall(text):
        parts = [part for part in words(token) if part not in STOP_WORDS]
        terms += [stem(part) for part in parts]
        if len(parts) > 1:
            terms.append(fold(token))
    return terms


def _bm25_of(texts: Sequence[str]) -> bm25s.BM25:
    if len(texts) < WORTH_KEEPING:
        return _counted(texts)
    digest = hashlib.sha256(_FORMAT.encode())
    for text in texts:
        digest.update(hashlib.sha256(text.encode(errors="replace")).digest())
    path = store.folder() / "keywords" / f"{digest.hexdigest()[:32]}.zip"
    held = _read(path)
    if held is not None:
        return held
    report("documents", f"counting the words of {len(texts):,} passages")
    made = _counted(texts)
    with suppress(OSError):
        _write(path, made)
    return made


def _counted(texts: Sequence[str]) -> bm25s.BM25:
    import bm25s

    index = bm25s.BM25()
    numbers: dict[str, int] = {"_": 0}
    corpus = [[numbers.setdefault(t, len(numbers)) for t in terms_of(x)] or [0] for x in texts]
    index.index((corpus, numbers), show_progress=False)
    return index


def _read(path: Path) -> bm25s.BM25 | None:
    """The kept index; the archive's check sums tell whether it is whole."""
    import bm25s

    try:
        with tempfile.TemporaryDirectory() as scratch:
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    (Path(scratch) / Path(name).name).write_bytes(archive.read(name))
            os.utime(path)
            return bm25s.BM25.load(scratch, show_progress=False)
    except FileNotFoundError:
        return None
    except (OSError, zipfile.BadZipFile, LookupError, ValueError, json.JSONDecodeError):
        report("documents", f"the index {path} was damaged and is made anew")
        return None


def _write(path: Path, index: bm25s.BM25) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        parts, whole = Path(scratch) / "parts", Path(scratch) / "whole.zip"
        index.save(parts, show_progress=False)
        with zipfile.ZipFile(whole, "w") as archive:
            for part in sorted(parts.iterdir()):
                archive.write(part, part.name)
        os.replace(whole, path)
    for old in sorted(path.parent.glob("*.zip"), key=lambda p: -p.stat().st_mtime)[_MOST_KEPT:]:
        old.unlink(missing_ok=True)

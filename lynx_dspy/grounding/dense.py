"""Passages by meaning: vectors in a FAISS index that is kept between runs (paper, III-A1).

Up to `EXACT_UP_TO` passages are compared one by one; beyond it an HNSW graph finds nearly all of
the same in a part of the time (`python -m bench.documents`). What is kept is one file an index, and
a manifest that names it and its SHA-256, since FAISS does not survive a file that was cut.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lynx_dspy.grounding import store
from lynx_dspy.grounding.embedding import Embedder, Vectors
from lynx_dspy.progress import report

if TYPE_CHECKING:
    import faiss

EXACT_UP_TO = 100_000
"""Passages up to which the search is exact: some 10 ms a question at that number."""

BATCH = 256
"""Passages embedded before they are kept: what is done survives an interruption."""

_LINKS, _BUILD_WIDTH, _SEARCH_WIDTH = 32, 100, 128
_FORMAT = "1"
_MOST_KEPT = 16
_MOST_BYTES = 2_000_000_000

Kind = Literal["exact", "hnsw"]


def kind_for(passages: int) -> Kind:
    """The kind of index for so many passages.

    >>> kind_for(100_000), kind_for(100_001)
    ('exact', 'hnsw')
    """
    return "exact" if passages <= EXACT_UP_TO else "hnsw"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is known of an index file before it is opened."""

    kind: Kind
    embedder: str
    passages: int
    width: int
    file: str
    sha256: str


class DenseIndex:
    """A FAISS index of inner products; passages are known by their position."""

    def __init__(self, index: faiss.Index, kind: Kind) -> None:
        self.kind = kind
        self._index = index

    def nearest(self, asked: Vectors, k: int) -> list[int]:
        """The `k` passages nearest to `asked`, shape (1, d), nearest first."""
        return [int(i) for i in self._index.search(asked, k)[1][0] if i >= 0]

    def vectors(self, positions: Sequence[int]) -> Vectors:
        """The vectors of these passages, shape (len(positions), d)."""
        wanted = np.asarray(positions, dtype=np.int64)
        return np.asarray(self._index.reconstruct_batch(wanted), dtype=np.float32)

    def write(self, path: Path) -> None:
        import faiss

        faiss.write_index(self._index, str(path))


def key(text: str) -> bytes:
    """The name under which the vector of a passage is kept: a hash of what is embedded."""
    return hashlib.sha256(text.encode(errors="replace")).digest()[:16]


def build(vectors: Vectors, kind: Kind) -> DenseIndex:
    """An index of `vectors`, shape (n, d), rows of length 1."""
    import faiss

    width = vectors.shape[1]
    if kind == "exact":
        exact = faiss.IndexFlatIP(width)
        exact.add(vectors)
        return DenseIndex(exact, kind)
    faiss.omp_set_num_threads(max(1, (os.cpu_count() or 1) // 2))
    graph = faiss.IndexHNSWFlat(width, _LINKS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = _BUILD_WIDTH
    graph.hnsw.efSearch = _SEARCH_WIDTH
    graph.add(vectors)
    return DenseIndex(graph, kind)


def embedded(texts: Sequence[str], embedder: Embedder, width: int) -> Vectors:
    """The vectors of `texts`, shape (len(texts), width): those kept, and the rest made and kept."""
    keys = [key(text) for text in texts]
    held = store.vectors(embedder.name, keys, width)
    absent = {k: text for k, text in zip(keys, texts, strict=True) if k not in held}
    held |= _made(absent, embedder)
    return np.stack([held[k] for k in keys]) if keys else np.zeros((0, width), dtype=np.float32)


def _made(absent: dict[bytes, str], embedder: Embedder) -> dict[bytes, Vectors]:
    """Texts of one length together: a batch takes as long as its longest text asks for."""
    made: dict[bytes, Vectors] = {}
    waiting = sorted(absent.items(), key=lambda pair: len(pair[1]))
    for start in range(0, len(waiting), BATCH):
        batch = waiting[start : start + BATCH]
        if len(waiting) > BATCH:
            report("documents", f"embedding passages: {start:,} of {len(waiting):,}")
        rows = embedder.encode([text for _, text in batch])
        fresh = {k: row for (k, _), row in zip(batch, rows, strict=True)}
        store.keep_vectors(embedder.name, fresh)
        made |= fresh
    return made


def missing(texts: Sequence[str], embedder: Embedder, width: int) -> int:
    """How many of `texts` would have to be embedded."""
    keys = {key(text) for text in texts}
    return len(keys) - len(store.vectors(embedder.name, list(keys), width))


def kept_index(texts: Sequence[str], embedder: Embedder, width: int) -> DenseIndex | None:
    """The index of exactly these texts if it lies in the cache and is sound."""
    manifest_path = _manifest_path(texts, embedder, width)
    manifest = _read_manifest(manifest_path)
    if manifest is None:
        return None
    path = manifest_path.with_name(manifest.file)
    try:
        with path.open("rb") as file:
            sound = hashlib.file_digest(file, "sha256").hexdigest() == manifest.sha256
        if sound:
            import faiss

            for used in (path, manifest_path):
                os.utime(used)
            return DenseIndex(faiss.read_index(str(path)), manifest.kind)
    except OSError:
        sound = False
    report("documents", f"the index {path} was damaged and is made anew")
    return None


def index_of(texts: Sequence[str], embedder: Embedder, width: int) -> DenseIndex:
    """The index of `texts`: the kept one, else one made from kept and new vectors, and kept."""
    held = kept_index(texts, embedder, width)
    if held is not None:
        return held
    kind = kind_for(len(texts))
    vectors = embedded(texts, embedder, width)
    if kind != "exact":
        report("documents", f"linking {len(texts):,} passages to a graph")
    made = build(vectors, kind)
    with suppress(OSError, RuntimeError):
        _keep(made, texts, embedder, width)
    return made


def _manifest_path(texts: Sequence[str], embedder: Embedder, width: int) -> Path:
    digest = hashlib.sha256(f"{_FORMAT} {kind_for(len(texts))} {width} {embedder.name}\0".encode())
    for text in texts:
        digest.update(key(text))
    return store.folder() / "indexes" / f"{digest.hexdigest()[:32]}.json"


def _read_manifest(path: Path) -> Manifest | None:
    try:
        fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        manifest = Manifest(**fields)
        return manifest if Path(manifest.file).name == manifest.file else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        report("documents", f"the index {path} was damaged and is made anew")
        return None


def _keep(index: DenseIndex, texts: Sequence[str], embedder: Embedder, width: int) -> None:
    """Write the index under a name of its own, then the manifest that makes it known."""
    manifest_path = _manifest_path(texts, embedder, width)
    root = manifest_path.parent
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root) as scratch:
        fresh = Path(scratch) / "index"
        index.write(fresh)
        with fresh.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        name = f"{manifest_path.stem}-{sha256[:12]}.faiss"
        manifest = Manifest(index.kind, embedder.name, len(texts), width, name, sha256)
        note = Path(scratch) / "manifest"
        note.write_text(json.dumps(asdict(manifest)), encoding="utf-8")
        os.replace(fresh, root / name)
        os.replace(note, manifest_path)
    _prune(root)


def _prune(root: Path) -> None:
    """Drop the indexes used longest ago; vectors stay, so one of them is soon made again."""
    newest = sorted(root.glob("*.faiss"), key=lambda file: -file.stat().st_mtime)
    spent = 0
    for number, file in enumerate(newest):
        spent += file.stat().st_size
        if number >= _MOST_KEPT or (number and spent > _MOST_BYTES):
            file.unlink(missing_ok=True)
            file.with_name(f"{file.stem.rpartition('-')[0]}.json").unlink(missing_ok=True)

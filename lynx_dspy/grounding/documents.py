"""HybridRetrieve over a folder of documents: keywords, meaning and exact words (paper, III-A1)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding import loaders, store
from lynx_dspy.grounding.chunking import passages
from lynx_dspy.grounding.embedding import Embedder, default_embedder
from lynx_dspy.grounding.loaders import Unreadable
from lynx_dspy.grounding.rerank import LastWord, measured_for
from lynx_dspy.grounding.retrieval import Shelf, search
from lynx_dspy.progress import report
from lynx_dspy.values import Passage

Choice = Embedder | Literal["default"] | None
Order = LastWord | Literal["default"]

_WORTH_KEEPING = 1_000_000
"""Bytes of a text whose passages are kept; of other kinds they always are."""

_FORMAT = "1"
"""Part of the key of kept passages: another one makes them anew."""


class Indexed(NamedTuple):
    """What is searched, for a run's record: `kind` is exact, hnsw or, without vectors, words."""

    passages: int
    sources: int
    embedder: str | None
    kind: str


class Documents:
    """Passages that can be searched. `skipped` says which files were not read, and why.

    `embedder` is what finds passages by meaning: `"default"` is `default_embedder()`, looked up at
    the first `retrieve`; None leaves keywords and exact words. `reranker` has the last word: the
    embedder's `"cosine"`, `"none"` for the fused ranks, a function such as
    `rerank.cross_encoder(...)`, or what was measured to be better with the embedder. Copies are
    the same object, since optimizers deep-copy programs. Threads may share one.
    """

    def __init__(
        self,
        chunks: Iterable[Passage],
        skipped: Sequence[str] = (),
        embedder: Choice = "default",
        reranker: Order = "default",
    ) -> None:
        self._shelves: tuple[Shelf, ...] = (Shelf(tuple(chunks)),)
        self.skipped = tuple(skipped)
        self._embedder = embedder
        self._reranker = reranker

    @classmethod
    def open(
        cls, path: str | Path, embedder: Choice = "default", reranker: Order = "default"
    ) -> Documents:
        """The documents at `path`, a folder or one file. Raises `BadInput` as these do."""
        try:
            opener = cls.from_file if Path(path).is_file() else cls.from_folder
            return opener(path, embedder, reranker)
        except OSError as error:
            raise BadInput(f"Cannot read documents at {str(path)!r}: {error.strerror}.") from error

    @classmethod
    def from_texts(
        cls,
        texts: Mapping[str, str] | Iterable[str],
        embedder: Choice = "default",
        reranker: Order = "default",
    ) -> Documents:
        """Documents from texts in memory, `{source: text}` or texts alone.

        >>> texts = {"terms.md": "# Churn\\nA customer without orders churns."}
        >>> docs = Documents.from_texts(texts, embedder=None)
        >>> docs.retrieve("what does churn mean", k=1)[0].heading
        'Churn'
        """
        if not isinstance(texts, Mapping):
            texts = {f"text {i}": text for i, text in enumerate(texts, 1)}
        chunks = (p for source, text in texts.items() for p in passages(text, source))
        return cls(chunks, embedder=embedder, reranker=reranker)

    @classmethod
    def from_file(
        cls, path: str | Path, embedder: Choice = "default", reranker: Order = "default"
    ) -> Documents:
        """The document `path`. Raises `BadInput` if it is missing or cannot be read."""
        file = Path(path)
        if not file.is_file():
            raise BadInput(f"No document {str(path)!r}. Known kinds: {loaders.known()}.")
        try:
            return cls(_passages(file, file.name), embedder=embedder, reranker=reranker)
        except Unreadable as error:
            raise BadInput(
                f"Document {str(path)!r}: {error}. Known kinds: {loaders.known()}."
            ) from error

    @classmethod
    def from_folder(
        cls, path: str | Path, embedder: Choice = "default", reranker: Order = "default"
    ) -> Documents:
        """All documents below `path`; files that cannot be read are listed in `skipped`.

        Raises `BadInput` if there is no such folder or nothing in it can be read.
        """
        folder = Path(path)
        if not folder.is_dir():
            raise BadInput(
                f"No documents at {str(path)!r}. Give a folder or a file; known kinds: "
                f"{loaders.known()}."
            )
        chunks: list[Passage] = []
        skipped: list[str] = []
        for file in _files(folder):
            source = file.relative_to(folder).as_posix()
            try:
                chunks.extend(_passages(file, source))
            except Unreadable as error:
                skipped.append(f"{source}: {error}")
        if not chunks:
            raise BadInput(_nothing(path, skipped))
        return cls(chunks, skipped, embedder, reranker)

    def beside(self, other: Documents) -> Documents:
        """These documents and `other` as one collection that is ranked as a whole.

        Indexes are shared, not made again; embedder and reranker are those of these documents.
        """
        both = Documents((), (*self.skipped, *other.skipped), self._embedder, self._reranker)
        both._shelves = (*self._shelves, *other._shelves)
        return both

    def retrieve(self, query: str, k: int = 6, reranker: Order = "default") -> list[Passage]:
        """The `k` passages that help most with `query`, best first, each with its score.

        Keywords (BM25), exact words and, with an embedder, meaning are fused by reciprocal rank.
        Then the reranker of these documents orders them, or `reranker` where they have none of
        their own. Without an embedder, passages that share no word with the query are not given.
        """
        if not len(self) or not query.strip() or k < 1:
            return []
        embedder = self.embedder
        order = self._reranker if self._reranker != "default" else reranker
        if order == "default":
            order = measured_for(embedder.name) if embedder is not None else "none"
        return search(self._shelves, query, k, embedder, order)

    def prepare(self) -> Indexed:
        """Embed and index everything now, with progress; what is done is kept and not redone.

        `retrieve` does the same at the first question, but for large collections only by words.
        """
        embedder = self.embedder
        width = embedder.encode([" "]).shape[1] if embedder is not None else 0
        made = [shelf.prepare(embedder, width) for shelf in self._shelves]
        kinds = {index.kind if index is not None else "words" for index in made}
        sources = {p.source for p in self.passages}
        name = embedder.name if embedder is not None else None
        return Indexed(len(self), len(sources), name, ", ".join(sorted(kinds)))

    @property
    def passages(self) -> tuple[Passage, ...]:
        """Everything that can be found."""
        return tuple(p for shelf in self._shelves for p in shelf.passages)

    @property
    def embedder(self) -> Embedder | None:
        """The embedder in use; None where there is none."""
        return default_embedder() if self._embedder == "default" else self._embedder

    def __len__(self) -> int:
        return sum(len(shelf.passages) for shelf in self._shelves)

    def __deepcopy__(self, memo: dict[int, object]) -> Documents:
        return self

    def __copy__(self) -> Documents:
        return self


def _files(folder: Path) -> list[Path]:
    inside = (file for file in folder.rglob("*") if file.is_file())
    return sorted(
        f for f in inside if not any(p.startswith(".") for p in f.relative_to(folder).parts)
    )


def _passages(file: Path, source: str) -> list[Passage]:
    """The passages of a file, from the cache where reading it is dear. Raises `Unreadable`."""
    raw = loaders.content(file)
    if loaders.is_text(file) and len(raw) < _WORTH_KEEPING:
        return list(passages(loaders.read(file, raw), source))
    kind = loaders.KINDS[file.suffix.lower()].module
    digest = f"{_FORMAT} {kind} {hashlib.sha256(raw).hexdigest()}"
    held = store.passages(digest)
    if held is not None:
        return [Passage(text, source, heading) for heading, text in held]
    report("documents", f"reading {source}")
    made = list(passages(loaders.read(file, raw), source))
    store.keep_passages(digest, made)
    return made


def _nothing(path: str | Path, skipped: Sequence[str]) -> str:
    files = "1 file" if len(skipped) == 1 else f"{len(skipped)} files"
    got = f"{files} that cannot be used ({skipped[0]})" if skipped else "no documents"
    return f"Folder {str(path)!r} holds {got}. Known kinds: {loaders.known()}."

"""HybridRetrieve over a folder of documents: keywords, meaning and exact words (paper, III-A1)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.chunking import passages
from lynx_dspy.grounding.embedding import Embedder, default_embedder
from lynx_dspy.grounding.retrieval import Index
from lynx_dspy.values import Passage

SUFFIXES = (".md", ".markdown", ".txt", ".text", ".rst")
"""Files that are read."""

Choice = Embedder | Literal["default"] | None

_LARGEST = 20_000_000


class Documents:
    """Passages that can be searched. `skipped` says which files were not read, and why.

    `embedder` is what finds passages by meaning: `"default"` is `default_embedder()`, looked up at
    the first `retrieve`; None leaves keywords and exact words. Copies are the same object, since
    optimizers deep-copy programs. Threads may share one.
    """

    def __init__(
        self,
        chunks: Iterable[Passage],
        skipped: Sequence[str] = (),
        embedder: Choice = "default",
    ) -> None:
        self.passages = tuple(chunks)
        self.skipped = tuple(skipped)
        self._embedder = embedder
        self._index: Index | None = None
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: str | Path, embedder: Choice = "default") -> Documents:
        """The documents at `path`, a folder or one file. Raises `BadInput` as these do."""
        try:
            opener = cls.from_file if Path(path).is_file() else cls.from_folder
            return opener(path, embedder)
        except OSError as error:
            raise BadInput(f"Cannot read documents at {str(path)!r}: {error.strerror}.") from error

    @classmethod
    def from_texts(
        cls, texts: Mapping[str, str] | Iterable[str], embedder: Choice = "default"
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
        return cls(chunks, embedder=embedder)

    @classmethod
    def from_file(cls, path: str | Path, embedder: Choice = "default") -> Documents:
        """The document `path`. Raises `BadInput` if it is missing or of another kind."""
        file = Path(path)
        if not file.is_file():
            raise BadInput(f"No document {str(path)!r}. Give the path of a text or Markdown file.")
        reason = _unreadable(file)
        if reason:
            raise BadInput(f"Document {str(path)!r}: {reason}. Known: {', '.join(SUFFIXES)}.")
        return cls(passages(_decoded(file), file.name), embedder=embedder)

    @classmethod
    def from_folder(cls, path: str | Path, embedder: Choice = "default") -> Documents:
        """All documents below `path`; files of other kinds are listed in `skipped`.

        Raises `BadInput` if there is no such folder or nothing in it can be read.
        """
        folder = Path(path)
        if not folder.is_dir():
            raise BadInput(
                f"No documents at {str(path)!r}. Give a folder of text or Markdown files."
            )
        chunks: list[Passage] = []
        skipped: list[str] = []
        for file in _files(folder):
            source = file.relative_to(folder).as_posix()
            reason = _unreadable(file)
            if reason:
                skipped.append(f"{source}: {reason}")
            else:
                chunks.extend(passages(_decoded(file), source))
        if not chunks:
            raise BadInput(_nothing(path, skipped))
        return cls(chunks, skipped, embedder)

    def retrieve(self, query: str, k: int = 6) -> list[Passage]:
        """The `k` passages that help most with `query`, best first, each with its score.

        Keywords (BM25), exact words and, with an embedder, meaning are fused by reciprocal rank; an
        embedder also re-ranks what they found. Without one, passages that share no word with the
        query are not given.
        """
        if not self.passages or not query.strip() or k < 1:
            return []
        return self._searchable().search(query, k, self.embedder)

    @property
    def embedder(self) -> Embedder | None:
        """The embedder in use; None where there is none."""
        return default_embedder() if self._embedder == "default" else self._embedder

    def _searchable(self) -> Index:
        with self._lock:
            if self._index is None:
                self._index = Index(self.passages)
            return self._index

    def __len__(self) -> int:
        return len(self.passages)

    def __deepcopy__(self, memo: dict[int, object]) -> Documents:
        return self

    def __copy__(self) -> Documents:
        return self


def _files(folder: Path) -> list[Path]:
    inside = (file for file in folder.rglob("*") if file.is_file())
    return sorted(
        f for f in inside if not any(p.startswith(".") for p in f.relative_to(folder).parts)
    )


def _unreadable(file: Path) -> str:
    """Why a file is not read, in a few words; empty if it is."""
    if file.suffix.lower() not in SUFFIXES:
        return f"files of type {file.suffix or 'no suffix'!r} are not read"
    try:
        if file.stat().st_size > _LARGEST:
            return f"larger than {_LARGEST // 1_000_000} MB"
        with file.open("rb") as opened:
            return "not a text" if b"\0" in opened.read(4_096) else ""
    except OSError as error:
        return f"cannot be opened ({error.strerror})"


def _decoded(file: Path) -> str:
    raw = file.read_bytes()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace")


def _nothing(path: str | Path, skipped: Sequence[str]) -> str:
    files = "1 file" if len(skipped) == 1 else f"{len(skipped)} files"
    got = f"{files} that cannot be used ({skipped[0]})" if skipped else "no documents"
    return f"Folder {str(path)!r} holds {got}. Known: {', '.join(SUFFIXES)}."

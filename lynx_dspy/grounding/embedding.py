"""Embeddings: BGE-M3 where its weights are cached (paper, IV), else the pulled MiniLM, else none.

Nothing is fetched here: a question never waits for a hub. sentence-transformers takes about five
seconds to import and MiniLM a quarter of a second to load, so both wait for the first text; plain
transformers would start in three quarters of that time, too little to be worth a second path.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from lynx_dspy.lm import models

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Vectors = npt.NDArray[np.float32]

BGE_M3 = "BAAI/bge-m3"
MINILM = "all-MiniLM-L6-v2"

_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_BATCH = 32
_LONGEST = 512
"""Tokens read of a text; chunks and column descriptions are far shorter."""


class Embedder(Protocol):
    """Turns texts into vectors. `name` is part of every run's record and of cache keys."""

    @property
    def name(self) -> str: ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """An array of shape (len(texts), d), each row of length 1."""
        ...


class Found(NamedTuple):
    """Which embedder would run (None for none), and why."""

    name: str | None
    reason: str


class LocalEmbedder:
    """A sentence-transformers model in a local folder, loaded at the first text, once."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder
        self._model: SentenceTransformer | None = None
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """An array of shape (len(texts), d), float32, each row of length 1."""
        model = self._loaded()
        if not texts:
            return np.zeros((0, model.get_embedding_dimension() or 0), dtype=np.float32)
        vectors = model.encode(
            list(texts), batch_size=_BATCH, normalize_embeddings=True, show_progress_bar=False
        )
        return np.ascontiguousarray(vectors, dtype=np.float32)

    def _loaded(self) -> SentenceTransformer:
        with self._lock:
            if self._model is None:
                from sentence_transformers import SentenceTransformer

                _be_modest()
                folder = str(self._folder)
                with _without_bar():
                    self._model = SentenceTransformer(folder, device="cpu", local_files_only=True)
                self._model.max_seq_length = min(self._model.max_seq_length or _LONGEST, _LONGEST)
            return self._model

    def __deepcopy__(self, memo: dict[int, object]) -> LocalEmbedder:
        return self


@contextmanager
def _without_bar() -> Iterator[None]:
    """No progress bar for a load of 0.2 s, in whatever program this runs."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # has no hints
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]  # has no hints


def _be_modest() -> None:
    """Half of the processors: threads on all took 20 times as long a query on a busy machine."""
    import torch

    torch.set_num_threads(max(1, min(4, (os.cpu_count() or 1) // 2)))


def default_embedder() -> LocalEmbedder | None:
    """The best embedder whose weights are on this machine; None if there is none.

    `explain_embedder` says why. The same object is given again, so weights are loaded once.
    """
    for name, folder in ((BGE_M3, _bge_folder()), (MINILM, _minilm_folder())):
        if folder is not None:
            return _embedder(name, folder)
    return None


def embedder_of(name: str) -> LocalEmbedder | None:
    """The embedder of this name, None if its weights are not on this machine."""
    folder = {BGE_M3: _bge_folder, MINILM: _minilm_folder}.get(name, lambda: None)()
    return _embedder(name, folder) if folder is not None else None


def explain_embedder() -> Found:
    """The name of the default embedder and the reason for it, without loading anything."""
    bge, minilm = _bge_folder(), _minilm_folder()
    if bge is not None:
        return Found(BGE_M3, f"weights found in {bge}")
    missing = f"{BGE_M3} is not in the Hugging Face cache"
    if minilm is not None:
        return Found(MINILM, f"{missing}; pulled weights found in {minilm}")
    return Found(
        None,
        f"{missing} and {MINILM} is not in {models.home()}: documents are searched by keywords "
        "only; `lynx model pull minilm` fetches it",
    )


@cache
def _embedder(name: str, folder: Path) -> LocalEmbedder:
    return LocalEmbedder(name, folder)


def _bge_folder() -> Path | None:
    """The snapshot folder of BGE-M3 if the Hugging Face cache holds its weights."""
    from huggingface_hub import try_to_load_from_cache

    for weights in _WEIGHTS:
        held = try_to_load_from_cache(BGE_M3, weights)
        if isinstance(held, str) and (Path(held).parent / "modules.json").exists():
            return Path(held).parent
    return None


def _minilm_folder() -> Path | None:
    return models.path("minilm")

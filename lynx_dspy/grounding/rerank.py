"""The last word on what was retrieved: cosine as in the paper, or a cross-encoder (III-A1).

With MiniLM the cosine finds less than the fused ranks that it replaces (docs/decisions/0008); it is
what the paper does with BGE-M3, and `"none"` keeps the fused ranks.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.embedding import MINILM
from lynx_dspy.paths import expanded

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

_LONGEST = 512


class Reranker(Protocol):
    """Scores passages for a question: more is better, comparable within one call."""

    def __call__(self, question: str, passages: Sequence[str]) -> Sequence[float]: ...


LastWord = Reranker | Literal["cosine", "none"]
"""What orders the fused passages: their cosine with the question, nothing, or a reranker."""


_MEASURED: dict[str, LastWord] = {MINILM: "none"}


def measured_for(embedder: str) -> LastWord:
    """The better order of passages by the name of the embedder; the paper's where none is known.

    >>> measured_for("BAAI/bge-m3"), measured_for("all-MiniLM-L6-v2")
    ('cosine', 'none')
    """
    return _MEASURED.get(embedder, "cosine")


class LocalCrossEncoder:
    """A sentence-transformers cross-encoder in a local folder, loaded at the first question."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._model: CrossEncoder | None = None
        self._lock = threading.Lock()

    def __call__(self, question: str, passages: Sequence[str]) -> list[float]:
        """One score a passage."""
        if not passages:
            return []
        scores = self._loaded().predict([(question, p) for p in passages], show_progress_bar=False)
        return [float(score) for score in scores]

    def _loaded(self) -> CrossEncoder:
        with self._lock:
            if self._model is None:
                from sentence_transformers import CrossEncoder

                self._model = CrossEncoder(
                    str(self._folder), device="cpu", local_files_only=True, max_length=_LONGEST
                )
            return self._model

    def __deepcopy__(self, memo: dict[int, object]) -> LocalCrossEncoder:
        return self


def cross_encoder(model: str | Path) -> LocalCrossEncoder:
    """The cross-encoder in a folder, or of a name such as `BAAI/bge-reranker-v2-m3` in the hub's
    cache.

    Nothing is fetched. Raises `BadInput` if there is no such model on this machine.
    """
    folder = expanded(model)
    if (folder / "config.json").is_file():
        return LocalCrossEncoder(folder)
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        held = try_to_load_from_cache(str(model), "config.json")
    except HFValidationError:
        held = None
    if isinstance(held, str):
        return LocalCrossEncoder(Path(held).parent)
    raise BadInput(
        f"No cross-encoder {str(model)!r}: neither a folder with a config.json nor in the Hugging "
        f"Face cache. Fetch it with `hf download {model}`."
    )

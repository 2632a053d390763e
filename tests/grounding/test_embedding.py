from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

from lynx_dspy.grounding.embedding import MINILM, LocalEmbedder, default_embedder, explain_embedder
from lynx_dspy.lm import models

PULLED = models.path("minilm")


@pytest.fixture
def no_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))


@pytest.mark.usefixtures("no_hub")
def test_without_weights_there_is_no_embedder_and_a_reason() -> None:
    assert default_embedder() is None
    name, reason = explain_embedder()
    assert name is None
    assert "keywords only" in reason and "lynx model pull minilm" in reason and "\n" not in reason


@pytest.mark.skipif(PULLED is None, reason="MiniLM is not pulled")
def test_the_pulled_model_places_like_meanings_near() -> None:
    assert PULLED is not None
    embedder = LocalEmbedder(MINILM, PULLED)
    assert copy.deepcopy(embedder) is embedder
    vectors = embedder.encode(["customer", "client", "rainfall"])
    assert vectors.shape == (3, 384) and vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2
    assert embedder.encode([]).shape == (0, 384)

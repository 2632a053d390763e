from __future__ import annotations

import copy
from pathlib import Path

import pytest

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.documents import Documents
from lynx_dspy.grounding.rerank import cross_encoder

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "client", "rain", "profit")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cross-encoder of two small layers with chance weights: real, though it knows nothing."""
    transformers = pytest.importorskip("transformers")
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    transformers.BertTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=1,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path)
    return tmp_path


def test_a_cross_encoder_orders_what_is_found(folder: Path) -> None:
    reranker = cross_encoder(folder)
    assert copy.deepcopy(reranker) is reranker
    texts = ["rain profit", "client rain", "rain"]
    scores = sorted(reranker("rain", texts), reverse=True)
    found = Documents.from_texts(texts, embedder=None, reranker=reranker).retrieve("rain", k=3)
    assert [p.score for p in found] == pytest.approx(scores, abs=1e-3)
    assert len(set(scores)) == 3
    assert reranker("client", []) == []


@pytest.mark.parametrize("name", ["nobody/no-such-model", "not a name", ""])
def test_a_cross_encoder_that_is_not_here_is_one_line(name: str) -> None:
    with pytest.raises(BadInput, match="No cross-encoder") as caught:
        cross_encoder(name)
    assert "\n" not in str(caught.value)

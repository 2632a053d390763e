from __future__ import annotations

from pathlib import Path

import pytest

from lynx_dspy.grounding import keywords, store
from lynx_dspy.grounding.keywords import Keywords
from lynx_dspy.progress import listen

TEXTS = ["Orders are placed by clients.", "Code ZX-9 marks returns.", "order_items hold prices."]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was said while an index of three texts is worth keeping."""
    monkeypatch.setattr(keywords, "WORTH_KEEPING", 3)
    return []


def found(texts: list[str], said: list[str]) -> list[int]:
    with listen(lambda stage, text: said.append(text)):
        return Keywords(texts).by_keywords("the prices of an ordered item", 3)


def test_a_large_index_is_counted_once(kept: list[str]) -> None:
    first = found(TEXTS, kept)
    assert first[0] == 2 and found(TEXTS, kept) == first
    assert kept == ["counting the words of 3 passages"]
    assert found([*TEXTS, "Rain."], kept)[0] == 2
    assert len(kept) == 2


@pytest.mark.parametrize("size", [0, 10, 400])
def test_a_damaged_index_is_counted_anew_with_a_word(kept: list[str], size: int) -> None:
    first = found(TEXTS, kept)
    (path,) = (store.folder() / "keywords").iterdir()
    path.write_bytes(path.read_bytes()[:size])
    kept.clear()
    assert found(TEXTS, kept) == first
    assert "damaged" in kept[0] and kept[1].startswith("counting")
    assert found(TEXTS, []) == first


def test_a_flipped_byte_is_noticed(kept: list[str]) -> None:
    found(TEXTS, kept)
    (path,) = (store.folder() / "keywords").iterdir()
    raw = bytearray(path.read_bytes())
    raw[120] ^= 0xFF
    path.write_bytes(raw)
    found(TEXTS, kept)
    assert "damaged" in kept[1]


def test_a_cache_that_cannot_be_written_is_no_failure(kept: list[str], cache_folder: Path) -> None:
    cache_folder.write_text("a file where the folder should be")
    assert found(TEXTS, kept)[0] == 2


def test_texts_without_any_word_are_no_failure() -> None:
    assert Keywords(["", "the of"]).by_keywords("the orders", 5) == []


def test_bare_numbers_and_what_every_text_holds_name_nothing() -> None:
    texts = [f"In 2021 the US sold {i}." for i in range(20)]
    index = Keywords([*texts, "Code 4G7 of 2021."])
    assert index.by_exact_words("US sales of 2021 and 7", 5) == []
    assert index.by_exact_words("what is 4g7, '4G7' or \"code 4g7\"", 5) == [20]

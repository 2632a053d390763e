from __future__ import annotations

import copy
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding import store
from lynx_dspy.grounding.documents import Documents
from lynx_dspy.progress import listen

TERMS = """# Terms
## Churn
A client that placed no order for 90 days has churned.
## Margin
Profit divided by revenue.
## Flags
`is_b2b` marks business clients; code ZX-9 marks returns.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    (root / "deep").mkdir(parents=True)
    (root / "terms.md").write_text(TERMS, encoding="utf-8-sig")
    (root / "deep" / "old.txt").write_bytes("Caf\xe9 orders close at noon.".encode("cp1252"))
    (root / "photo.jpg").write_bytes(b"JFIF")
    (root / "binary.txt").write_bytes(b"a\0b")
    (root / ".hidden.md").write_text("secret")
    return root


def test_a_folder_is_read_and_says_what_it_skipped(folder: Path) -> None:
    documents = Documents.from_folder(folder, embedder=None)
    assert {p.source for p in documents.passages} == {"terms.md", "deep/old.txt"}
    assert documents.passages[0].text == "Café orders close at noon."
    assert not any("\ufeff" in p.text + p.heading for p in documents.passages)
    assert documents.skipped == (
        "binary.txt: not a text",
        "photo.jpg: files of type '.jpg' are not read",
    )


def test_the_passage_that_shares_words_comes_first(folder: Path) -> None:
    documents = Documents.from_folder(folder, embedder=None)
    best = documents.retrieve("Which clients churned last year?", k=2)
    assert best[0].heading == "Terms > Churn"
    assert best[0].score >= best[-1].score > 0


def test_identifiers_and_quoted_words_are_found_as_written(folder: Path) -> None:
    documents = Documents.from_folder(folder, embedder=None)
    for query in ("what is is_b2b", "meaning of 'ZX-9'"):
        assert documents.retrieve(query, k=1)[0].heading == "Terms > Flags"


def test_nothing_in_common_gives_nothing(folder: Path) -> None:
    documents = Documents.from_folder(folder, embedder=None)
    assert documents.retrieve("xylophone zebra") == []
    assert documents.retrieve("  ") == documents.retrieve("churn", k=0) == []


@pytest.mark.parametrize("query", ["'", '"%$', "a" * 5_000, "日本語", "\x00"])
def test_odd_queries_do_no_harm(folder: Path, query: str) -> None:
    assert isinstance(Documents.from_folder(folder, embedder=None).retrieve(query), list)


def test_what_cannot_be_read_is_one_clear_line(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "x.jpg").write_bytes(b"JFIF")
    for path, says in (
        (tmp_path / "gone", "No documents at"),
        (tmp_path / "empty", "holds no documents. Known kinds: .md"),
        (tmp_path / "only", "holds 1 file that cannot be used (x.jpg: files of type"),
        (folder / "photo.jpg", "files of type '.jpg' are not read. Known kinds: .md"),
    ):
        with pytest.raises(BadInput) as caught:
            Documents.open(path)
        assert says in str(caught.value) and "\n" not in str(caught.value)


def test_copies_are_the_same_object() -> None:
    documents = Documents.from_texts(["One."], embedder=None)
    assert copy.deepcopy(documents) is documents is copy.copy(documents)
    assert len(documents) == 1


def test_identifiers_are_whole_words_and_rare_ones_count_more() -> None:
    texts = [*(f"Status note {i} of user US." for i in range(9)), "Code QX7 of US.", "A bus."]
    documents = Documents.from_texts(texts, embedder=None)
    found = documents.retrieve("US QX7", k=20)
    assert found[0].text == "Code QX7 of US."
    assert "A bus." not in [p.text for p in found]


def test_collections_beside_each_other_are_ranked_as_one(topics: Any) -> None:
    ours = Documents.from_texts({"a": "Earnings of a year.", "b": "Rain."}, embedder=topics)
    theirs = Documents.from_texts({"c": "Buyers and clients."}, embedder=topics)
    ours.retrieve("warm"), theirs.retrieve("warm")
    topics.texts.clear()
    both = ours.beside(theirs)
    assert [p.source for p in both.retrieve("customer", k=1)] == ["c"]
    assert [p.source for p in both.retrieve("income", k=1)] == ["a"]
    assert topics.texts == ["customer", "income"]
    assert len(both) == 3 and len(ours) == 2


def test_a_second_start_reads_and_embeds_nothing(tmp_path: Path, topics: Any) -> None:
    page = tmp_path / "docs" / "page.html"
    page.parent.mkdir()
    page.write_text("<h1>Churn</h1><p>A client that left.</p>")
    said: list[str] = []
    with listen(lambda stage, text: said.append(text)):
        first = Documents.open(page.parent, embedder=topics)
        assert first.prepare() == (1, 1, "topics", "exact")
        topics.texts.clear()
        second = Documents.open(page.parent, embedder=topics)
        second.prepare()
    assert second.passages == first.passages
    assert said == ["reading page.html"]
    assert topics.texts == [" "]


def test_kept_passages_that_are_damaged_are_read_again(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<p>Text.</p>")
    first = Documents.open(page, embedder=None)
    with sqlite3.connect(store.folder() / "store.sqlite") as db:
        db.execute("UPDATE files SET passages = '[[1'")
    assert Documents.open(page, embedder=None).passages == first.passages


def test_a_large_file_of_one_line_is_cut_into_passages(tmp_path: Path) -> None:
    file = tmp_path / "dump.txt"
    file.write_text("x1 lorem ipsum dolor " * 9_000 + "y" * 20_000)
    documents = Documents.open(file, embedder=None)
    assert max(len(p.text) for p in documents.passages) < 1_500
    assert sum(p.text.count("y") for p in documents.passages) == 20_000

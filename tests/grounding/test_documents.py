from __future__ import annotations

import copy
from pathlib import Path

import pytest

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.documents import Documents

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
    (root / "scan.pdf").write_bytes(b"%PDF-1.7")
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
        "scan.pdf: files of type '.pdf' are not read",
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
    (tmp_path / "only" / "x.pdf").write_bytes(b"%PDF")
    for path, says in (
        (tmp_path / "gone", "No documents at"),
        (tmp_path / "empty", "holds no documents. Known: .md"),
        (tmp_path / "only", "holds 1 file that cannot be used (x.pdf: files of type"),
        (folder / "scan.pdf", "files of type '.pdf' are not read. Known: .md"),
    ):
        with pytest.raises(BadInput) as caught:
            Documents.open(path)
        assert says in str(caught.value) and "\n" not in str(caught.value)


def test_copies_are_the_same_object() -> None:
    documents = Documents.from_texts(["One."], embedder=None)
    assert copy.deepcopy(documents) is documents is copy.copy(documents)
    assert len(documents) == 1

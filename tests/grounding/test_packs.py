from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.lookup import ByReference
from lynx_dspy.grounding.packs import MANIFEST, Pack, build, verify
from lynx_dspy.values import Passage

CHURN = "<!-- source: https://wiki.example/Churn -->\n# Churn rate\n\nChurn rate is loss a month.\n"


class Shelf(ByReference):
    """A source that knows one term."""

    name = "shelf"
    external = True

    def look_up(self, term: str) -> Sequence[Passage]:
        if term != "DAU":
            return ()
        return [Passage("DAU counts daily users.", "https://wiki.example/DAU", "Daily users (DAU)")]

    def terms_in(self, text: str) -> Sequence[str]:
        return ()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "churn.md").write_text(CHURN)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "other.txt").write_text("Customers are buyers. Churn rate is mentioned.")
    build(tmp_path)
    return tmp_path


def test_a_page_of_the_title_comes_first_with_its_source(folder: Path) -> None:
    found = Pack.open(folder).look_up("churn rates")
    assert (found[0].source, found[0].heading) == ("https://wiki.example/Churn", "Churn rate")
    assert found[0].text == "Churn rate is loss a month."
    assert [p.heading for p in found[1:]] == ["other"]
    assert not Pack.open(folder).look_up("quorbex")
    assert not Pack.open(folder).look_up("churn quorbex")


def test_a_changed_page_is_refused_in_one_line(folder: Path) -> None:
    (folder / "churn.md").write_text(CHURN.replace("month", "year"))
    with pytest.raises(BadInput, match=r"'churn\.md'.*has SHA-256.*lynx pack build") as caught:
        verify(folder)
    assert "\n" not in str(caught.value)
    with pytest.raises(BadInput):
        Pack.open(folder)
    build(folder)
    assert len(verify(folder)) == 2


def test_a_removed_and_an_added_page_are_refused(folder: Path) -> None:
    (folder / "new.md").write_text("new")
    with pytest.raises(BadInput, match=r"'new\.md'.*is not in its manifest"):
        verify(folder)
    (folder / "new.md").unlink()
    (folder / "sub" / "other.txt").unlink()
    with pytest.raises(BadInput, match=r"'sub/other\.txt'.*is missing"):
        verify(folder)


def test_a_page_outside_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    record = json.loads((folder / MANIFEST).read_text())
    record["pages"][0]["file"] = "../../etc/hostname"
    (folder / MANIFEST).write_text(json.dumps(record))
    with pytest.raises(BadInput, match="is missing"):
        verify(folder)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"format": 2, "pages": []}',
        '{"format": 1, "pages": [{"file": "a"}]}',
        "[" * 9999,
    ],
)
def test_a_broken_manifest_is_refused_in_one_line(text: str, folder: Path) -> None:
    (folder / MANIFEST).write_text(text)
    with pytest.raises(BadInput, match=MANIFEST) as caught:
        verify(folder)
    assert "\n" not in str(caught.value)


def test_a_folder_without_pages_or_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No manifest"):
        verify(tmp_path / "nowhere")
    with pytest.raises(BadInput, match="no page"):
        build(tmp_path / "empty")


def test_terms_are_fetched_and_frozen_with_their_address(folder: Path) -> None:
    pack = build(folder, Shelf(), ["DAU"])
    assert pack.look_up("DAU")[0].source == "https://wiki.example/DAU"
    assert {p.source for p in verify(folder)} == {
        "https://wiki.example/Churn",
        "https://wiki.example/DAU",
        "",
    }
    with pytest.raises(BadInput, match="quorbex"):
        build(folder, Shelf(), ["quorbex"])


def test_an_address_outlives_a_page_without_its_source_line(folder: Path) -> None:
    (folder / "churn.md").write_text("# Churn rate\n\nChurn rate is another thing.\n")
    build(folder)
    assert {p.file: p.source for p in verify(folder)}["churn.md"] == "https://wiki.example/Churn"

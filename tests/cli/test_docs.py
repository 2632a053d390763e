from __future__ import annotations

import json
from pathlib import Path

import pytest

from lynx_dspy.cli import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LYNX_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "terms.html").write_text("<h1>Terms</h1><h2>Churn</h2><p>A client left.\x1b[31m</p>")
    (docs / "photo.jpg").write_bytes(b"JFIF")
    return docs


def test_documents_are_indexed_and_searched(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["docs", str(folder), "--question", "which client left"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "1 passage of 1 document, searched by words"
    assert out[1] == "not read: photo.jpg: files of type '.jpg' are not read"
    assert out[2].endswith("terms.html > Terms > Churn") and "A client left." in out[3]
    assert "\x1b" not in "".join(out)


def test_json_is_one_object_and_nothing_else(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["docs", str(folder), "--question", "client", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["passages"], record["sources"], record["kind"]) == (1, 1, "words")
    assert record["found"][0]["heading"] == "Terms > Churn"


def test_what_cannot_be_read_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "terms.html").unlink()
    assert main(["docs", str(folder)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "holds 1 file that cannot be used" in err

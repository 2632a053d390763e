"""What the page on schemas shows is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lynx_dspy.grounding.sources import read

PAGE = Path(__file__).parents[3] / "docs/how-to/schemas.md"
FENCES = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)


def test_the_yaml_is_read_whole() -> None:
    (text,) = [text for kind, text in FENCES if kind == "yaml"]
    reading = read(text)
    assert (len(reading.schema.tables), len(reading.schema.foreign_keys)) == (2, 1)
    assert reading.notes == ()


@pytest.mark.parametrize("code", [text for kind, text in FENCES if kind == "python"])
def test_the_python_runs(code: str) -> None:
    exec(compile(code, str(PAGE), "exec"), {})

"""The how-to page's examples run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "python-programs.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("place", range(len(EXAMPLES)))
def test_an_example_of_the_page_runs(place: int) -> None:
    exec(compile(EXAMPLES[place], f"example {place + 1}", "exec"), {})


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == 2

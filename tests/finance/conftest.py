"""A small sample of the panel, written once, and the same as a Panel."""

from __future__ import annotations

from pathlib import Path

import pytest

from lynx_dspy.finance.panel import Panel
from lynx_dspy.finance.sample import write_sample


@pytest.fixture(scope="session")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the CSV files of 40 stocks on 320 dates."""
    folder = tmp_path_factory.mktemp("market")
    write_sample(folder, stocks=40, dates=320, seed=3)
    return folder


@pytest.fixture(scope="session")
def panel(market: Path) -> Panel:
    return Panel.read(market)

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lynx_dspy.errors import BadInput
from lynx_dspy.finance.alphas import alpha
from lynx_dspy.finance.panel import Panel
from lynx_dspy.finance.picture import _by_date, _by_stock, write_picture


def test_the_picture_is_written_twice_and_the_same_each_time(tmp_path: Path, panel: Panel) -> None:
    factor = alpha(12, panel)
    png, svg = write_picture(factor, tmp_path / "factor.png", "Alpha#12")
    assert png.read_bytes().startswith(b"\x89PNG")
    text = svg.read_text("utf-8")
    assert "<svg" in text
    assert "Alpha#12" in text
    again = write_picture(factor, tmp_path / "again", "Alpha#12")
    assert again[1].read_text("utf-8") == text


def test_bands_are_quantiles_by_period_and_by_stock(panel: Panel) -> None:
    factor = panel.frame(np.tile(np.arange(40.0), (320, 1)))
    factor.iloc[:, 5] = np.nan
    factor.iloc[0, 7] = np.inf
    dates, bands = _by_date(factor)
    assert len(dates) == bands.shape[1] == 120
    assert bands[2].tolist() == [20.0] * 120
    stocks = _by_stock(factor)
    assert stocks.shape[1] == 39
    assert (np.diff(stocks[2]) > 0).all()


def test_a_factor_without_values_is_told(tmp_path: Path, panel: Panel) -> None:
    with pytest.raises(BadInput, match="no finite value"):
        write_picture(panel.frame(np.full(panel.shape, np.nan)), tmp_path / "x")

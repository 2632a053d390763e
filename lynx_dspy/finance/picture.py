"""The distribution of a factor by date and by stock, as a picture (paper, Fig. 11)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lynx_dspy.errors import BadInput
from lynx_dspy.finance.windows import Wide
from lynx_dspy.reporting.plots import COLOURS, rendered

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_PERIODS = 120
"""Dates are gathered into at most this many points, or the bands would be noise."""


def write_picture(factor: pd.DataFrame, path: str | Path, title: str = "Factor") -> list[Path]:
    """Draw `factor` (dates by codes) into `path` with the endings .png and .svg.

    The median stands in bands that hold 50 and 90 % of the values, by date (gathered into at most
    120 periods) and by stock, stocks ordered by their median. Raises `BadInput` for a factor
    without finite values, and `OSError` where the files cannot be written.
    """
    if not np.isfinite(factor.to_numpy(np.float64)).any():
        raise BadInput("The factor has no finite value, so there is nothing to draw.")
    base = Path(path).with_suffix("")
    written = [base.with_suffix(ending) for ending in (".png", ".svg")]
    for file in written:
        file.write_bytes(rendered(_drawing(factor, title), file.suffix[1:]))
    return written


def _drawing(factor: pd.DataFrame, title: str) -> Callable[[], Figure]:
    def draw() -> Figure:
        figure = Figure(figsize=(11.0, 4.4), layout="constrained")
        FigureCanvasAgg(figure)
        by_date, by_stock = figure.subplots(1, 2, sharey=True)
        places, bands = _by_date(factor)
        _bands(by_date, places, bands)
        by_date.set_xlabel("Date")
        by_date.set_ylabel("Factor")
        by_date.set_title("By date", loc="left")
        bands = _by_stock(factor)
        _bands(by_stock, np.arange(1, bands.shape[1] + 1), bands)
        by_stock.set_xlabel("Stocks, by their median")
        by_stock.set_title("By stock", loc="left")
        handles, labels = by_date.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower left", ncols=3, frameon=False)
        figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
        return figure

    return draw


def _by_date(factor: pd.DataFrame) -> tuple[pd.DatetimeIndex, Wide]:
    """The last date of each period, and the quantiles of its values."""
    parts = np.array_split(np.arange(len(factor)), min(_PERIODS, len(factor)))
    dates = pd.DatetimeIndex([factor.index[part[-1]] for part in parts])
    cells = factor.to_numpy(np.float64)
    return dates, np.stack([_quantiles(cells[part]) for part in parts], axis=1)


def _by_stock(factor: pd.DataFrame) -> Wide:
    """The quantiles of each stock, ordered by the median; stocks without a value are left out."""
    found = np.stack([_quantiles(column) for column in factor.to_numpy(np.float64).T], axis=1)
    there = found[:, ~np.isnan(found[2])]
    return there[:, np.argsort(there[2], kind="stable")]


def _quantiles(cells: Wide) -> Wide:
    finite = cells[np.isfinite(cells)]
    if not len(finite):
        return np.full(len(_QUANTILES), np.nan)
    return np.quantile(finite, _QUANTILES)


def _bands(axes: Axes, places: pd.DatetimeIndex | np.ndarray, bands: Wide) -> None:
    colour = COLOURS[0]
    for low, high, share, alpha in ((0, 4, 90, 0.15), (1, 3, 50, 0.35)):
        axes.fill_between(
            places,
            bands[low],
            bands[high],
            color=colour,
            linewidth=0,
            alpha=alpha,
            label=f"{share} % of values",
        )
    axes.plot(places, bands[2], color=colour, label="median")
    axes.margins(x=0.01)

"""Charts as PNG and SVG through matplotlib: without pyplot, so nothing outside the figure changes.

The same chart gives the same bytes: no dates, no random ids. Colours are those of Okabe and Ito,
which stay apart for colour-blind readers.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lynx_dspy.reporting.chart import Chart, Series
from lynx_dspy.reporting.names import name_points
from lynx_dspy.reporting.render import one_line

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#000000",
    "#F0E442",
)
_STYLE: dict[RcKeyType, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "svg.hashsalt": "lynx",
    "text.parse_math": False,
}
_METADATA = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
_MAX_LABEL = 48
_SCATTER_WIDTH = 8.0


def image(chart: Chart, format_: str) -> bytes:
    """The chart as `png` (150 dots an inch) or `svg`."""
    return rendered(lambda: draw(chart), format_)


def rendered(drawing: Callable[[], Figure], format_: str) -> bytes:
    """What `drawing` gives, in the style of all figures, as `png` or `svg`."""
    with matplotlib.rc_context(_STYLE):
        figure = drawing()
        stream = io.BytesIO()
        figure.savefig(stream, format=format_, dpi=150, metadata=_METADATA[format_])
    return stream.getvalue()


def draw(chart: Chart) -> Figure:
    """The chart as a matplotlib figure of its own."""
    width = _SCATTER_WIDTH if chart.kind == "scatter" else _width(chart)
    columns = _legend_columns(chart, width)
    height = (5.0 if chart.kind == "scatter" else 4.0) + 0.22 * math.ceil(
        len(chart.series) / columns
    )
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    _DRAWERS[chart.kind](axes, chart)
    axes.set_title(chart.title, loc="left", fontweight="bold")
    axes.set_xlabel(chart.x_title)
    axes.set_ylabel(chart.y_title)
    if chart.ticks:
        axes.set_xticks(range(len(chart.ticks)), chart.ticks)
        axes.tick_params(axis="x", length=0)
    axes.set_ylim(bottom=0)
    if len(chart.series) > 1 or chart.kind == "scatter" or "(n" in chart.series[0].label:
        figure.legend(loc="outside lower left", ncols=columns, frameon=False)
    if chart.kind == "scatter":
        name_points(axes, chart)
    return figure


def _width(chart: Chart) -> float:
    """Inches: room for each bar and for the number under each tick."""
    marks = len(chart.ticks) * (len(chart.series) if chart.kind == "bars" else 3)
    return min(14.0, max(6.4, 2.0 + 0.3 * marks))


def _legend_columns(chart: Chart, width: float) -> int:
    """As many as fit at 12 letters an inch, with the room of 6 for each mark."""
    longest = max(len(_label(series)) for series in chart.series)
    return max(1, min(len(chart.series), int(12 * width / (longest + 6))))


def _bars(axes: Axes, chart: Chart) -> None:
    width = 0.8 / len(chart.series)
    for position, series in enumerate(chart.series):
        offset = (position - (len(chart.series) - 1) / 2) * width
        at, heights, below, above = _percents(series)
        axes.bar(
            [x + offset for x in at],
            heights,
            width * 0.92,
            yerr=[below, above],
            label=_label(series),
            color=COLOURS[series.run],
            error_kw={"ecolor": "#444444", "elinewidth": 1, "capsize": 2},
        )
    axes.set_ylim(top=100)


def _percents(series: Series) -> tuple[list[int], list[float], list[float], list[float]]:
    """Positions, heights and the lengths of the error bars, in percent, of the points there are."""
    there = [(x, point) for x, point in enumerate(series.points) if point]
    return (
        [x for x, _ in there],
        [100 * p.value for _, p in there],
        [100 * max(0.0, p.value - p.low) for _, p in there],
        [100 * max(0.0, p.high - p.value) for _, p in there],
    )


def _lines(axes: Axes, chart: Chart) -> None:
    for series in chart.series:
        there = [(x, point) for x, point in enumerate(series.points) if point]
        at = [x for x, _ in there]
        colour = COLOURS[series.run]
        axes.plot(
            at,
            [point.value for _, point in there],
            "--" if series.dashed else "-",
            marker="o",
            markersize=9 if series.dashed else 4,
            markerfacecolor="white" if series.dashed else colour,
            color=colour,
            label=_label(series),
        )
        low, high = [p.low for _, p in there], [p.high for _, p in there]
        axes.fill_between(at, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.set_xlim(-0.4, len(chart.ticks) - 0.6)


def _scatter(axes: Axes, chart: Chart) -> None:
    axes.step(
        [x for x, _ in chart.front],
        [100 * y for _, y in chart.front],
        "--",
        where="post",
        color="#666666",
        linewidth=1,
        marker="o",
        markersize=11,
        markerfacecolor="none",
        zorder=3,
        label="Pareto front",
    )
    for series in chart.series:
        there, heights, below, above = _percents(series)
        at = [series.at[position] for position in there]
        axes.errorbar(
            at,
            heights,
            yerr=[below, above],
            fmt="o",
            color=COLOURS[series.run],
            ecolor="#dddddd",
            elinewidth=1,
            label=_label(series),
        )
    highest = max((p.high for one in chart.series for p in one.points if p), default=1.0)
    axes.margins(x=0.12)
    axes.set_xlim(left=0)
    axes.set_ylim(top=min(100.0, 115 * highest))


_DRAWERS = {"bars": _bars, "lines": _lines, "scatter": _scatter}


def _label(series: Series) -> str:
    """One line; matplotlib would leave a label that begins with `_` out of the legend."""
    text = one_line(series.label)
    text = text if len(text) <= _MAX_LABEL else f"…{text[1 - _MAX_LABEL :]}"
    return f" {text}" if text.startswith("_") else text

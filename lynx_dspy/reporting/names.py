"""Names beside the points of a scatter, so that none covers another or a point.

Each name takes the first free place around its point, near ones first; one that stands further
away is tied to its point by a line. Where every place is taken it takes the least crowded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from lynx_dspy.reporting.chart import Chart
from lynx_dspy.reporting.render import one_line

_LONGEST = 40
_SIZE = 8
_MARKER = 12.0
"""Side of the square around a point that names keep out of, in pixels at 100 dots an inch."""

_RINGS = (7, 16, 26, 37, 49, 62, 76, 91)
"""Distances of names from their points, in typographic points."""

_SIDES: tuple[tuple[float, float, str, str], ...] = (
    (1, 0, "left", "center"),
    (-1, 0, "right", "center"),
    (0.8, 0.8, "left", "bottom"),
    (-0.8, 0.8, "right", "bottom"),
    (0.8, -0.8, "left", "top"),
    (-0.8, -0.8, "right", "top"),
    (0, 1, "center", "bottom"),
    (0, -1, "center", "top"),
)
"""Where a name stands: direction from its point, and how it is aligned there."""


def name_points(axes: Axes, chart: Chart) -> None:
    """Write the names of a scatter's points into a figure that is otherwise ready."""
    figure = axes.figure
    figure.draw_without_rendering()  # type: ignore[union-attr]  # settles where the axes are
    named = [
        (x, 100 * point.value, one_line(name)[:_LONGEST])
        for series in chart.series
        for x, point, name in zip(series.at, series.points, series.names, strict=True)
        if point and name
    ]
    taken = [_around(axes, x, y) for x, y, _ in named]
    inside = axes.get_window_extent()
    for x, y, name in sorted(named, key=lambda one: (-one[0], -one[1], one[2])):
        text = _write(axes, (x, y), name)
        best, place = min(_places(axes, text), key=lambda one: _cost(one[0], taken, inside))
        taken.append(best)
        _put(axes, text, place)


Place = tuple[float, float, str, str]
"""Typographic points to the right of the point and above it; how the name is aligned there."""


def _write(axes: Axes, point: tuple[float, float], name: str) -> Annotation:
    text = axes.annotate(name, point, (0, 0), textcoords="offset points", fontsize=_SIZE)
    text.set_in_layout(False)
    text.set_path_effects([withStroke(linewidth=2.5, foreground="white")])  # over bars and lines
    return text


def _places(axes: Axes, text: Annotation) -> Iterator[tuple[Bbox, Place]]:
    """Where a name may stand, near places first, each with the box that it would fill."""
    canvas = cast(FigureCanvasAgg, axes.figure.canvas)
    size = text.get_window_extent(canvas.get_renderer())  # type: ignore[no-untyped-call]
    right, up = axes.transData.transform(text.xy)
    inch = axes.figure.dpi / 72
    for distance in _RINGS:
        for to_right, to_up, across, along in _SIDES:
            place = (to_right * distance, to_up * distance, across, along)
            left = right + inch * place[0] - _BEFORE[across] * size.width
            low = up + inch * place[1] - _BEFORE[along] * size.height
            box = Bbox.from_bounds(left, low, size.width, size.height)
            yield box.padded(2.0), place


_BEFORE = {"left": 0.0, "bottom": 0.0, "center": 0.5, "right": 1.0, "top": 1.0}
"""The share of a name's box that lies before the place that it is aligned to."""


def _put(axes: Axes, text: Annotation, place: Place) -> None:
    right, up, across, along = place
    text.set_position((right, up))
    text.set(ha=across, va=along)
    if max(abs(right), abs(up)) > _RINGS[0]:
        line = {"arrowstyle": "-", "color": "#999999", "linewidth": 0.6}
        axes.annotate("", text.xy, (right, up), textcoords="offset points", arrowprops=line)


def _cost(box: Bbox, taken: Sequence[Bbox], inside: Bbox) -> float:
    """How much of the box is taken or stands outside of the axes, in square pixels."""
    covered = sum(_shared(box, other) for other in taken)
    return covered + 2 * (_area(box) - _shared(box, inside))


def _shared(one: Bbox, other: Bbox) -> float:
    common = Bbox.intersection(one, other)
    return _area(common) if common is not None else 0.0


def _area(box: Bbox) -> float:
    return float(box.width * box.height)


def _around(axes: Axes, x: float, y: float) -> Bbox:
    right, up = axes.transData.transform((x, y))
    half = _MARKER / 2
    return Bbox.from_extents(right - half, up - half, right + half, up + half)

"""A figure before it is drawn: series of points with intervals, over named ticks or a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lynx_dspy.metrics.intervals import Interval


@dataclass(frozen=True, slots=True)
class Series:
    """One point a tick, None where there is none. `run` gives the colour, `dashed` the line.

    In a scatter `at` has the horizontal place of each point and `names` what it is called.
    """

    label: str
    points: tuple[Interval | None, ...]
    run: int
    dashed: bool = False
    at: tuple[float, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """`kind` is bars or scatter (points are fractions, shown as percent), or lines (as they are).

    `front` are the places of a scatter, from left to right, that no other point beats.
    """

    name: str
    title: str
    x_title: str
    y_title: str
    ticks: tuple[str, ...]
    series: tuple[Series, ...]
    kind: str = "bars"
    front: tuple[tuple[float, float], ...] = ()


def counted(name: str, points: Sequence[Interval | None]) -> str:
    """A tick's name with the number of questions behind its points, as a range if they differ.

    >>> counted("sqlite", [Interval(0.5, 0.2, 0.8, 10), Interval(0.6, 0.3, 0.9, 12), None])
    'sqlite\\nn = 10–12'
    """
    sizes = sorted({point.n for point in points if point})
    if not sizes:
        return name
    return f"{name}\nn = {'–'.join(f'{size:,}' for size in dict.fromkeys([sizes[0], sizes[-1]]))}"

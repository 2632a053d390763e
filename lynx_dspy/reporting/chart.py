"""A figure before it is drawn: series of points with intervals over named ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lynx_dspy.metrics.intervals import Interval


@dataclass(frozen=True, slots=True)
class Series:
    """One point a tick, None where there is none. `run` gives the colour, `dashed` the line."""

    label: str
    points: tuple[Interval | None, ...]
    run: int
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """`kind` is bars (points are fractions, shown as percent) or lines (points as they are)."""

    name: str
    title: str
    x_title: str
    y_title: str
    ticks: tuple[str, ...]
    series: tuple[Series, ...]
    kind: str = "bars"


def counted(name: str, points: Sequence[Interval | None]) -> str:
    """A tick's name with the number of questions behind its points, as a range if they differ.

    >>> counted("sqlite", [Interval(0.5, 0.2, 0.8, 10), Interval(0.6, 0.3, 0.9, 12), None])
    'sqlite\\nn = 10–12'
    """
    sizes = sorted({point.n for point in points if point})
    if not sizes:
        return name
    return f"{name}\nn = {'–'.join(f'{size:,}' for size in dict.fromkeys([sizes[0], sizes[-1]]))}"

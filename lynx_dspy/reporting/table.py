"""A table before it is text: typed cells, so that each renderer shows numbers in its own way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lynx_dspy.metrics.intervals import Interval

Cell = str | float | Interval | None
"""Text, a number, a score with its interval, or None where nothing could be judged."""


@dataclass(frozen=True, slots=True)
class Column:
    """`title` is for people, `key` for CSV headers; `unit` is a name in `UNITS`."""

    title: str
    key: str
    unit: str = "text"

    @property
    def is_score(self) -> bool:
        """True for columns of `Interval` cells; CSV writes them as four columns."""
        return self.unit == "score"


RUN = Column("Run", "run")
"""The first column of most tables."""

READING = "Scores: percent [95 % interval] (questions judged). Other numbers are means a question."
"""The note under tables that hold scores."""


@dataclass(frozen=True, slots=True)
class Table:
    """`rows` hold one cell a column. `notes` say how to read it; CSV leaves them out."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


def _p_value(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


UNITS: dict[str, Callable[[float], str]] = {
    "count": lambda value: f"{value:,.0f}",
    "mean": lambda value: f"{value:.2f}",
    "seconds": lambda value: f"{value:.2f}",
    "percent": lambda value: f"{100 * value:.1f}",
    "change": lambda value: f"{100 * value:+.1f}",
    "p": _p_value,
}
"""How a number of each unit is written; `percent` and `change` take fractions."""


def shown(cell: Cell, column: Column) -> str:
    """The cell as Markdown and LaTeX show it, before escaping.

    Scores read `percent [low, high] (n)`.

    >>> shown(Interval(0.5, 0.25, 0.75, 12), Column("EX", "ex", "score"))
    '50.0 [25.0, 75.0] (12)'
    >>> shown(11200.4, Column("Tokens", "tokens", "count"))
    '11,200'
    """
    if cell is None:
        return "–"
    if isinstance(cell, Interval):
        percent = UNITS["percent"]
        ends = f"[{percent(cell.low)}, {percent(cell.high)}]"
        return f"{percent(cell.value)} {ends} ({cell.n:,})"
    return cell if isinstance(cell, str) else UNITS[column.unit](cell)

"""How far a computed factor agrees with its reference, cell by cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from lynx_dspy.errors import BadInput
from lynx_dspy.finance.panel import Panel
from lynx_dspy.finance.windows import Wide

TOLERANCE = 1e-6
"""Two values are equal that differ by at most this, and by this share of the reference."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `compare_factors` found; shares are of the cells of the reference's dates and stocks.

    `max_abs_difference` is over the cells that have a value in both, NaN if there is none.
    `equal_share` counts cells that agree: two values within `tolerance`, or a value in neither.
    `coverage` is the share of the reference's values where the factor has one too, `surplus` the
    number of values that the reference does not have.
    """

    max_abs_difference: float
    equal_share: float
    coverage: float
    surplus: int
    cells: int
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Whether every cell is equal and no value is one too many."""
        return self.equal_share == 1.0 and self.surplus == 0


def compare_factors(
    got: pd.DataFrame, reference: pd.DataFrame, tolerance: float = TOLERANCE
) -> Comparison:
    """Compare two factors, each a wide frame (dates by codes) or a long one (date, code, value).

    A cell that a frame does not list has no value there. Infinities are equal to themselves. Raises
    `BadInput` for frames of neither form, and for a reference without cells.

    >>> days = pd.to_datetime(["2024-01-02", "2024-01-03"])
    >>> reference = pd.DataFrame({"A": [1.0, np.nan], "B": [2.0, 4.0]}, index=days)
    >>> compare_factors(reference.replace(4.0, 4.5), reference).equal_share
    0.75
    """
    wanted, found = _wide(reference), _wide(got)
    if wanted.empty:
        raise BadInput("The reference factor has no cells.")
    aligned = found.reindex(index=wanted.index, columns=wanted.columns)
    theirs, ours = wanted.to_numpy(np.float64), aligned.to_numpy(np.float64)
    with np.errstate(invalid="ignore"):
        apart: Wide = np.where(ours == theirs, 0.0, np.abs(ours - theirs))
        equal = apart <= tolerance * np.maximum(1.0, np.where(np.isinf(theirs), 1.0, abs(theirs)))
    absent, missing = np.isnan(theirs), np.isnan(ours)
    shared = ~absent & ~missing
    valued = int((~absent).sum())
    extra = int(found.notna().to_numpy().sum()) - int(shared.sum())
    return Comparison(
        max_abs_difference=float(apart[shared].max()) if shared.any() else float("nan"),
        equal_share=float((equal | (absent & missing)).mean()),
        coverage=float(shared.sum() / valued) if valued else 1.0,
        surplus=extra,
        cells=theirs.size,
        tolerance=tolerance,
    )


def _wide(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame as dates by codes, labels sorted."""
    names = [str(name).strip().casefold() for name in frame.columns]
    if isinstance(frame.index, pd.DatetimeIndex) and "code" not in names:
        panel = Panel.from_wide({"value": frame})
        return panel.frame(panel.fields["value"])
    panel = Panel.from_long(frame)
    if len(panel.fields) != 1:
        raise BadInput(
            f"A long factor has date, code and one column of numbers; got {', '.join(names)}."
        )
    (cells,) = panel.fields.values()
    return panel.frame(cells)

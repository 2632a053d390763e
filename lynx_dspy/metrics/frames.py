"""When a result read from CSV counts as equal to a gold CSV (Spider 2.0, `evaluate.py`).

Predictions and golds go through CSV files, so that types are inferred anew on both sides. A missing
value (an empty cell, NA, None, null) equals 0; numbers are equal within 0.01; True equals 1. Each
gold column, or each of `condition_cols` of the gold, must equal some predicted column; further
predicted columns are free.
"""

from __future__ import annotations

import io
import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from lynx_dspy.errors import BadInput
from lynx_dspy.values import Row

TOLERANCE = 1e-2

_MAX_TRIES = 10_000
"""Sets of columns that one search may try; a result that needs more counts as different."""

Column = list[Any]
Vector = tuple[float, ...]
Bag = dict[Row, list[Vector]]


def read_csv(source: Path | str) -> pd.DataFrame | None:
    """The frame of a CSV file (a Path) or text (a str); None if there is not even a header.

    >>> read_csv("") is None
    True
    """
    try:
        return pd.read_csv(source if isinstance(source, Path) else io.StringIO(source))
    except pd.errors.EmptyDataError:
        return None


def through_csv(names: Sequence[str], rows: Sequence[Row]) -> pd.DataFrame | None:
    """The frame that a query's result becomes when it is written to CSV and read again."""
    written = pd.DataFrame(list(rows), columns=pd.Index(list(names))).to_csv(index=False)
    return read_csv(written)


def matches(
    gold: pd.DataFrame, pred: pd.DataFrame, condition_cols: Sequence[int], ignore_order: bool
) -> bool:
    """The official comparison: with `ignore_order` every column is sorted by text, on its own.

    So rows need not stay together: `(1, a), (2, b)` matches `(2, a), (1, b)`.
    """
    right = [_prepared(c, ignore_order) for c in _columns(pred)]
    left = [_prepared(c, ignore_order) for c in _columns(_selected(gold, condition_cols))]
    return all(any(_same_vector(wanted, had) for had in right) for wanted in left)


def matches_by_row(
    gold: pd.DataFrame, pred: pd.DataFrame, condition_cols: Sequence[int], ignore_order: bool
) -> bool:
    """As `matches`, but with `ignore_order` whole rows are matched, so cells stay together."""
    if not ignore_order or gold.shape[0] != pred.shape[0]:
        return matches(gold, pred, condition_cols, ignore_order)
    right = [_prepared(c, False) for c in _columns(pred)]
    left = [_prepared(c, False) for c in _columns(_selected(gold, condition_cols))]
    left_bags = [_bag([column]) for column in left]
    right_bags = {j: _bag([had]) for j, had in enumerate(right) if right.index(had) == j}
    partners = [[j for j, had in right_bags.items() if _same_bag(b, had)] for b in left_bags]
    stack: list[tuple[int, ...]] = [()]
    for _ in range(_MAX_TRIES):
        if not stack:
            break
        chosen = stack.pop()
        width = len(chosen)
        if width > 1 and not _same_bag(_bag(left[:width]), _bag([right[j] for j in chosen])):
            continue
        if width == len(left):
            return True
        stack.extend((*chosen, j) for j in reversed(partners[width]))
    return False


def _selected(gold: pd.DataFrame, condition_cols: Sequence[int]) -> pd.DataFrame:
    if not condition_cols:
        return gold
    if not all(0 <= index < gold.shape[1] for index in condition_cols):
        raise BadInput(
            f"condition_cols {list(condition_cols)} do not fit a gold of {gold.shape[1]} columns; "
            "pass indexes of its columns, counted from 0."
        )
    return gold.iloc[:, list(condition_cols)]


def _columns(frame: pd.DataFrame) -> list[Column]:
    """Transposed as the official script does it: mixed numbers become floats, as there."""
    transposed: list[Column] = frame.transpose().values.tolist()
    return transposed


def _prepared(column: Column, sort: bool) -> Column:
    filled = [0 if value is None or value != value else value for value in column]
    return sorted(filled, key=lambda v: (str(v), isinstance(v, int | float))) if sort else filled


def _same_vector(left: Column, right: Column) -> bool:
    return len(left) == len(right) and all(map(_same_cell, left, right))


def _same_cell(left: object, right: object) -> bool:
    if isinstance(left, int | float) and isinstance(right, int | float):
        return math.isclose(float(left), float(right), abs_tol=TOLERANCE)
    return left == right


def _bag(columns: Sequence[Column]) -> Bag:
    """The rows of some columns: their numbers as sorted vectors, under their text."""
    groups: Bag = defaultdict(list)
    for row in zip(*columns, strict=True):
        text = tuple(None if isinstance(value, int | float) else value for value in row)
        groups[text].append(tuple(float(v) for v in row if isinstance(v, int | float)))
    for vectors in groups.values():
        vectors.sort()
    return groups


def _same_bag(left: Bag, right: Bag) -> bool:
    """Whether rows can be paired one to one so that each pair's cells are the same.

    Text must be equal, so only rows of equal text can be paired; their numbers are as vectors.
    """
    if left.keys() != right.keys():
        return False
    return all(_pairable(vectors, right[text]) for text, vectors in left.items())


def _pairable(left: list[Vector], right: list[Vector]) -> bool:
    """Whether two sorted lists of vectors can be paired within the tolerance.

    Sorted order settles nearly every case, with the numbers that spread most in front. Where it
    does not (rows nearly equal in those), augmenting paths look for a perfect matching.
    """
    if len(left) != len(right):
        return False
    if all(map(_close, left, right)):
        return True
    if len(left[0]) < 2:
        return False
    left, right = _widest_first(left, right)
    pairing = _Pairing()
    return all(map(_close, left, right)) or all(
        _augment(i, left, right, pairing) for i in range(len(left))
    )


def _widest_first(left: list[Vector], right: list[Vector]) -> tuple[list[Vector], list[Vector]]:
    columns = list(zip(*left, strict=True))
    order = sorted(range(len(columns)), key=lambda i: min(columns[i]) - max(columns[i]))
    return (
        sorted(tuple(vector[i] for i in order) for vector in left),
        sorted(tuple(vector[i] for i in order) for vector in right),
    )


@dataclass(slots=True)
class _Pairing:
    """The pairs made so far, from both sides."""

    partner: dict[int, int] = field(default_factory=dict)
    owner: dict[int, int] = field(default_factory=dict)


def _augment(start: int, left: list[Vector], right: list[Vector], pairing: _Pairing) -> bool:
    """Give row `start` of `left` a partner, moving earlier rows to other partners if needed."""
    came_from: dict[int, int] = {}
    queue = [start]
    for row in queue:
        first = left[row][0]
        slack = TOLERANCE + (abs(first) * 1e-8 if math.isfinite(first) else 0.0)
        low = bisect_left(right, (first - slack,))
        high = bisect_right(right, (first + slack, math.inf))
        for other in range(low, high):
            if other in came_from or not _close(left[row], right[other]):
                continue
            came_from[other] = row
            if other not in pairing.owner:
                _hand_over(other, came_from, pairing)
                return True
            queue.append(pairing.owner[other])
    return False


def _hand_over(free: int | None, came_from: dict[int, int], pairing: _Pairing) -> None:
    """Walk back from a free partner to the start, giving every row on the way its new partner."""
    while free is not None:
        row = came_from[free]
        pairing.owner[free] = row
        before = pairing.partner.get(row)
        pairing.partner[row] = free
        free = before


def _close(left: Vector, right: Vector) -> bool:
    return all(math.isclose(a, b, abs_tol=TOLERANCE) for a, b in zip(left, right, strict=True))

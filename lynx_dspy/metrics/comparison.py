"""When two results of queries count as equal: the one place that decides it for rows.

A result is a sequence of rows, a row is a tuple of cells. Cells are compared by Python's `==`
(1 == 1.0, '1' != 1, None == None) unless a function says otherwise; NaN equals NaN here. Results
read from CSV follow Spider 2.0's own rules, in `frames.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from lynx_dspy.values import Row

Cells = tuple[Hashable, ...]

_MAX_CELLS = 20_000_000
"""Cells that one search for columns may look at; it takes some seconds to get there."""


def cell(value: Any) -> Hashable:
    """`value` in a form that can be hashed, equal exactly where the values are equal.

    One NaN object stands for all: containers compare by identity first, so it equals itself.

    >>> cell([1, {"a": 2}])
    (1, (('a', 2),))
    """
    if isinstance(value, float) and value != value:
        return math.nan
    if isinstance(value, Mapping):
        return tuple(sorted(((str(k), cell(v)) for k, v in value.items()), key=repr))
    if isinstance(value, list | tuple):
        return tuple(map(cell, value))
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return value if isinstance(value, Hashable) else repr(value)


def cells(rows: Iterable[Row]) -> list[Cells]:
    """The rows with every value in its hashable form, duplicates and order kept."""
    return [tuple(map(cell, row)) for row in rows]


def same_set(gold: Sequence[Row], pred: Sequence[Row]) -> bool:
    """The same distinct rows (official BIRD); column order matters, row order does not.

    >>> same_set([(1,), (2,), (2,)], [(2,), (1.0,)])
    True
    """
    return set(cells(gold)) == set(cells(pred))


def same_rows(gold: Sequence[Row], pred: Sequence[Row], ordered: bool) -> bool:
    """The same rows the same number of times, in the same order if `ordered`.

    >>> same_rows([(1,), (2,)], [(2,), (1,)], ordered=False)
    True
    """
    if ordered:
        return cells(gold) == cells(pred)
    return Counter(cells(gold)) == Counter(cells(pred))


def same_up_to_columns(gold: Sequence[Row], pred: Sequence[Row], ordered: bool) -> bool:
    """Some order of the predicted columns makes the results the same (official Spider).

    Two empty results are equal whatever their widths. The official script first compares the rows
    with their cells sorted by text and type, so that `(1, 1.2)` never equals `(1.0, 1.2)`; scores
    are comparable only if that is kept.

    >>> same_up_to_columns([(1, "a"), (2, "b")], [("b", 2), ("a", 1)], ordered=False)
    True
    """
    left, right = cells(gold), cells(pred)
    if not left or not right:
        return len(left) == len(right)
    if len(left) != len(right) or len(left[0]) != len(right[0]):
        return False
    if not _same_unordered_rows(left, right, ordered):
        return False
    left_columns, right_columns = columns(left), columns(right)
    if ordered:
        return Counter(left_columns) == Counter(right_columns)
    return find_columns(left_columns, right_columns) is not None


def contains_columns(gold: Sequence[Row], pred: Sequence[Row], places: int = 2) -> bool:
    """Some predicted columns, one for each of gold's, hold gold's rows as a bag (sql_eval).

    Extra columns, column order and row order are free; floats are rounded to `places`.

    >>> contains_columns([("x", 0.333)], [(9, 0.3333, "x")])
    True
    """
    if len(gold) != len(pred):
        return False
    if not gold:
        return True
    left = [tuple(_rounded(value, places) for value in row) for row in cells(gold)]
    right = [tuple(_rounded(value, places) for value in row) for row in cells(pred)]
    return find_columns(columns(left), columns(right)) is not None


def columns(rows: Sequence[Cells]) -> list[Cells]:
    """The columns of rows of one width.

    >>> columns([(1, "a"), (2, "b")])
    [(1, 2), ('a', 'b')]
    """
    return list(zip(*rows, strict=True))


def find_columns(gold: Sequence[Cells], pred: Sequence[Cells]) -> tuple[int, ...] | None:
    """Indexes of distinct `pred` columns that, side by side, hold gold's rows as a bag.

    The i-th index is the partner of the i-th gold column in the order that was searched. A column
    can only be the partner of one with the same bag of values; each choice splits the rows into
    classes that must have gold's sizes, so wrong ones end early, and of identical columns one is
    tried. Gives None where there are none, and where `_MAX_CELLS` cells did not find them.
    """
    if len(gold) > len(pred):
        return None
    gold = sorted(gold, key=lambda column: -len(set(column)))
    bags = [Counter(column) for column in pred]
    candidates = [[i for i, bag in enumerate(bags) if bag == Counter(c)] for c in gold]
    first_alike = [pred.index(column) for column in pred]
    levels = _row_classes(gold)
    height = len(gold[0])
    budget = _MAX_CELLS
    stack: list[tuple[tuple[int, ...], list[int]]] = [((), [0] * height)]
    while stack and budget > 0:
        chosen, classes = stack.pop()
        if chosen:
            table, sizes = levels[len(chosen) - 1]
            budget -= height
            steps = zip(classes, pred[chosen[-1]], strict=True)
            classes = [table.get(step, -1) for step in steps]
            if Counter(classes) != sizes:
                continue
        if len(chosen) == len(gold):
            return chosen
        free = {first_alike[i]: i for i in candidates[len(chosen)] if i not in chosen}
        stack.extend(((*chosen, i), classes) for i in reversed(free.values()))
    return None


def _row_classes(
    gold: Sequence[Cells],
) -> list[tuple[dict[tuple[int, Hashable], int], Counter[int]]]:
    """For each prefix of the columns: class of a row by (its class before, its next cell), sizes.

    Two rows share a class exactly where they agree on all columns of the prefix.
    """
    levels = []
    classes = [0] * len(gold[0])
    for column in gold:
        table: dict[tuple[int, Hashable], int] = {}
        steps = zip(classes, column, strict=True)
        classes = [table.setdefault(step, len(table)) for step in steps]
        levels.append((table, Counter(classes)))
    return levels


def _same_unordered_rows(left: list[Cells], right: list[Cells], ordered: bool) -> bool:
    """The official quick rejection: rows as bags of cells, sorted by text and type."""
    sorted_left, sorted_right = (
        [tuple(sorted(row, key=lambda value: str(value) + str(type(value)))) for row in rows]
        for rows in (left, right)
    )
    if ordered:
        return sorted_left == sorted_right
    return set(sorted_left) == set(sorted_right)


def _rounded(value: Hashable, places: int) -> Hashable:
    return cell(round(float(value), places)) if isinstance(value, float | Decimal) else value

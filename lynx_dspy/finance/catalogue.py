"""What a formula may call: each operator with the kinds of its arguments and its meaning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lynx_dspy.finance import across, windows
from lynx_dspy.finance.windows import Wide

Kind = Literal["panel", "cells", "days", "number", "class"]
"""A panel; a panel or a number; a number of days; another constant; a class of stocks."""


@dataclass(frozen=True, slots=True)
class Operator:
    """`kinds` has one entry an argument, of which the last `optional` may be left out."""

    name: str
    kinds: tuple[Kind, ...]
    compute: Callable[..., Wide]
    meaning: str
    optional: int = 0
    least_days: int = 1

    @property
    def usage(self) -> str:
        """How it is called.

        >>> FUNCTIONS["correlation"].usage
        'correlation(x, y, d)'
        """
        letters = {"panel": "x", "cells": "x", "days": "d", "number": "a", "class": "g"}
        names: list[str] = []
        for kind in self.kinds:
            names.append("y" if letters[kind] in names else letters[kind])
        return f"{self.name}({', '.join(names)})"


_Elementwise = Callable[[ArrayLike, ArrayLike], Wide]


def _quiet(function: Callable[..., Wide]) -> Callable[..., Wide]:
    """IEEE results without warnings."""

    def compute(*cells: ArrayLike) -> Wide:
        with np.errstate(all="ignore"):
            return function(*(np.asarray(one, dtype=np.float64) for one in cells))

    return compute


def _compared(comparison: np.ufunc) -> _Elementwise:
    """1 or 0 by `comparison`, NaN where either side is NaN."""

    def compute(x: ArrayLike, y: ArrayLike) -> Wide:
        one, other = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        true: NDArray[np.bool_] = comparison(one, other)
        return np.where(np.isnan(one) | np.isnan(other), np.nan, true)

    return compute


_WINDOW: tuple[Kind, ...] = ("panel", "days")
_PAIR: tuple[Kind, ...] = ("panel", "panel", "days")
_TWO: tuple[Kind, ...] = ("cells", "cells")

_FUNCTIONS = (
    Operator("rank", ("panel",), across.rank, "rank among the stocks, share in (0, 1]"),
    Operator("scale", ("panel", "number"), across.scale, "|x| of a date add up to a (1)", 1),
    Operator(
        "indneutralize",
        ("panel", "class"),
        across.indneutralize,
        "less the mean of the group",
    ),
    Operator("delay", _WINDOW, windows.delay, "the value d dates ago", least_days=0),
    Operator("delta", _WINDOW, windows.delta, "today less d dates ago", least_days=0),
    Operator("correlation", _PAIR, windows.correlation, "Pearson's correlation over d dates"),
    Operator("covariance", _PAIR, windows.covariance, "sample covariance over d dates"),
    Operator("stddev", _WINDOW, windows.stddev, "sample standard deviation over d dates"),
    Operator("sum", _WINDOW, windows.ts_sum, "sum over d dates"),
    Operator("product", _WINDOW, windows.product, "product over d dates"),
    Operator("decay_linear", _WINDOW, windows.decay_linear, "mean with weights 1 to d (today)"),
    Operator("ts_min", _WINDOW, windows.ts_min, "least of d dates"),
    Operator("ts_max", _WINDOW, windows.ts_max, "greatest of d dates"),
    Operator("ts_argmin", _WINDOW, windows.ts_argmin, "day of the least of d dates, d is today"),
    Operator("ts_argmax", _WINDOW, windows.ts_argmax, "day of the greatest of d dates, d is today"),
    Operator("ts_rank", _WINDOW, windows.ts_rank, "rank of today within d dates, share in (0, 1]"),
    Operator("min", _TWO, across.less_of, "the less of two panels; with a number d, ts_min"),
    Operator("max", _TWO, across.greater_of, "the greater of two panels; with a number d, ts_max"),
    Operator("signedpower", _TWO, across.signedpower, "sign(x) * |x| ^ y"),
    Operator("log", ("cells",), across.log, "natural logarithm"),
    Operator("abs", ("cells",), _quiet(np.abs), "absolute value"),
    Operator("sign", ("cells",), _quiet(np.sign), "-1, 0 or 1"),
)
_SIGNS = (
    Operator("neg", ("cells",), _quiet(np.negative), "minus"),
    Operator("+", _TWO, _quiet(np.add), "plus"),
    Operator("-", _TWO, _quiet(np.subtract), "minus"),
    Operator("*", _TWO, _quiet(np.multiply), "times"),
    Operator("/", _TWO, _quiet(np.divide), "divided by"),
    Operator("^", _TWO, _quiet(np.power), "to the power of"),
    Operator("<", _TWO, _compared(np.less), "less than"),
    Operator(">", _TWO, _compared(np.greater), "greater than"),
    Operator("<=", _TWO, _compared(np.less_equal), "at most"),
    Operator(">=", _TWO, _compared(np.greater_equal), "at least"),
    Operator("==", _TWO, _compared(np.equal), "equal to"),
    Operator("!=", _TWO, _compared(np.not_equal), "other than"),
    Operator("||", _TWO, across.either, "or"),
    Operator("&&", _TWO, across.both, "and"),
    Operator("?", ("cells", "cells", "cells"), across.choose, "if, then, else"),
)

FUNCTIONS = {operator.name: operator for operator in _FUNCTIONS}
"""Operators that are written as calls, by their name."""

OPERATORS = {operator.name.replace("_", ""): operator for operator in (*_FUNCTIONS, *_SIGNS)}
"""All operators, by the name that `formula.parse` gives them."""

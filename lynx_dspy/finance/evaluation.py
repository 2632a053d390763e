"""Formulas computed over a panel: checked as a whole first, then each distinct part once."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.finance.catalogue import FUNCTIONS, OPERATORS, Kind, Operator
from lynx_dspy.finance.formula import Call, FormulaError, Name, Node, Number, parse
from lynx_dspy.finance.panel import Panel
from lynx_dspy.finance.windows import Wide, days

_SOURCES = ("returns", "vwap", "close", "amount", "volume")
"""Fields that others are derived from; they are read whenever one that may need them is."""


def evaluate(formula: str, panel: Panel | pd.DataFrame | str | Path) -> pd.DataFrame:
    """The cells of a formula over a panel, as a frame of dates by codes.

    The panel may be a long frame (`Panel.from_long`) or the path of one on disk, of which only the
    fields that are needed are read. Raises `FormulaError` for a formula that cannot be read or that
    names what the panel lacks, before anything is computed, and `BadInput` for a bad panel.

    >>> rows = [("2024-01-02", "A", 1.0), ("2024-01-03", "A", 3.0), ("2024-01-02", "B", 5.0),
    ...         ("2024-01-03", "B", 6.0)]
    >>> panel = pd.DataFrame(rows, columns=["date", "code", "close"])
    >>> evaluate("rank(delta(close, 1))", panel).to_numpy().tolist()
    [[nan, nan], [1.0, 0.5]]
    """
    tree = parse(formula)
    held = _panel(panel, tree)
    _Checker(formula, held).check(tree, "cells")
    cells = _Computer(held).cells(tree)
    return held.frame(np.broadcast_to(cells, held.shape).copy())


def fields_of(formula: str) -> frozenset[str]:
    """The folded names of the fields and classes that a formula names. Raises `FormulaError`.

    >>> sorted(fields_of("Rank(indneutralize(VWAP, IndClass.sector) - adv20)"))
    ['adv20', 'indclass.sector', 'vwap']
    """
    return frozenset(node.name for node in _nodes(parse(formula)) if isinstance(node, Name))


def functions_of(formula: str) -> frozenset[str]:
    """The names of the functions that a formula calls, signs aside. Raises `FormulaError`.

    >>> sorted(functions_of("Ts_Rank(close, 5) + tsrank(open, 5) * 2"))
    ['ts_rank']
    """
    calls = {node.function for node in _nodes(parse(formula)) if isinstance(node, Call)}
    return frozenset(name for name in FUNCTIONS if name.replace("_", "") in calls)


def _panel(panel: Panel | pd.DataFrame | str | Path, tree: Node) -> Panel:
    if isinstance(panel, Panel):
        return panel
    if isinstance(panel, pd.DataFrame):
        return Panel.from_long(panel)
    named = {node.name.removeprefix("indclass.") for node in _nodes(tree) if isinstance(node, Name)}
    return Panel.read(panel, named.union(_SOURCES))


def _nodes(tree: Node) -> Iterator[Node]:
    yield tree
    if isinstance(tree, Call):
        for argument in tree.arguments:
            yield from _nodes(argument)


class _Checker:
    """Holds a tree against the operators and a panel's names."""

    def __init__(self, text: str, panel: Panel) -> None:
        self._text = text
        self._panel = panel

    def check(self, node: Node, kind: Kind) -> None:
        """Raise `FormulaError` unless `node` can be computed and is of this kind."""
        if kind == "class":
            self._check_class(node)
        elif isinstance(node, Name):
            self._check_field(node)
        elif isinstance(node, Call):
            self._check_call(node)
        if kind in ("days", "number") and not _is_constant(node):
            what = "a number of days" if kind == "days" else "a number"
            raise self._error(node, f"{what} is a constant, not a panel")

    def _check_call(self, call: Call) -> None:
        operator = OPERATORS.get(call.function)
        if operator is None:
            near = difflib.get_close_matches(call.function, FUNCTIONS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            known = f"Known: {', '.join(FUNCTIONS)}"
            raise self._error(call, f"unknown function {call.function!r}.{hint} {known}")
        operator = _as_window(operator, call)
        most = len(operator.kinds)
        if not most - operator.optional <= len(call.arguments) <= most:
            got = len(call.arguments)
            raise self._error(call, f"{operator.usage} takes {most} arguments, got {got}")
        for argument, kind in zip(call.arguments, operator.kinds, strict=False):
            self.check(argument, kind)
            if kind == "days":
                self._check_days(argument, operator)

    def _check_days(self, argument: Node, operator: Operator) -> None:
        try:
            days(_constant(argument), operator.least_days)
        except BadInput as error:
            raise self._error(argument, f"{operator.usage}: {error}") from error

    def _check_field(self, name: Name) -> None:
        try:
            self._panel.field(name.name)
        except UnknownName as error:
            raise self._error(name, str(error)) from error

    def _check_class(self, node: Node) -> None:
        if not isinstance(node, Name):
            raise self._error(node, "a class such as IndClass.industry is missing")
        try:
            self._panel.groups(node.name)
        except UnknownName as error:
            raise self._error(node, str(error)) from error

    def _error(self, node: Node, what: str) -> FormulaError:
        return FormulaError(self._text, node.at, what)


class _Computer:
    """Computes a checked tree; equal parts are computed once."""

    def __init__(self, panel: Panel) -> None:
        self._panel = panel
        self._done: dict[Node, Wide] = {}

    def cells(self, node: Node) -> Wide:
        """The cells of a part: of the panel's shape, or one number without a shape."""
        if isinstance(node, Number):
            return np.asarray(node.value)
        found = self._done.get(node)
        if found is None:
            found = self._panel.field(node.name) if isinstance(node, Name) else self._called(node)
            self._done[node] = found
        return found

    def _called(self, call: Call) -> Wide:
        operator = _as_window(OPERATORS[call.function], call)
        given = zip(call.arguments, operator.kinds, strict=False)
        return operator.compute(*(self._argument(argument, kind) for argument, kind in given))

    def _argument(self, node: Node, kind: Kind) -> object:
        if kind == "class" and isinstance(node, Name):
            return self._panel.groups(node.name)
        if kind in ("days", "number"):
            return _constant(node)
        cells = self.cells(node)
        return np.broadcast_to(cells, self._panel.shape) if kind == "panel" else cells


def _as_window(operator: Operator, call: Call) -> Operator:
    """`min(x, d)` with a number is `ts_min(x, d)`, and so is `max`, as the paper defines them."""
    if operator.name in ("min", "max") and len(call.arguments) == 2:
        first, second = call.arguments
        if _is_constant(second) and not _is_constant(first):
            return FUNCTIONS[f"ts_{operator.name}"]
    return operator


def _is_constant(node: Node) -> bool:
    if isinstance(node, Call):
        operator = OPERATORS.get(node.function)
        elementwise = operator is not None and set(operator.kinds) == {"cells"}
        return elementwise and all(map(_is_constant, node.arguments))
    return isinstance(node, Number)


def _constant(node: Node) -> float:
    """The value of a constant part, such as `2 * 5`."""
    if isinstance(node, Call):
        operator = OPERATORS[node.function]
        return float(operator.compute(*map(_constant, node.arguments)))
    return node.value if isinstance(node, Number) else float("nan")

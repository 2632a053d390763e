"""Names that a program uses and never binds: tables misspelled, modules not imported."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from lynx_dspy.engines.names import best, nearest
from lynx_dspy.engines.python.problems import Patch, Problem, Span, span_of
from lynx_dspy.values import FailureClass, Finding, Schema

IMPORTS = {
    "pd": "import pandas as pd",
    "np": "import numpy as np",
    "pandas": "import pandas",
    "numpy": "import numpy",
    "datetime": "from datetime import datetime",
    "timedelta": "from datetime import timedelta",
    "Counter": "from collections import Counter",
    "defaultdict": "from collections import defaultdict",
    "Decimal": "from decimal import Decimal",
    "reduce": "from functools import reduce",
    **{name: f"import {name}" for name in ("math", "re", "json", "itertools", "statistics")},
}
"""Name -> the import that it is known by."""

_GIVEN = frozenset({"tables", "sql", "__name__"})
_BUILTINS = frozenset(dir(builtins))
_A_FRAME = frozenset({"df", "data", "frame", "table"})
_TOP = Span(1, 0, 1, 0)


def name_problems(tree: ast.Module, schema: Schema) -> Iterator[Problem]:
    """One problem for each name, where it is first used."""
    tables = [t.name for t in schema.tables]
    known = bound(tree) | _GIVEN | _BUILTINS | {t for t in tables if t.isidentifier()}
    seen: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        if node.id not in known and node.id not in seen:
            seen.add(node.id)
            uses = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == node.id]
            yield _unbound(node, len(uses) == 1, tables, known)


def bound(tree: ast.Module) -> frozenset[str]:
    """Names that the program binds anywhere, in any way."""
    return frozenset(_bound(tree))


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name


def _unbound(
    node: ast.Name, alone: bool, tables: list[str], known: frozenset[str] | set[str]
) -> Problem:
    name = node.id
    if statement := IMPORTS.get(name):
        found = _finding(FailureClass.SYNTAX, f"{name} is not imported", node)
        return Problem(found, Patch(_TOP, f"{statement}\n", f"added: {statement}"))
    near = nearest(name, tables)
    meant = tables[0] if len(tables) == 1 and name in _A_FRAME else best(name, tables)
    if near or meant:
        text = f"there is no table {name}; tables: {', '.join(tables[:12])}"
        found = _finding(FailureClass.SCHEMA, text, node, near or tuple(tables))
        patch = None
        if meant and alone:
            patch = Patch(span_of(node), written(meant), f"table {name} -> {meant}")
        return Problem(found, patch)
    like = nearest(name, [n for n in known if n not in _BUILTINS], 0.75)
    return Problem(_finding(FailureClass.SYNTAX, f"name {name} is not defined", node, like))


def written(table: str) -> str:
    """A table as a program writes it.

    >>> written("orders"), written("order items")
    ('orders', "tables['order items']")
    """
    return table if table.isidentifier() else f"tables[{table!r}]"


def _finding(
    failure: FailureClass, text: str, node: ast.Name, near: tuple[str, ...] = ()
) -> Finding:
    return Finding(failure, text, node.id, near, node.lineno, node.col_offset + 1)

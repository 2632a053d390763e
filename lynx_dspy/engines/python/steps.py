"""A Python program's parts, as clauses are a query's: what each step assigns, link by link."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lynx_dspy.engines.python.guard import parsed

_IMPORTS = "IMPORT"
_LONE = "STEP"


def steps(code: str) -> dict[str, tuple[str, ...]]:
    """What is assigned -> the links of the chain that makes it; empty if Python cannot read it.

    >>> steps("big = orders[orders.total > 5]\\nresult = big.groupby('city').total.sum()")["result"]
    ('big', ".groupby('city')", '.total', '.sum()')
    """
    tree = parsed(code)
    if isinstance(tree, SyntaxError):
        return {}
    found: dict[str, list[str]] = {}
    for statement in tree.body:
        name, parts = _step(statement)
        found.setdefault(name, []).extend(parts)
    return {name: tuple(parts) for name, parts in found.items()}


def names_in(code: str) -> frozenset[str]:
    """Names and texts that a program holds; empty if Python cannot read it."""
    tree = parsed(code)
    if isinstance(tree, SyntaxError):
        return frozenset()
    return frozenset(_named(tree))


def _named(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from node.value.replace('"', " ").replace(",", " ").split()


def _step(statement: ast.stmt) -> tuple[str, list[str]]:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return ast.unparse(statement.targets[0]), list(links(statement.value))
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        return ast.unparse(statement.target), list(links(statement.value))
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return _IMPORTS, [ast.unparse(statement)]
    if isinstance(statement, ast.FunctionDef):
        return statement.name, [line.strip() for line in ast.unparse(statement).splitlines()]
    return _LONE, [line.strip() for line in ast.unparse(statement).splitlines()]


def links(node: ast.expr) -> tuple[str, ...]:
    """A chain of calls, subscripts and attributes, from its root outwards."""
    found: list[str] = []
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            inner = ast.Call(ast.Name(node.func.attr), node.args, node.keywords)
            found.append(f".{ast.unparse(inner)}")
            node = node.func.value
        elif isinstance(node, ast.Subscript):
            found.append(f"[{ast.unparse(node.slice)}]")
            node = node.value
        elif isinstance(node, ast.Attribute):
            found.append(f".{node.attr}")
            node = node.value
        else:
            found.append(ast.unparse(node))
            return tuple(reversed(found))

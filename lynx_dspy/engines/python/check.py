"""Checks a Python program against the tables without running it (paper, III-C: failure classes)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from lynx_dspy.engines.names import best, nearest
from lynx_dspy.engines.python.allowed import READERS
from lynx_dspy.engines.python.columns import Miss, misses
from lynx_dspy.engines.python.guard import breaches, parsed, syntax_error
from lynx_dspy.engines.python.problems import Patch, Problem, Span, span_of
from lynx_dspy.engines.python.scope import bound, name_problems, written
from lynx_dspy.values import FailureClass, Finding, Schema

RESULT = "result"

_MOST_LISTED = 12


def check(code: str, schema: Schema) -> tuple[Finding, ...]:
    """What speaks against `code`, each thing once; runs nothing and never raises.

    Empty means: nothing is known to be wrong with it.
    """
    return tuple(dict.fromkeys(problem.finding for problem in problems(code, schema)))


def problems(code: str, schema: Schema) -> list[Problem]:
    """All problems of a program, with their patches."""
    if not code.strip():
        return [Problem(Finding(FailureClass.SYNTAX, "there is no program"))]
    tree = parsed(code)
    if isinstance(tree, SyntaxError):
        place = tree.lineno or 0, tree.offset or 0
        return [Problem(Finding(FailureClass.SYNTAX, syntax_error(tree), "", (), *place))]
    return [
        *_breaches(tree, schema),
        *name_problems(tree, schema),
        *(_missing(miss) for miss in misses(tree, schema)),
        *_no_result(tree),
    ]


def _breaches(tree: ast.Module, schema: Schema) -> Iterator[Problem]:
    """What the guard refuses; a file that is read stands for its table."""
    reads = {(call.lineno, call.func.col_offset + 1): call for call in _readers(tree)}
    for breach in breaches(tree):
        finding = Finding(
            FailureClass.SYNTAX, breach.message, breach.name, (), breach.line, breach.column
        )
        call = reads.get((breach.line, breach.column))
        table = _table_of(call, schema) if call else ""
        patch = None
        if call and table:
            note = f"{ast.unparse(call.func)}(...) -> {written(table)}, which is loaded"
            patch = Patch(span_of(call), written(table), note)
        yield Problem(finding, patch)


class _Reader(ast.Call):
    """A call of a reader: `pd.read_csv(...)`."""

    func: ast.Attribute


def _readers(tree: ast.Module) -> Iterator[_Reader]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name.startswith("read_") or name in READERS:
                yield node  # type: ignore[misc]  # seen to be one


def _table_of(call: ast.Call, schema: Schema) -> str:
    """The table whose file a call reads; empty if it cannot be told."""
    first = call.args[0] if call.args else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return ""
    stem = PurePosixPath(first.value.replace("\\", "/")).stem
    table = schema.table(stem)
    return table.name if table else best(stem, (t.name for t in schema.tables)) or ""


def _missing(miss: Miss) -> Problem:
    """A column that a frame lacks; one that is near exactly one of its columns is put right."""
    columns = sorted(miss.frame.columns)
    near = nearest(miss.name, columns)
    where = f"table {miss.frame.label}" if miss.frame.label else "the frame"
    listed = ", ".join(columns[:_MOST_LISTED])
    text = f"{where} has no column {miss.name}; it has {listed}"
    node = miss.node
    finding = Finding(FailureClass.SCHEMA, text, miss.name, near, node.lineno, node.col_offset + 1)
    meant = best(miss.name, columns)
    return Problem(finding, _renamed(miss, meant) if meant else None)


def _renamed(miss: Miss, meant: str) -> Patch | None:
    node, note = miss.node, f"column {miss.name} -> {meant}"
    span = span_of(node)
    if isinstance(node, ast.Constant):
        return Patch(span, repr(meant), note)
    if not meant.isidentifier():
        return None
    start = span.end_column - len(miss.name.encode())
    return Patch(Span(span.end_line, start, span.end_line, span.end_column), meant, note)


def _no_result(tree: ast.Module) -> Iterator[Problem]:
    """A program that assigns no `result`: its last value is meant."""
    if RESULT in bound(tree) or not tree.body:
        return
    text = f"assign the answer to `{RESULT}`"
    last = tree.body[-1]
    finding = Finding(FailureClass.SYNTAX, text, RESULT, (), last.lineno, last.col_offset + 1)
    yield Problem(finding, _as_result(last))


def _as_result(last: ast.stmt) -> Patch | None:
    if isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name):
        end = span_of(last)
        place = Span(end.end_line, end.end_column, end.end_line, end.end_column)
        name = last.targets[0].id
        return Patch(place, f"\n{RESULT} = {name}", f"added: {RESULT} = {name}")
    if not isinstance(last, ast.Expr):
        return None
    value = last.value
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "print":
        if len(value.args) != 1 or value.keywords:
            return None
        value = value.args[0]
    text = f"{RESULT} = {ast.unparse(value)}"
    return Patch(span_of(last), text, f"the last value is the {RESULT}")

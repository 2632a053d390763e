"""What the static check holds against a Python program, with the one way to mend it if there is."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from lynx_dspy.values import Finding


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a program as `ast` counts: lines from 1, columns in bytes from 0."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Patch:
    """`text` in the place of `span`; `note` says what it does, in a line."""

    span: Span
    text: str
    note: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding, and the patch that is its only sensible mend."""

    finding: Finding
    patch: Patch | None = None


def span_of(node: ast.expr | ast.stmt) -> Span:
    """Where a node stands."""
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return Span(node.lineno, node.col_offset, end_line, end_column)


def patched(code: str, patches: Iterable[Patch]) -> str:
    """The program with all patches, which must not overlap.

    >>> patched("a = b", [Patch(Span(1, 4, 1, 5), "c", "b -> c")])
    'a = c'
    """
    lines = [line.encode() for line in code.splitlines(keepends=True)]
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    text = b"".join(lines)

    def offset(line: int, column: int) -> int:
        return starts[min(line - 1, len(starts) - 1)] + column

    for patch in sorted(patches, key=lambda p: (p.span.line, p.span.column), reverse=True):
        span = patch.span
        begin, end = offset(span.line, span.column), offset(span.end_line, span.end_column)
        text = text[:begin] + patch.text.encode() + text[end:]
    return text.decode()

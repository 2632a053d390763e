"""Nested fields as columns: dotted names, short types, and values out of nested cells."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

_LONGEST_CELL = 200_000
_NUMPY_ROWS = re.compile(r"\}\s*\n\s*\{")


def short_type(kind: str) -> str:
    """`kind` without the fields of its structs: these are columns of their own.

    >>> short_type("ARRAY<STRUCT<a STRING, b STRUCT<c INT64>>>"), short_type("ARRAY<STRING>")
    ('ARRAY<STRUCT>', 'ARRAY<STRING>')
    """
    start = kind.find("STRUCT<")
    return f"{kind[:start]}STRUCT{'>' * kind[:start].count('<')}" if start >= 0 else kind


def leaves(rows: Sequence[Mapping[str, Any]], tops: Collection[str]) -> dict[str, list[Any]]:
    """Values of nested fields by dotted name, out of the cells of the columns `tops`."""
    found: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        for top in tops:
            for name, value in _walk(top, _value(row.get(top))):
                found[name].append(value)
    return found


def _walk(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(f"{name}.{key}", inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(name, inner)
    elif value is not None:
        yield name, value


def _value(cell: Any) -> Any:
    """A cell as dicts and lists; None if it is text that cannot be read as such.

    Spider 2.0 prints numpy arrays of dicts: one a line, without commas between.
    """
    if not isinstance(cell, str) or len(cell) > _LONGEST_CELL or cell[:1] not in "[{":
        return cell if isinstance(cell, dict | list) else None
    try:
        return ast.literal_eval(_NUMPY_ROWS.sub("}, {", cell))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None

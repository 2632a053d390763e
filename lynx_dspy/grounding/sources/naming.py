"""Names of tables that stay apart: within a schema, each table has a name of its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from lynx_dspy.values import Table

_DIGITS = re.compile(r"(\d+)")


def distinct_names(tables: Iterable[Table]) -> tuple[Table, ...]:
    """The tables, those that share a bare name called by as much of their path as tells them apart.

    `path` keeps the exact parts of the full name; two tables of one full name stay as they are.

    >>> twice = [Table("t", (), namespace="a"), Table("t", (), namespace="b"), Table("u", ())]
    >>> [table.name for table in distinct_names(twice)]
    ['a.t', 'b.t', 'u']
    """
    kept = list(tables)
    for length in (2, 3):
        counts = Counter(table.name.casefold() for table in kept)
        kept = [
            replace(table, name=".".join(table.parts[-length:]), path=table.parts)
            if counts[table.name.casefold()] > 1 and len(table.parts) >= length
            else table
            for table in kept
        ]
    return tuple(replace(t, path=()) if _plain(t) == t.path else t for t in kept)


def _plain(table: Table) -> tuple[str, ...]:
    """The path that the namespace and the name already say."""
    return (*filter(None, table.namespace.split(".")), table.name)


def natural(path: Path | str) -> list[tuple[int, int, str]]:
    """A sort key in which numbers count as such: t2 before t10."""
    pieces = _DIGITS.split(str(path).casefold())
    return [(1, int(p[:18]), "") if p.isdigit() else (0, 0, p) for p in pieces]

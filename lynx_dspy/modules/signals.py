"""Signals: what is odd about a result without being an error (paper, III-B and III-C).

The Critic and the verifier see them; none of them fails an attempt by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from sqlglot import exp

from lynx_dspy.modules.clauses import query
from lynx_dspy.values import Outcome, Row, Schema, Table

_FEW_ROWS = 3
"""So many rows may share a value by chance."""

_MOST_TOLD = 4


class Signal(StrEnum):
    """What can be odd; the value begins the line that says it."""

    EMPTY = "no rows"
    ZERO = "one cell"
    NULLS = "only NULL"
    CONSTANT = "one value"
    REPEATED = "repeated rows"
    EXPLODED = "too many rows"


def signals(code: str, outcome: Outcome, schema: Schema) -> tuple[str, ...]:
    """Oddities of a result, a line each; empty for a failing program or a plain result.

    >>> from lynx_dspy.values import Status
    >>> rows = Outcome(Status.OK, ("total",), ((None,),))
    >>> signals("SELECT SUM(x) FROM t", rows, Schema("sqlite", ()))
    ('one cell: the only value of the result is NULL',)
    """
    if not outcome.ran:
        return ()
    tree = query(code, schema.dialect)
    found = [*_of_rows(outcome, tree), *_of_size(outcome, tree, schema)]
    return tuple(f"{kind}: {text}" for kind, text in found)[:_MOST_TOLD]


def _of_rows(outcome: Outcome, tree: exp.Query | None) -> Iterator[tuple[Signal, str]]:
    rows, columns = outcome.rows, outcome.columns
    if not rows:
        yield Signal.EMPTY, "no row passes the conditions and joins"
        return
    if len(rows) == 1 and len(rows[0]) == 1:
        if rows[0][0] is None or rows[0][0] == 0:
            shown = "NULL" if rows[0][0] is None else "0"
            yield Signal.ZERO, f"the only value of the result is {shown}"
        return
    fixed = _fixed_outputs(tree)
    for place, name in enumerate(columns):
        values = {_hashable(row[place]) for row in rows if place < len(row)}
        if values == {None}:
            yield Signal.NULLS, f"column {name} is NULL in every row"
        elif len(values) == 1 and len(rows) > _FEW_ROWS and place not in fixed:
            yield Signal.CONSTANT, f"column {name} is the same in all {len(rows)} rows"


def _of_size(
    outcome: Outcome, tree: exp.Query | None, schema: Schema
) -> Iterator[tuple[Signal, str]]:
    if outcome.row_count <= _FEW_ROWS:
        return
    repeated = outcome.row_count - len({_key(row) for row in outcome.rows})
    if 2 * repeated >= outcome.row_count:
        text = f"{repeated} of {outcome.row_count} rows say what another row says"
        yield Signal.REPEATED, text
    largest = _largest(tree, schema)
    if largest is not None and outcome.row_count > (largest.row_count or 0):
        text = f"{outcome.row_count} rows, more than the largest table read has"
        yield Signal.EXPLODED, f"{text} ({largest.name}: {largest.row_count}); a join may multiply"


def _largest(tree: exp.Query | None, schema: Schema) -> Table | None:
    """The largest table that a joining program reads; None where a size is not known.

    The rows of a UNION add up, and those of one table cannot exceed it.
    """
    if tree is None or tree.find(exp.SetOperation) or not tree.find(exp.Join):
        return None
    common = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    names = [n for node in tree.find_all(exp.Table) if (n := node.name.casefold()) not in common]
    tables = [table for name in names if (table := schema.table(name)) is not None]
    if not tables or len(tables) < len(names) or any(t.row_count is None for t in tables):
        return None
    return max(tables, key=lambda table: table.row_count or 0)


def _fixed_outputs(tree: exp.Query | None) -> frozenset[int]:
    """Outputs that an equality of the program fixes: their being constant says nothing."""
    if not isinstance(tree, exp.Select):
        return frozenset()
    where = tree.args.get("where")
    equal = where.find_all(exp.EQ) if where else ()
    fixed = {side.name.casefold() for node in equal for side in (node.this, node.expression)}
    return frozenset(
        place
        for place, output in enumerate(tree.expressions)
        if isinstance(output.unalias(), exp.Column) and output.unalias().name.casefold() in fixed
    )


def _key(row: Row) -> Sequence[object]:
    return tuple(_hashable(value) for value in row)


def _hashable(value: object) -> object:
    return str(value) if isinstance(value, list | dict | set) else value

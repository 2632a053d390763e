from __future__ import annotations

from typing import Any

import pytest

from lynx_dspy.modules.signals import Signal, signals
from lynx_dspy.values import Column, Outcome, Schema, Status, Table

COLUMNS = (Column("id", "INTEGER"), Column("city", "TEXT"))
SCHEMA = Schema("sqlite", (Table("a", COLUMNS, row_count=3), Table("b", COLUMNS, row_count=4)))


def kinds(code: str, rows: list[tuple[Any, ...]]) -> set[str]:
    names = tuple(f"c{i}" for i in range(len(rows[0]) if rows else 1))
    outcome = Outcome(Status.OK if rows else Status.EMPTY, names, tuple(rows))
    return {text.partition(":")[0] for text in signals(code, outcome, SCHEMA)}


@pytest.mark.parametrize(
    ("code", "rows", "expected"),
    [
        ("SELECT id FROM a WHERE id > 9", [], {Signal.EMPTY}),
        ("SELECT SUM(id) FROM a WHERE id > 9", [(None,)], {Signal.ZERO}),
        ("SELECT COUNT(*) FROM a WHERE id > 9", [(0,)], {Signal.ZERO}),
        ("SELECT COUNT(*) FROM a", [(3,)], set()),
        ("SELECT id, city FROM a", [(1, None), (2, None)], {Signal.NULLS}),
        ("SELECT id, city FROM b", [(i, "Oslo") for i in range(4)], {Signal.CONSTANT}),
        ("SELECT id, city FROM b WHERE city = 'Oslo'", [(i, "Oslo") for i in range(4)], set()),
        ("SELECT id FROM b", [(1,), (1,), (1,), (2,)], {Signal.REPEATED}),
        ("SELECT a.id FROM a JOIN b", [(i,) for i in range(12)], {Signal.EXPLODED}),
        ("SELECT id FROM a UNION ALL SELECT id FROM b JOIN a", [(i,) for i in range(7)], set()),
        ("SELECT id FROM a JOIN unknown", [(i,) for i in range(9)], set()),
        ("SELECT id, city FROM a", [(1, "Oslo"), (2, "Bergen")], set()),
        ("this is no SQL", [(1, 2), (3, 4)], set()),
    ],
)
def test_what_is_odd(code: str, rows: list[tuple[Any, ...]], expected: set[str]) -> None:
    assert kinds(code, rows) == expected


def test_a_failing_program_gives_no_signal() -> None:
    assert signals("SELECT x", Outcome(Status.ERROR, error="no"), SCHEMA) == ()


def test_cells_that_cannot_be_hashed_are_compared_all_the_same() -> None:
    assert kinds("SELECT id, x FROM b", [(i, [1]) for i in range(4)]) == {Signal.CONSTANT}

"""The store of validated fixes: bounded, without doubles, never half written."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.errors import BadInput
from lynx_dspy.modules import patterns
from lynx_dspy.modules.patterns import Fix, Pattern, PatternStore, database_key, fix_of, merged
from lynx_dspy.values import Attempt, Column, FailureClass, Outcome, Schema, Status, Table

SHOP = Schema("sqlite", (Table("t", (Column("name", "TEXT"),)),), name="shop")
FIX = Fix("schema", "nme", "no such column: nme", "SELECT -nme +name")


def failed(code: str = "SELECT nme FROM t") -> Attempt:
    outcome = Outcome(Status.ERROR, error="no such column: nme")
    return Attempt(0, code, outcome, failure_class=FailureClass.SCHEMA)


def test_a_fix_is_told_by_its_failure_and_its_clauses() -> None:
    after = Attempt(1, "SELECT name FROM t", Outcome(Status.OK))
    assert fix_of(failed(), after, "sqlite") == FIX


def test_a_fix_is_recalled_for_the_same_database_and_class(tmp_path: Path) -> None:
    store = PatternStore(tmp_path / "new" / "fixes.jsonl")
    store.add([FIX, FIX], SHOP, "Which names?", "test/model")
    store.add([FIX], SHOP, "Other?", "test/model")
    assert "no such column: nme => SELECT -nme +name" in store.recall(SHOP, failed())
    other = Schema("sqlite", (Table("u", ()),), name="shop")
    assert store.recall(other, failed()) == ""
    syntax = failed().with_(failure_class=FailureClass.SYNTAX)
    assert store.recall(SHOP, syntax) == ""
    (line,) = store.path.read_text().splitlines()
    record = json.loads(line)
    assert (record["seen"], record["question"], record["lm"]) == (2, "Which names?", "test/model")
    assert record["database"] == database_key(SHOP)


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(1, 3)), max_size=40))
def test_a_store_is_bounded_and_has_no_doubles(seen: list[tuple[int, int]]) -> None:
    found = [Pattern("d", "schema", "x", str(n), "e", "q", "m", "2026-01-01", k) for n, k in seen]
    kept = merged(found, found)
    assert len({p.key for p in kept}) == len(kept) == len({p.key for p in found})


def test_what_was_seen_least_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MOST_PATTERNS", 2)
    made = [
        Pattern("d", "schema", "x", str(n), "e", "q", "m", "2026-01-01", n) for n in range(1, 5)
    ]
    assert [p.seen for p in merged(made, [])] == [3, 4]


def test_stores_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "fixes.jsonl"

    def write(n: int) -> None:
        PatternStore(path).add([Fix("schema", "x", f"failure {n}", "edit")], SHOP, "q", "m")

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(PatternStore(path).load()) == 8
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".fixes")] == []


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"database": "x"}', "[" * 100_000, '{"seen": "a", "x": 1}']
)
def test_a_line_that_is_no_pattern_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "fixes.jsonl"
    path.write_text(f"\n{line}\n")
    with pytest.raises(BadInput, match="line 2"):
        PatternStore(path).load()


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="Cannot"):
        PatternStore(tmp_path / "file" / "fixes.jsonl").add([FIX], SHOP, "q", "m")

"""The search drops weak candidates early, stays within its budget, and keeps no loser."""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lynx_dspy as lynx
from lynx_dspy.optimize.budget import Budget, Meter, Spent
from lynx_dspy.optimize.questions import from_examples
from lynx_dspy.optimize.recipes import Halving
from lynx_dspy.optimize.records import Record
from lynx_dspy.optimize.search import (
    BASELINE,
    Candidate,
    Objective,
    Runs,
    Search,
    dealt,
    judge,
    planned,
    program_hash,
    unique,
)


def records(*scores: float | None, tokens: int = 100, soft: float = 0.0) -> list[Record]:
    return [
        cast(
            Record,
            {
                "id": str(k),
                "scores": {} if ex is None else {"ex": ex, "soft_f1": max(ex, soft)},
                "usage": {"total_tokens": tokens},
            },
        )
        for k, ex in enumerate(scores)
    ]


def test_ex_decides_then_soft_f1_then_thrift() -> None:
    worth = Objective().worth
    assert worth(records(1, 1)) > worth(records(1, 0, soft=0.9))
    assert worth(records(1, 0, soft=0.5)) > worth(records(1, 0))
    assert worth(records(1, 0, tokens=50)) > worth(records(1, 0, tokens=100))
    assert worth(records(1, None)).ex == 1.0
    assert worth(records(None)) < worth(records(0))


def test_tokens_have_a_price_where_one_is_set() -> None:
    dear, cheap = records(1, 1, tokens=3_000), records(1, 0, tokens=1_000)
    assert Objective(0.2).worth(dear) > Objective(0.2).worth(cheap)
    assert Objective(0.3).worth(dear) < Objective(0.3).worth(cheap)


def test_a_winner_is_kept_only_if_it_is_not_below_the_baseline() -> None:
    better = judge(records(0, 0, 0, 1), records(1, 1, 1, 1), Objective(), same=False)
    assert better.kept and better.change is not None and better.change.value == 0.75
    assert "chance" in judge(records(0, 1, 0, 1), records(1, 1, 0, 1), Objective(), False).reason
    assert not judge(records(1, 0), records(1, 0), Objective(), same=False).kept
    assert not judge(records(1, 0), records(1, 0), Objective(), same=True).kept
    assert not judge(records(None), records(1), Objective(), same=False).kept
    thrifty = judge(
        records(*[1] * 20, tokens=9_000), records(*[0] * 20), Objective(1.0), same=False
    )
    assert not thrifty.kept and "below" in thrifty.reason


def example(k: int, db: str) -> dspy.Example:
    return dspy.Example(id=str(k), db=db)


@given(st.lists(st.sampled_from("abc"), max_size=30), st.integers(0, 5))
def test_databases_take_turns(dbs: list[str], seed: int) -> None:
    examples = [example(k, db) for k, db in enumerate(dbs)]
    order = dealt(examples, seed)
    assert sorted(one.id for one in order) == sorted(one.id for one in examples)
    assert [one.id for one in order] == [one.id for one in dealt(examples, seed)]
    kinds = len(set(dbs))
    if dbs and min(dbs.count(db) for db in set(dbs)) > 1:
        assert len({one.db for one in order[:kinds]}) == kinds


def test_what_is_planned() -> None:
    assert planned(8, 40, Halving()) == 8 * 10 + 4 * 10 + 2 * 20
    assert planned(1, 3, Halving(rungs=(0.5, 1.0))) == 3
    assert planned(0, 40, Halving()) == 0


class Bench:
    """Candidates that are right for the first `n` of nine batches."""

    def __init__(self, counting: ModuleType, folder: Path, budget: Budget | None = None) -> None:
        self.counting = counting
        self.meter = Meter(budget or Budget())
        self.asked: list[int] = []
        lm = counting.model(self)
        self.runs = Runs(folder / "work", lm, self.meter)
        val = from_examples(counting.questions(folder, 8))
        self.search = Search(self.runs, val, Objective(), seed=0)

    def complete(self, request: dspy.lm15.Request) -> dspy.lm15.Response:
        knows = int(str(request.system).split("Know ")[1].split(".")[0])
        engine = self.counting.CountingEngine(
            lambda k: f"```sql\n{self.counting.gold(k if k < knows else k + 1)}\n```"
        )
        self.asked.append(knows)
        return cast(dspy.lm15.Response, engine.complete(request))

    def __deepcopy__(self, memo: dict[int, Any]) -> Bench:
        return self

    def candidate(self, knows: int, name: str = "") -> Candidate:
        program = self.counting.program(max_rounds=0)
        stage = program.generator.formulate
        stage.signature = stage.signature.with_instructions(f"Know {knows}.")
        return Candidate(name or f"c{knows}", program)


@pytest.fixture
def bench(counting: ModuleType, tmp_path: Path) -> Bench:
    return Bench(counting, tmp_path)


def test_the_best_wins_and_weak_ones_are_dropped_early(bench: Bench) -> None:
    baseline = bench.candidate(3, BASELINE)
    bench.search.records(baseline)
    found = bench.search.halve(
        baseline, [bench.candidate(k) for k in (0, 8, 1, 5)], Halving(rungs=(0.5, 1.0))
    )
    assert found.best.name == "c8"
    asked = {s.candidate.name: s.asked for s in found.standings}
    assert asked == {BASELINE: 8, "c0": 4, "c1": 4, "c5": 8, "c8": 8}
    assert bench.meter.spent.calls == 8 + 4 * 4 + 2 * 4
    assert len(bench.asked) == 32


def test_the_baseline_wins_where_nothing_is_better(bench: Bench) -> None:
    baseline = bench.candidate(8, BASELINE)
    bench.search.records(baseline)
    found = bench.search.halve(baseline, [bench.candidate(2), bench.candidate(0)], Halving())
    assert found.best is baseline


def test_a_program_is_tried_once_whatever_it_is_called(bench: Bench) -> None:
    one, same, other = bench.candidate(3), bench.candidate(3, "twin"), bench.candidate(4)
    assert one.hash == same.hash != other.hash
    assert unique([one, same, other]) == [one, other]
    demo = bench.candidate(3)
    demo.program.generator.formulate.demos = [dspy.Example(question="q", code="SELECT 1")]
    assert demo.hash != one.hash
    assert program_hash(lynx.Lynx()) == program_hash(lynx.Lynx())


@pytest.mark.parametrize("most", [9, 14, 18, 25])
def test_the_budget_ends_the_search_and_a_second_call_agrees(
    counting: ModuleType, tmp_path: Path, most: int
) -> None:
    winners = []
    for _ in range(2):
        bench = Bench(counting, tmp_path, Budget(lm_calls=most))
        baseline = bench.candidate(3, BASELINE)
        bench.search.records(baseline)
        found = bench.search.halve(
            baseline, [bench.candidate(k) for k in (8, 0, 5)], Halving(rungs=(0.25, 1.0))
        )
        winners.append((found.best.name, bench.meter.spent.calls, found.budget_spent))
    assert winners[0] == winners[1]
    assert not bench.asked, "the second call had everything"
    name, calls, spent = winners[0]
    assert calls <= most and spent
    if most >= 18:  # enough for one candidate on every question
        assert name == "c8"


def test_a_reserve_is_kept_for_the_last_rung(counting: ModuleType, tmp_path: Path) -> None:
    bench = Bench(counting, tmp_path, Budget(lm_calls=20))
    baseline = bench.candidate(0, BASELINE)
    bench.search.records(baseline)
    others = [bench.candidate(k) for k in (8, 1, 2, 3, 4, 5, 6, 7)]
    found = bench.search.halve(baseline, others, Halving(rungs=(0.25, 1.0)))
    assert found.best.name == "c8", "eight candidates a rung would have used up all of it"


def test_each_limit_counts() -> None:
    spent = Spent(calls=10, tokens=1_000, seconds=120.0)
    assert Budget().allows(spent)
    assert not Budget(lm_calls=10).allows(spent)
    assert not Budget(tokens=1_000).allows(spent)
    assert not Budget(minutes=2).allows(spent)
    assert Budget(lm_calls=11, tokens=1_001, minutes=2.1).allows(spent)
    assert spent.times(0.5) == Spent(5, 500, 60.0)
    assert math.isclose((spent + spent).seconds, 240)

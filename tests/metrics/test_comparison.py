"""Row rules against slow and plain versions of themselves, and what must hold between them."""

import math
import random
import time
from collections import Counter
from itertools import permutations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lynx_dspy.metrics import execution_accuracy, soft_f1, soft_f1_cells
from lynx_dspy.metrics.comparison import cell, cells, columns, find_columns

Rows = list[tuple[Any, ...]]

VALUES = st.one_of(st.integers(0, 2), st.sampled_from(["a", "b", ""]), st.none())


@st.composite
def results(draw: st.DrawFn, widths: tuple[int, int] = (1, 4)) -> Rows:
    width = draw(st.integers(*widths))
    return draw(st.lists(st.tuples(*[VALUES] * width), max_size=6))


@st.composite
def shuffled_columns(draw: st.DrawFn) -> tuple[Rows, Rows]:
    """A result, and it or a near miss with rows and columns in another order."""
    gold = draw(results())
    width = len(gold[0]) if gold else 1
    order = draw(st.permutations(range(width)))
    pred = [tuple(row[i] for i in order) for row in draw(st.permutations(gold))]
    if pred and draw(st.booleans()):
        row = draw(st.integers(0, len(pred) - 1))
        pred[row] = (draw(VALUES), *pred[row][1:])
    return gold, pred


def spider_by_hand(gold: Rows, pred: Rows, ordered: bool) -> bool:
    if not gold or not pred:
        return len(gold) == len(pred)
    if len(gold) != len(pred) or len(gold[0]) != len(pred[0]):
        return False
    for order in permutations(range(len(gold[0]))):
        moved = [tuple(row[i] for i in order) for row in pred]
        if gold == moved or (not ordered and Counter(gold) == Counter(moved)):
            return True
    return False


def sql_eval_by_hand(gold: Rows, pred: Rows) -> bool:
    if not gold or not pred:
        return len(gold) == len(pred)
    return any(
        Counter(gold) == Counter(tuple(row[i] for i in order) for row in pred)
        for order in permutations(range(len(pred[0])), len(gold[0]))
    )


@given(shuffled_columns(), st.booleans())
@settings(max_examples=400)
def test_spider_agrees_with_trying_every_column_order(
    pair: tuple[Rows, Rows], ordered: bool
) -> None:
    gold, pred = pair
    got = execution_accuracy(gold, pred, "spider", ordered=ordered)
    assert got == spider_by_hand(gold, pred, ordered)


@given(results(), results())
@settings(max_examples=200)
def test_spider_agrees_on_unrelated_results(gold: Rows, pred: Rows) -> None:
    assert execution_accuracy(gold, pred, "spider") == spider_by_hand(gold, pred, False)


@given(shuffled_columns(), st.data())
@settings(max_examples=300)
def test_sql_eval_agrees_with_trying_every_choice_of_columns(
    pair: tuple[Rows, Rows], data: st.DataObject
) -> None:
    gold, pred = pair
    extra = data.draw(st.lists(VALUES, min_size=len(pred), max_size=len(pred)))
    wider = [(*row, value) for row, value in zip(pred, extra, strict=True)]
    for result in (pred, wider):
        assert execution_accuracy(gold, result, "sql_eval") == sql_eval_by_hand(gold, result)


@given(results())
def test_every_row_rule_accepts_a_result_for_itself(rows: Rows) -> None:
    for rule in ("bird", "spider", "spider-distinct", "sql_eval", "strict"):
        assert execution_accuracy(rows, list(rows), rule, ordered=True)


@given(results(), results(), st.booleans())
def test_rules_that_must_be_symmetric_are(left: Rows, right: Rows, ordered: bool) -> None:
    for rule in ("bird", "spider", "strict"):
        forth = execution_accuracy(left, right, rule, ordered=ordered)
        assert forth == execution_accuracy(right, left, rule, ordered=ordered)


@given(shuffled_columns(), st.randoms())
def test_row_order_does_not_matter_where_gold_does_not_sort(
    pair: tuple[Rows, Rows], chance: random.Random
) -> None:
    gold, pred = pair
    moved = list(pred)
    chance.shuffle(moved)
    for rule in ("bird", "spider", "sql_eval", "strict"):
        assert execution_accuracy(gold, pred, rule) == execution_accuracy(gold, moved, rule)


@given(shuffled_columns(), st.booleans())
def test_stricter_rules_imply_the_others(pair: tuple[Rows, Rows], ordered: bool) -> None:
    gold, pred = pair
    if execution_accuracy(gold, pred, "strict", ordered=ordered):
        for rule in ("bird", "spider", "sql_eval"):
            assert execution_accuracy(gold, pred, rule, ordered=ordered)
    if execution_accuracy(gold, pred, "spider", ordered=True):
        assert execution_accuracy(gold, pred, "spider")
    if gold and execution_accuracy(gold, pred, "spider"):
        assert execution_accuracy(gold, pred, "sql_eval")


@given(results(), results())
def test_soft_f1_is_a_share_and_one_for_equal_rows_in_equal_order(gold: Rows, pred: Rows) -> None:
    assert 0 <= soft_f1(gold, pred) <= 1
    assert 0 <= soft_f1_cells(gold, pred) <= 1
    if list(dict.fromkeys(gold)) == list(dict.fromkeys(pred)):
        assert execution_accuracy(gold, pred, "bird")
        assert soft_f1(gold, pred) == 1
    if execution_accuracy(gold, pred, "bird"):
        assert soft_f1_cells(gold, pred) == 1


def test_the_same_rows_in_another_order_can_score_zero_by_soft_f1_alone() -> None:
    gold, pred = [(1, "a"), (2, "b")], [(2, "b"), (1, "a")]
    assert execution_accuracy(gold, pred, "bird")
    assert soft_f1(gold, pred) == 0
    assert soft_f1_cells(gold, pred) == 1


def test_spider_keeps_the_official_rejection_by_cell_type() -> None:
    assert execution_accuracy([(1,)], [(1.0,)], "spider")
    assert not execution_accuracy([(1, 1.2)], [(1.0, 1.2)], "spider")


def test_twenty_shuffled_columns_are_matched_fast() -> None:
    chance = random.Random(1)
    gold = [tuple(chance.randint(0, 2) for _ in range(20)) for _ in range(500)]
    order = chance.sample(range(20), 20)
    pred = [tuple(row[i] for i in order) for row in chance.sample(gold, len(gold))]
    spoiled = [(*pred[0][:-1], 9), *pred[1:]]
    began = time.process_time()
    assert execution_accuracy(gold, pred, "spider")
    assert not execution_accuracy(gold, spoiled, "spider")
    assert execution_accuracy(gold, pred, "sql_eval")
    assert time.process_time() - began < 2


def test_twenty_equal_columns_and_twenty_flags_end_fast() -> None:
    flags = [tuple(int(i == j) for j in range(20)) for i in range(20)]
    twice = [(*row[:-1], row[0]) for row in flags]
    same = [(value,) * 20 for value in (1, 1, 2)]
    began = time.process_time()
    assert execution_accuracy(flags, flags[::-1], "spider")
    assert not execution_accuracy(flags, twice, "spider")
    assert not execution_accuracy(same, [(*same[0][:-1], 2), *same[1:]], "spider")
    assert execution_accuracy(same, same, "spider")
    assert time.process_time() - began < 2


def test_a_search_that_cannot_end_counts_as_different(monkeypatch: Any) -> None:
    monkeypatch.setattr("lynx_dspy.metrics.comparison._MAX_CELLS", 20_000)
    flags = [tuple(int(i == j) for j in range(20)) for i in range(20)]
    twice = [(*row[:-1], row[0]) for row in flags]
    assert find_columns(columns(cells(flags)), columns(cells(twice))) is None


def test_values_that_cannot_be_hashed_are_compared_too() -> None:
    nested = [([1, {"a": [2]}], bytearray(b"x"), float("nan"), {3})]
    again = [([1, {"a": [2]}], bytearray(b"x"), float("nan"), {3})]
    for rule in ("bird", "spider", "sql_eval", "strict"):
        assert execution_accuracy(nested, again, rule)
    assert cell(math.nan) is cell(float("nan"))

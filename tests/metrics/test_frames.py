import random
import time
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.errors import BadInput
from lynx_dspy.metrics import any_gold, execution_accuracy
from lynx_dspy.metrics.frames import read_csv, through_csv

CELLS = st.one_of(st.integers(-3, 3), st.sampled_from(["x", "y", ""]), st.floats(-2, 2, width=16))


def frame(text: str) -> pd.DataFrame:
    found = read_csv(text)
    assert found is not None
    return found


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=6), st.booleans(), st.randoms())
def test_a_frame_equals_itself_and_its_wider_shuffle(
    rows: list[tuple[object, ...]], ignore_order: bool, chance: random.Random
) -> None:
    gold = through_csv(["a", "b", "c"], rows)
    moved = [(row[2], 7, row[0], row[1]) for row in rows]
    if ignore_order:
        chance.shuffle(moved)
    pred = through_csv(["c", "n", "a", "b"], moved)
    for rule in ("spider2", "spider2-fixed"):
        assert execution_accuracy(gold, gold, rule, ignore_order=ignore_order)
    assert execution_accuracy(gold, pred, "spider2-fixed", ignore_order=ignore_order)


def test_only_the_fixed_rule_keeps_rows_together() -> None:
    gold, pred = frame("k,v\n1,a\n2,b\n"), frame("k,v\n2,a\n1,b\n")
    assert execution_accuracy(gold, pred, "spider2", ignore_order=True)
    assert not execution_accuracy(gold, pred, "spider2-fixed", ignore_order=True)


def test_near_equal_rows_are_paired_even_where_sorting_crosses_them() -> None:
    gold, pred = frame("k,v\n1.000,5\n1.001,3\n"), frame("k,v\n1.001,5\n1.000,3\n")
    assert execution_accuracy(gold, pred, "spider2-fixed", ignore_order=True)
    apart = frame("k,v\n1.011,5\n1.000,3\n")
    assert not execution_accuracy(gold, apart, "spider2-fixed", ignore_order=True)


def test_pairing_moves_earlier_rows_when_a_later_one_needs_their_partner() -> None:
    gold = frame("k,v\n0.000,0\n0.004,0.009\n0.008,0\n")
    pred = frame("k,v\n0.002,0.005\n0.012,0.005\n-0.004,0.009\n")
    assert execution_accuracy(gold, pred, "spider2-fixed", ignore_order=True)


def test_many_rows_are_paired_fast_whichever_column_comes_first() -> None:
    chance = random.Random(1)
    gold = pd.DataFrame({"noise": [0.0] * 2000, "v": [chance.random() * 100 for _ in range(2000)]})
    pred = gold.sample(frac=1, random_state=1).reset_index(drop=True)
    pred["noise"] = [chance.uniform(-0.009, 0.009) for _ in range(2000)]
    spoiled = pred.assign(v=pred["v"].where(pred.index != 7, 500.0))
    began = time.process_time()
    assert execution_accuracy(gold, pred, "spider2-fixed", ignore_order=True)
    assert not execution_accuracy(gold, spoiled, "spider2-fixed", ignore_order=True)
    assert time.process_time() - began < 2


def test_a_flat_list_holds_for_a_lone_suffixed_gold_only_in_the_fixed_rule() -> None:
    gold, pred = frame("k,v\n1,5\n"), frame("k\n1\n")
    for rule, matches in (("spider2", False), ("spider2-fixed", True)):
        assert any_gold([gold], pred, rule, condition_cols=[0], ignore_order=True) == matches


def test_condition_columns_that_gold_lacks_are_refused() -> None:
    with pytest.raises(BadInput, match="2 columns"):
        execution_accuracy(
            frame("a,b\n1,2\n"), frame("a\n1\n"), "spider2-fixed", condition_cols=[2]
        )


def test_header_only_results_compare_normally(tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_text("a,b\n")
    gold = read_csv(path)
    for rule in ("spider2", "spider2-fixed"):
        assert execution_accuracy(gold, frame("x,y\n"), rule, ignore_order=True)
        assert not execution_accuracy(gold, frame("x\n1\n"), rule, ignore_order=True)


def test_a_result_goes_through_csv_as_the_official_script_sends_it() -> None:
    pred = through_csv(["a", "a"], [("007", None), ("x", 2)])
    assert pred is not None
    assert pred.values.tolist()[1] == ["x", 2.0]

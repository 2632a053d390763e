import pandas as pd
import pytest

from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.metrics import RULES, any_gold, execution_accuracy


def test_an_unknown_rule_is_named_with_those_that_exist() -> None:
    with pytest.raises(UnknownName, match=r"'spyder'.*'spider'.*bird, spider"):
        execution_accuracy([], [], rule="spyder")


def test_each_rule_has_one_comparison_and_a_source() -> None:
    for rule in RULES.values():
        assert (rule.rows is None) != (rule.frames is None)
        assert rule.source


@pytest.mark.parametrize("rule", [name for name, rule in RULES.items() if rule.rows])
def test_a_failed_prediction_is_wrong(rule: str) -> None:
    assert not execution_accuracy([], None, rule)


@pytest.mark.parametrize("rule", [name for name in RULES if name != "bird"])
def test_a_failed_gold_cannot_be_judged(rule: str) -> None:
    with pytest.raises(BadInput, match="gold"):
        execution_accuracy(None, [], rule)


def test_rows_given_to_a_rule_about_frames_are_refused() -> None:
    with pytest.raises(BadInput, match="pandas frames"):
        execution_accuracy([(1,)], [(1,)], rule="spider2")
    with pytest.raises(BadInput, match="row tuples"):
        execution_accuracy(pd.DataFrame(), pd.DataFrame(), rule="bird")


def test_strict_minds_columns_duplicates_and_gold_order() -> None:
    gold = [(1, "a"), (2, "b"), (2, "b")]
    assert execution_accuracy(gold, gold[::-1], "strict")
    assert not execution_accuracy(gold, gold[::-1], "strict", ordered=True)
    assert not execution_accuracy(gold, gold[:2], "strict")
    assert not execution_accuracy(gold, [row[::-1] for row in gold], "strict")


def test_any_of_several_golds_may_match() -> None:
    golds = [[(1,)], [(1, 2)]]
    assert any_gold(golds, [(2, 1)], "sql_eval")
    assert not any_gold(golds, [(3,)], "sql_eval")
    with pytest.raises(BadInput, match="No gold"):
        any_gold([], [(1,)], "sql_eval")


def test_sql_eval_rounds_floats_but_keeps_rows_together() -> None:
    assert execution_accuracy([("x", 1.004)], [("x", 1.0)], "sql_eval")
    assert not execution_accuracy([("x", 1), ("y", 2)], [("x", 2), ("y", 1)], "sql_eval")


def test_a_rule_says_how_queries_are_run_and_when_order_counts() -> None:
    gold = "SELECT DISTINCT a FROM t ORDER BY a"
    assert "DISTINCT" not in RULES["spider"].prepare(gold)
    assert RULES["spider-distinct"].prepare(gold) == gold
    assert RULES["spider"].ordered(gold) and RULES["strict"].ordered(gold)
    inner = "SELECT a FROM (SELECT a FROM t ORDER BY a LIMIT 3)"
    assert RULES["spider"].ordered(inner) and not RULES["strict"].ordered(inner)
    assert not RULES["bird"].ordered(gold)

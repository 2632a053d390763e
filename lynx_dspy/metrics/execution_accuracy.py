"""Execution accuracy (EX): does the prediction's result equal a gold result, by a named rule?

A rule is an entry of `RULES`. It also says what the benchmark does to queries before running them
(`prepare`) and when the gold's row order counts (`ordered`), since both belong to the same
official script.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.metrics import comparison, queries
from lynx_dspy.values import Row

if TYPE_CHECKING:
    import pandas as pd

Rows = Sequence[Row]
Conditions = Sequence[int] | Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Terms:
    """What a comparison may depend on beside the two results.

    `ordered`: the gold's row order counts. `condition_cols`: indexes of the gold columns that must
    be found, all of them if empty. `ignore_order`: rows may stand in any order.
    """

    ordered: bool = False
    condition_cols: tuple[int, ...] = ()
    ignore_order: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One benchmark's idea of a correct result.

    `rows` compares two sequences of rows, `frames` two pandas frames read from CSV: a rule has one
    of them. `conditions(condition_cols, golds, suffixed)` gives each gold its own list.
    """

    source: str
    rows: Callable[[Rows, Rows, Terms], bool] | None = None
    frames: Callable[[pd.DataFrame, pd.DataFrame, Terms], bool] | None = None
    prepare: Callable[[str], str] = queries.as_is
    ordered: Callable[[str], bool] = queries.never_ordered
    conditions: Callable[[Conditions, int, bool], list[tuple[int, ...]]] | None = None
    failed_gold_is_wrong: bool = False


def _same_set(gold: Rows, pred: Rows, terms: Terms) -> bool:
    return comparison.same_set(gold, pred)


def _same_rows(gold: Rows, pred: Rows, terms: Terms) -> bool:
    return comparison.same_rows(gold, pred, terms.ordered)


def _same_up_to_columns(gold: Rows, pred: Rows, terms: Terms) -> bool:
    return comparison.same_up_to_columns(gold, pred, terms.ordered)


def _contains_columns(gold: Rows, pred: Rows, terms: Terms) -> bool:
    return comparison.contains_columns(gold, pred)


def _matches(gold: pd.DataFrame, pred: pd.DataFrame, terms: Terms) -> bool:
    from lynx_dspy.metrics import frames

    return frames.matches(gold, pred, terms.condition_cols, terms.ignore_order)


def _matches_by_row(gold: pd.DataFrame, pred: pd.DataFrame, terms: Terms) -> bool:
    from lynx_dspy.metrics import frames

    return frames.matches_by_row(gold, pred, terms.condition_cols, terms.ignore_order)


def honoured_conditions(cols: Conditions, golds: int, suffixed: bool) -> list[tuple[int, ...]]:
    """Nested lists go with their file; a flat list holds for every gold.

    >>> honoured_conditions([0, 2], 2, suffixed=True)
    [(0, 2), (0, 2)]
    >>> honoured_conditions([[0], [1]], 2, suffixed=True)
    [(0,), (1,)]
    """
    flat = tuple(c for c in cols if isinstance(c, int))
    if flat or not cols or list(cols) == [[]]:
        return [flat] * golds
    return [tuple(c) for c in cols if not isinstance(c, int)]


def official_conditions(cols: Conditions, golds: int, suffixed: bool) -> list[tuple[int, ...]]:
    """As the official script, which reads a flat list of a single `<id>_a.csv` as a nested one.

    Its condition is then the list's first number, and 0 counts as no condition at all.

    >>> official_conditions([1, 2], 1, suffixed=True), official_conditions([0], 1, suffixed=True)
    ([(1,)], [()])
    >>> official_conditions([1, 2], 1, suffixed=False)
    [(1, 2)]
    """
    first = cols[0] if cols else None
    if golds == 1 and suffixed and isinstance(first, int):
        return [(first,) if first else ()]
    return honoured_conditions(cols, golds, suffixed)


RULES: dict[str, Rule] = {
    "bird": Rule(
        source="BIRD Mini-Dev, evaluation_ex.py: the sets of rows are equal",
        rows=_same_set,
        failed_gold_is_wrong=True,
    ),
    "spider": Rule(
        source="Spider test-suite-sql-eval, exec_eval.py, DISTINCT stripped (its default)",
        rows=_same_up_to_columns,
        prepare=queries.spider_form,
        ordered=queries.mentions_order,
    ),
    "spider-distinct": Rule(
        source="Spider test-suite-sql-eval, exec_eval.py --keep_distinct",
        rows=_same_up_to_columns,
        prepare=queries.join_operators,
        ordered=queries.mentions_order,
    ),
    "spider2": Rule(
        source="Spider 2.0-Lite, evaluation_suite/evaluate.py, its indexing bug included",
        frames=_matches,
        conditions=official_conditions,
    ),
    "spider2-fixed": Rule(
        source="as spider2, with rows kept together and condition lists honoured",
        frames=_matches_by_row,
        conditions=honoured_conditions,
    ),
    "sql_eval": Rule(
        source="defog sql-eval: gold's columns are among the predicted ones, rows as a bag",
        rows=_contains_columns,
    ),
    "strict": Rule(
        source="ours: the same rows as a bag, the same column order, row order where gold sorts",
        rows=_same_rows,
        ordered=queries.orders_result,
    ),
}


def rule_named(name: str) -> Rule:
    """The rule of this name. Raises `UnknownName`."""
    if name not in RULES:
        raise UnknownName("rule", name, RULES)
    return RULES[name]


def execution_accuracy(
    gold: Rows | pd.DataFrame | None,
    pred: Rows | pd.DataFrame | None,
    rule: str = "bird",
    *,
    ordered: bool = False,
    condition_cols: Sequence[int] = (),
    ignore_order: bool = False,
) -> bool:
    """Whether `pred` equals `gold` by `rule`, one of `RULES`.

    Results are sequences of row tuples; the spider2 rules take pandas frames as read from CSV. None
    stands for a query that failed: a failed prediction is wrong. A failed gold cannot be judged and
    raises `BadInput`, except by `bird`, whose official script counts it as wrong. `ordered` is
    `RULES[rule].ordered(gold_sql)`. Raises `UnknownName` for a rule that is not there.

    >>> execution_accuracy([(1, "a")], [("a", 1)], rule="bird")
    False
    >>> execution_accuracy([(1, "a")], [("a", 1)], rule="spider")
    True
    """
    chosen = rule_named(rule)
    if gold is None and not chosen.failed_gold_is_wrong:
        raise BadInput(f"The gold query has no result, so rule {rule!r} cannot judge; repair it.")
    if gold is None or pred is None:
        return False
    terms = Terms(ordered, tuple(condition_cols), ignore_order)
    if isinstance(gold, Sequence) and isinstance(pred, Sequence) and chosen.rows:
        return chosen.rows(gold, pred, terms)
    if not isinstance(gold, Sequence) and not isinstance(pred, Sequence) and chosen.frames:
        return chosen.frames(gold, pred, terms)
    wanted = "pandas frames as read from CSV" if chosen.frames else "sequences of row tuples"
    raise BadInput(
        f"Rule {rule!r} compares {wanted}, got {type(gold).__name__} and {type(pred).__name__}."
    )


def any_gold(
    golds: Sequence[Rows | pd.DataFrame | None],
    pred: Rows | pd.DataFrame | None,
    rule: str = "bird",
    *,
    ordered: bool = False,
    condition_cols: Conditions = (),
    ignore_order: bool = False,
    suffixed: bool = True,
) -> bool:
    """Whether `pred` equals any of the acceptable golds by `rule`.

    `condition_cols` may hold one list of indexes, or one list a gold; golds without one of their
    own are not compared, as in the official script. `suffixed` says that the golds come from files
    `<id>_a.csv`, `<id>_b.csv` ... and not from a lone `<id>.csv`. Raises as `execution_accuracy`,
    and `BadInput` without any gold.

    >>> any_gold([[(1,)], [(2,)]], [(2, "more")], rule="sql_eval")
    True
    """
    if not golds:
        raise BadInput("No gold result was given; a question needs one or more to be judged.")
    share = rule_named(rule).conditions or honoured_conditions
    return any(
        execution_accuracy(
            gold, pred, rule, ordered=ordered, condition_cols=cols, ignore_order=ignore_order
        )
        for gold, cols in zip(golds, share(condition_cols, len(golds), suffixed), strict=False)
    )

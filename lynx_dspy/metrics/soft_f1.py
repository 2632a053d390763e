"""Soft-F1: partial credit for results that are nearly right. Two measures share the name.

`soft_f1` is the official BIRD Mini-Dev measure (`evaluation_f1.py`), `soft_f1_cells` the one that
the LYNX paper defines (section VII-D). They can differ widely: the first pairs rows by position, so
the right rows in another order can score 0; the second forgets rows altogether, so the right cells
in the wrong rows score 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from lynx_dspy.errors import BadInput
from lynx_dspy.metrics.comparison import Cells, cells
from lynx_dspy.values import Row


def soft_f1(gold: Sequence[Row] | None, pred: Sequence[Row] | None) -> float:
    """Official BIRD Soft-F1 of two results, in [0, 1].

    Duplicate rows are dropped, the first of them kept; then row i is compared with row i. Of a gold
    row of w cells, predicted cells found in it count 1/w as true positives, predicted cells not in
    it 1/w as false positives, gold cells not in the predicted row 1/w as false negatives. A gold
    row without a partner is one false negative, a surplus predicted row one false positive. Two
    empty results score 1; a query that failed (None) scores 0, on either side.

    >>> soft_f1([(1, "a"), (2, "b")], [(1, "a", 9), (2, "b", 9)])
    0.8
    """
    if gold is None or pred is None:
        return 0.0
    gold_rows = list(dict.fromkeys(cells(gold)))
    pred_rows = list(dict.fromkeys(cells(pred)))
    if not gold_rows and not pred_rows:
        return 1.0
    shares = [_row_shares(g, p) for g, p in zip(gold_rows, pred_rows, strict=False)]
    true = sum(share[0] for share in shares)
    surplus = sum(share[1] for share in shares) + max(0, len(pred_rows) - len(gold_rows))
    missed = sum(share[2] for share in shares) + max(0, len(gold_rows) - len(pred_rows))
    return _f1(true, surplus, missed)


def soft_f1_cells(gold: Sequence[Row] | None, pred: Sequence[Row] | None) -> float:
    """Soft-F1 of the LYNX paper (VII-D): F1 of the two sets of cell values, in [0, 1].

    Rows, columns and repetitions do not count. Two empty results score 1, a failed prediction
    (None) scores 0; a failed gold cannot be judged and raises `BadInput`.

    >>> soft_f1_cells([(1, "a"), (2, "b")], [(1, "b"), (2, "a")])
    1.0
    """
    if gold is None:
        raise BadInput("The gold query has no result, so soft_f1_cells cannot judge; repair it.")
    if pred is None:
        return 0.0
    wanted = {value for row in cells(gold) for value in row}
    had = {value for row in cells(pred) for value in row}
    if not wanted and not had:
        return 1.0
    return _f1(len(wanted & had), len(had - wanted), len(wanted - had))


def _row_shares(gold: Cells, pred: Cells) -> tuple[float, float, float]:
    """Matched, surplus and missed cells, each as a share of the gold row's width."""
    matched = sum(value in gold for value in pred)
    missed = sum(value not in pred for value in gold)
    return matched / len(gold), (len(pred) - matched) / len(gold), missed / len(gold)


def _f1(true: float, surplus: float, missed: float) -> float:
    precision = true / (true + surplus) if true + surplus else 0.0
    recall = true / (true + missed) if true + missed else 0.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0

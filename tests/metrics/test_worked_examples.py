"""Agreement with values that the benchmarks' own scripts gave."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lynx_dspy.errors import BadInput
from lynx_dspy.metrics import RULES, any_gold, execution_accuracy, soft_f1, soft_f1_cells
from lynx_dspy.metrics.frames import read_csv

CASES = Path(__file__).parents[2] / "../shared/data/worked_examples"

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="no shared worked examples here")


def cases(name: str) -> list[Any]:
    path = CASES / name
    found = json.loads(path.read_text()) if path.exists() else []
    listed = found["examples"] if isinstance(found, dict) else found
    return [pytest.param(case, id=case["name"]) for case in listed]


def rows(listed: Any) -> list[tuple[Any, ...]] | None:
    """Rows as tuples; None for a query that fails."""
    if isinstance(listed, str):
        return None
    return [
        tuple(bytes.fromhex(c["bytes"]) if isinstance(c, dict) else c for c in row)
        for row in listed
    ]


@pytest.mark.parametrize("case", cases("bird_ex_softf1.json"))
def test_bird(case: dict[str, Any]) -> None:
    gold, pred = rows(case["gold"]), rows(case["pred"])
    assert execution_accuracy(gold, pred, rule="bird") == case["bird_ex"]
    assert soft_f1(gold, pred) == pytest.approx(case["bird_soft_f1"])
    if case["paper_vii_d_soft_f1"] is None:
        with pytest.raises(BadInput, match="repair"):
            soft_f1_cells(gold, pred)
    else:
        assert soft_f1_cells(gold, pred) == pytest.approx(case["paper_vii_d_soft_f1"])


@pytest.mark.parametrize("case", cases("spider1_ex.json"))
def test_spider(case: dict[str, Any]) -> None:
    db = sqlite3.connect(":memory:")
    db.executescript(json.loads((CASES / "spider1_ex.json").read_text())["setup"])
    name = "spider-distinct" if case["keep_distinct"] else "spider"
    rule = RULES[name]

    def run(sql: str) -> list[tuple[Any, ...]] | None:
        try:
            return db.execute(rule.prepare(sql)).fetchall()
        except sqlite3.Error:
            return None

    gold, pred = run(case["gold_sql"]), run(case["pred_sql"])
    ordered = rule.ordered(case["gold_sql"])
    if isinstance(case["spider1_ex"], str):
        with pytest.raises(BadInput):
            execution_accuracy(gold, pred, name, ordered=ordered)
    else:
        assert execution_accuracy(gold, pred, name, ordered=ordered) == case["spider1_ex"]


@pytest.mark.parametrize("case", cases("spider2_lite_ex.json"))
def test_spider2(case: dict[str, Any]) -> None:
    golds = case["gold_csv"]
    by_suffix = golds if isinstance(golds, dict) else {"_a": golds}
    got = any_gold(
        [read_csv(text) for text in by_suffix.values()],
        read_csv(case["pred_csv"]),
        rule="spider2",
        condition_cols=case["condition_cols"],
        ignore_order=case["ignore_order"],
        suffixed="" not in by_suffix,
    )
    assert got == case["spider2_lite_score"]

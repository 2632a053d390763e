"""Two runs beside each other: pairs, not means."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

import lynx_dspy as lynx
from lynx_dspy.errors import BadInput
from lynx_dspy.optimize.compare import compare_runs


def test_pairs_of_questions_are_compared(counting: ModuleType, tmp_path: Path) -> None:
    examples = counting.questions(tmp_path, 28)
    wrong = {k for k in range(28) if counting.mostly_right(k) != f"```sql\n{counting.gold(k)}\n```"}
    for name, say in (
        ("first", counting.mostly_right),
        ("second", lambda k: f"```sql\n{counting.gold(k)}\n```"),
    ):
        lm = counting.model(counting.CountingEngine(say))
        lynx.evaluate(counting.program(), examples, lm=lm, out=tmp_path / name)
    found = compare_runs(tmp_path / "first", tmp_path / "second")
    ex = found.scores["ex"]
    assert (found.n, ex.gained, ex.lost) == (28, len(wrong), 0)
    assert ex.change.value == pytest.approx(len(wrong) / 28)
    assert ex.change.low > 0
    assert ex.p == pytest.approx(2 / 2 ** len(wrong))
    assert found.scores["soft_f1"].p is None
    assert found.tokens.value < 0


def test_runs_on_other_questions_are_refused(counting: ModuleType, tmp_path: Path) -> None:
    lm = counting.model(counting.CountingEngine())
    for n in (2, 3):
        lynx.evaluate(
            counting.program(), counting.questions(tmp_path, n), lm=lm, out=tmp_path / str(n)
        )
    with pytest.raises(BadInput, match="ran on other questions"):
        compare_runs(tmp_path / "2", tmp_path / "3")

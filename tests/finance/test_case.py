"""The paper's finance case (V-A): Alpha#36 by a written program, from question to factor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dspy
import pandas as pd
import pytest

import lynx_dspy as lynx
from lynx_dspy.config import LynxConfig
from lynx_dspy.engines.base import Database
from lynx_dspy.finance import knowledge
from lynx_dspy.finance.alphas import alpha
from lynx_dspy.finance.compare import compare_factors
from lynx_dspy.finance.sample import write_sample
from lynx_dspy.values import Limits, Outcome

QUESTION = "Compute Alpha#36 for every stock and date."
PROGRAM = (Path(__file__).parent / "programs" / "alpha36.txt").read_text("utf-8")
WITHOUT_TS_RANK = PROGRAM.replace(
    "reversal = (-returns).shift(6).rolling(5).rank(pct=True)",
    "reversal = ts_rank((-returns).shift(6), 5)",
)


def fenced(program: str) -> str:
    return f"Analysis: pivots the prices and combines five ranks.\n```python\n{program}\n```"


def factor_of(outcome: Outcome) -> pd.DataFrame:
    return pd.DataFrame(list(outcome.rows), columns=list(outcome.columns))


LIMITS = Limits(max_rows=50_000)
CONFIG = LynxConfig(limits=LIMITS, adapter="fenced", embedding_links=False)


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Alpha#36 sees 200 dates back, so it has values on the last 40."""
    folder = tmp_path_factory.mktemp("case")
    write_sample(folder, stocks=12, dates=240, seed=3)
    return folder


@pytest.fixture(scope="module")
def tables(market: Path) -> Iterator[Database]:
    with lynx.connect(f"frames:///{market}") as database:
        yield database


def test_a_plain_pandas_program_agrees_with_the_reference(tables: Database, market: Path) -> None:
    outcome = tables.execute(PROGRAM, LIMITS)
    assert outcome.ran, outcome.error
    found = compare_factors(factor_of(outcome), alpha(36, market))
    assert found.agrees, found
    assert found.max_abs_difference < 1e-9
    assert found.coverage == 1.0


def test_a_program_of_a_wrong_window_does_not_agree(tables: Database, market: Path) -> None:
    outcome = tables.execute(PROGRAM.replace("rolling(15)", "rolling(16)"), LIMITS)
    found = compare_factors(factor_of(outcome), alpha(36, market))
    assert not found.agrees
    assert found.max_abs_difference > 0.1


def test_from_the_question_over_a_failing_program_to_the_factor(
    tables: Database, market: Path, scripted: Callable[..., tuple[dspy.LM, Any]]
) -> None:
    lm, engine = scripted(
        {
            "generator.unknown_terms": [{"terms": []}],
            "generator.align": [{"links": ["open -> prices.open", "close -> prices.close"]}],
            "generator.distill": [{"semantic": "Alpha#36 is a sum of ranks", "structural": ""}],
            "generator.intent": [{"intent": "compute Alpha#36 for each code and date"}],
            "generator.ground": [{"grounding": "prices: date, code, open, close, volume, amount"}],
            "generator.formulate": [fenced(WITHOUT_TS_RANK)],
            "critic.reflect": [{"summary": "ts_rank is no function of pandas"}],
            "critic.diagnose": [{"suggestion": "write ts_rank as rolling(5).rank(pct=True)"}],
            "reviser.repair": [fenced(PROGRAM)],
            "verifier.explain": [{"explanation": "sums five weighted ranks by date and code"}],
            "verifier.compare": [{"consistent": True, "mismatch": ""}],
        }
    )
    program = lynx.Lynx(language="python", config=CONFIG)
    with dspy.context(lm=lm):
        answer = program(
            question=QUESTION,
            database=tables,
            documents=knowledge.documents(embedder=None),
            sources=[knowledge.glossary()],
        )
    assert "ts_rank" in answer.attempts[0].outcome.error
    assert answer.attempts[-1].source == "repair"
    assert answer.outcome.ran, answer.outcome.error
    assert compare_factors(factor_of(answer.outcome), alpha(36, market)).agrees
    asked = "\n".join(engine.prompts["generator.distill"])
    for meant in ("2.21 * rank(", "ts_rank(x, d)", "amount.rolling(20)", "x.shift(d)"):
        assert meant in asked

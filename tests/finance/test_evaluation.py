from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynx_dspy.errors import BadInput, LynxError
from lynx_dspy.finance.alphas import alpha, formula, formulas
from lynx_dspy.finance.evaluation import evaluate, fields_of
from lynx_dspy.finance.formula import FormulaError
from lynx_dspy.finance.panel import Panel

CLOSE = {"A": [1.0, 3.0, np.nan, 4.0], "B": [5.0, 6.0, 4.0, 8.0]}
SMALL = Panel.from_wide(
    {
        "close": pd.DataFrame(CLOSE, index=pd.bdate_range("2024-01-01", periods=4)),
        "open": pd.DataFrame(
            {"A": [1.0] * 4, "B": [2.0] * 4}, pd.bdate_range("2024-01-01", periods=4)
        ),
    },
    {"sector": pd.Series({"A": "x", "B": "y"})},
)
CALLS = ("rank(", "delta(", "min(", "scale(", "indneutralize(")
PIECES = st.sampled_from(
    [*CALLS, "close", "open", "IndClass.sector", "1", "2.5", "||", "&&", *"+-*/^<>?:(),"]
)


def cells(text: str) -> list[list[float]]:
    return evaluate(text, SMALL).to_numpy().tolist()


@pytest.mark.parametrize(
    ("text", "last_row"),
    [
        ("close - open", [3.0, 6.0]),
        ("2 ^ 3", [8.0, 8.0]),
        ("close > 5 ? 1 : -1", [-1.0, 1.0]),
        ("(close > 5) || (open == 1)", [1.0, 1.0]),
        ("close > 5 && open == 1", [0.0, 0.0]),
        ("max(close, open * 3)", [4.0, 8.0]),
        ("Scale(close, 3)", [1.0, 2.0]),
        ("rank(close)", [0.5, 1.0]),
        ("indneutralize(close, IndClass.sector)", [0.0, 0.0]),
        ("delay(close, 2 + 1)", [1.0, 5.0]),
        ("sum(7, 2)", [14.0, 14.0]),
        ("SignedPower(open - close, 2)", [-9.0, -36.0]),
        ("1 / (open - open)", [np.inf, np.inf]),
    ],
)
def test_signs_and_functions_compute_what_they_say(text: str, last_row: list[float]) -> None:
    assert cells(text)[-1] == last_row


def test_a_number_makes_min_and_max_windows_as_the_paper_defines_them() -> None:
    assert cells("max(close, 2.7)") != cells("max(close, open)")
    assert np.array_equal(cells("max(close, 2.7)"), cells("ts_max(close, 2)"), equal_nan=True)


def test_a_missing_cell_stays_missing_through_comparisons_and_choices() -> None:
    got = evaluate("(close < 4) ? 1 : 0", SMALL)["A"]
    assert got.isna().tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "dellta(close, 1)",
            "column 1: unknown function 'dellta'. Did you mean 'delta'? Known: rank,",
        ),
        (
            "rank(clsoe)",
            "column 6: Unknown field 'clsoe'. Did you mean 'close'? Known: close, open",
        ),
        ("rank(close, 1)", "column 1: rank(x) takes 1 arguments, got 2"),
        ("delta(close)", "column 1: delta(x, d) takes 2 arguments, got 1"),
        ("delta(close, open)", "column 14: a number of days is a constant, not a panel"),
        ("delta(close, -1)", "A number of days is at least 0; got -1"),
        ("ts_rank(close, 0.5)", "column 16: ts_rank(x, d): A number of days is at least 1"),
        ("delta(close, 1 / 0)", "A number of days is at least 0; got inf"),
        ("indneutralize(close, 3)", "column 22: a class such as IndClass.industry is missing"),
        ("indneutralize(close, IndClass.moon)", "Unknown class 'moon'. Known: sector"),
        ("rank(vwap)", "Unknown field 'vwap'"),
        ("max(close, 0)", "ts_max(x, d): A number of days is at least 1; got 0"),
    ],
)
def test_what_cannot_be_computed_is_told_before_anything_is(text: str, said: str) -> None:
    with pytest.raises(FormulaError) as told:
        evaluate(text, SMALL)
    assert said in str(told.value)
    assert "\n" not in str(told.value)


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_a_formula_of_any_pieces_gives_cells_of_the_panel_or_a_formula_error(text: str) -> None:
    try:
        assert evaluate(text, SMALL).shape == SMALL.shape
    except FormulaError as error:
        assert isinstance(error, LynxError)


@pytest.mark.parametrize("number", formulas())
def test_each_published_alpha_runs_over_the_panel(number: int, panel: Panel) -> None:
    got = alpha(number, panel)
    assert got.shape == panel.shape
    # Short windows of ranks are often constant, and #96 needs forty in a row that are not.
    assert got.notna().any().any() or number == 96


def test_an_alpha_that_is_none_is_told() -> None:
    with pytest.raises(BadInput, match="no alpha 102"):
        formula(102)


def test_of_a_folder_only_what_a_formula_needs_is_read(market: Path, panel: Panel) -> None:
    from_disk = alpha(48, market)
    assert from_disk.equals(alpha(48, panel))
    assert "indclass.subindustry" in fields_of(formula(48))
    assert set(Panel.read(market, {"close"}).fields) == {"close"}


def test_a_long_frame_gives_what_the_panel_gives(panel: Panel, market: Path) -> None:
    long = pd.read_csv(market / "prices.csv").sample(frac=1, random_state=1)
    assert evaluate("rank(delta(close, 1))", long).equals(evaluate("rank(delta(close, 1))", panel))

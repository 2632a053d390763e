"""The notes on pandas are true: every example runs, and a need finds its entry."""

from __future__ import annotations

import ast

import duckdb
import numpy as np
import pandas as pd
import pytest

from lynx_dspy.engines.python.guard import refusal
from lynx_dspy.grounding.dialects import page, syntax_for

T = pd.DataFrame(
    {
        "id": [1, 2, 3],
        "d": pd.to_datetime(["2024-01-05", "2024-02-05", "2024-02-07"]),
        "ts": pd.to_datetime(["2024-01-06 10:00", "2024-02-06 11:00", "2024-02-09 12:00"]),
        "s": ["x-1", "y-2", None],
        "g": ["a", "b", "a"],
        "x": [1.0, 2.5, None],
        "a": [1, 2, 3],
    }
)
U = pd.DataFrame({"id": [1, 2], "name": ["Ada", "Bo"], "t_id": [1, 1]})
EXAMPLES = [
    pytest.param(example, id=f"{entry.title}-{place}")
    for entry in page("pandas")
    for place, example in enumerate(entry.examples)
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs(example: str) -> None:
    if example.startswith((".", "and", "or", "not", "t[mask]")) or example[-1:] == "=":
        pytest.skip("a part of an expression")
    if "(" not in example and "[" not in example:
        pytest.skip("an argument")
    scope = {
        "t": T.copy(), "u": U.copy(), "np": np, "pd": pd,
        "sql": lambda query: duckdb.sql(query.replace("FROM t", "FROM T")).df(),
    }  # fmt: skip
    exec(compile(ast.parse(example), example, "exec"), scope)
    assert refusal(example) is None


def test_most_examples_are_run() -> None:
    whole = [p for p in EXAMPLES if str(p.values[0]).startswith(("t", "np", "pd", "~", "("))]
    assert len(whole) > 45


@pytest.mark.parametrize(
    ("need", "title"),
    [
        ("What share of orders is late?", "Share and ratio"),
        ("KeyError: customer_id_x", "Joins"),
        ("The truth value of a Series is ambiguous", "Filter"),
        ("three-month moving average", "Rolling windows"),
        ("the program ended without assigning `result`", "The answer"),
        ("the delta between a day and the previous one", "Lag and change"),
    ],
)
def test_a_need_finds_its_entry(need: str, title: str) -> None:
    assert f"{title}: " in syntax_for("pandas", need, 300)

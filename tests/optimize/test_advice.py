"""Each stage is told what came of its own call, by names and clauses alone."""

from __future__ import annotations

from typing import Any

import pytest

from lynx_dspy.datasets.examples import example
from lynx_dspy.optimize.advice import advice
from lynx_dspy.optimize.harvest import Case
from lynx_dspy.values import Column, Schema, Table

GOLD = "SELECT COUNT(*) FROM numbers WHERE n >= 4"
SCHEMA = Schema("sqlite", (Table("numbers", (Column("n", "INTEGER"),)),))


def attempt(code: str, right: bool, round_: int = 0, error: str = "") -> dict[str, Any]:
    return {
        "round": round_,
        "source": "repair" if round_ else "formulate",
        "code": code,
        "status": "error" if error else "ok",
        "error": error,
        "failure_class": "schema" if error else None,
        "right": right,
    }


def case(*attempts: dict[str, Any], calls: Any = (), scored: bool = True) -> Case:
    """A question whose last attempt is the answer."""
    end = attempts[-1]
    clips = {"columns": ["n"], "rows": [["1"]], "row_count": 1, "error": ""}
    record: Any = {
        "code": end["code"],
        "status": end["status"],
        "error": end["error"],
        "scores": {"ex": float(end["right"]), "soft_f1": 0.0} if scored else {},
        "attempts": list(attempts),
        "failure": None
        if end["right"]
        else {
            "kind": "values",
            "difference": "It reads the table `other` without need.",
            "gold_code": GOLD,
            "gold": clips,
            "predicted": {**clips, "row_count": 3},
        },
    }
    trace = {"calls": [{"stage": s, "inputs": i, "outputs": o} for s, i, o in calls]}
    one = example(
        id="q",
        question="?",
        gold_sql=[GOLD],
        db="d",
        database="d.sqlite",
        dialect="sqlite",
        rule="bird",
    )
    return Case(one, record, trace)


def test_a_right_program_is_told_so() -> None:
    told = advice(case(attempt(GOLD, True)), "generator.formulate", {"code": GOLD}, SCHEMA)
    assert told == "This program is right. The final answer is right."


def test_a_wrong_program_is_told_what_differs() -> None:
    wrong = "SELECT COUNT(*) FROM numbers, other"
    told = advice(case(attempt(wrong, False)), "generator.formulate", {"code": wrong}, SCHEMA)
    assert "runs, but its result is wrong" in told
    assert "`other`" in told and "3 rows where 1 are expected" in told
    assert GOLD not in told


def test_a_formulation_that_was_mended_is_told_of_its_own_faults() -> None:
    first = "SELECT COUNT(*) FROM numbers WHERE n >= 5"
    mended = case(attempt(first, False), attempt(GOLD, True, 1))
    told = advice(mended, "generator.formulate", {"code": first}, SCHEMA)
    assert "WHERE should not hold" in told and told.endswith("The final answer is right.")


def test_no_program_is_told() -> None:
    told = advice(case(attempt("", False)), "generator.formulate", {"code": ""}, SCHEMA)
    assert told == "The reply holds no program. The final answer is wrong: it holds no program."


def test_a_grounding_is_told_of_names_it_leaves_out() -> None:
    of = case(attempt(GOLD, True))
    short = advice(of, "generator.ground", {"grounding": "the column n"}, SCHEMA)
    assert "leaves out `numbers`." in short
    whole = advice(of, "generator.ground", {"grounding": "numbers.n"}, SCHEMA)
    assert "names all that is needed" in whole


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (attempt(GOLD, True, 1), "The repaired program is right."),
        (
            attempt("x", False, 1, "no such column: m"),
            "The error is still the same: no such column",
        ),
        (attempt("x", False, 1, "no such table: t"), "The repaired program fails: no such table"),
        (attempt("x", False, 1), "The error is gone, but the result is wrong."),
    ],
)
def test_a_repair_and_the_advice_before_it_are_told_of_the_error(after: Any, told: str) -> None:
    calls = [
        ("critic.diagnose", {}, {"suggestion": "use n"}),
        ("reviser.repair", {}, {"code": after["code"]}),
    ]
    of = case(attempt("SELECT m", False, 0, "no such column: m"), after, calls=calls)
    assert advice(of, "reviser.repair", {"code": after["code"]}, SCHEMA).startswith(told)
    assert advice(of, "critic.diagnose", {"suggestion": "use n"}, SCHEMA).startswith(told)


@pytest.mark.parametrize(("verdict", "mistaken"), [(True, False), (False, True)])
def test_a_verdict_is_told_the_truth(verdict: bool, mistaken: bool) -> None:
    calls = [
        ("verifier.explain", {"program": GOLD}, {"explanation": "counts"}),
        ("verifier.compare", {}, {"consistent": verdict, "mismatch": ""}),
    ]
    of = case(attempt(GOLD, True), calls=calls)
    for stage, outputs in (("verifier.explain", {"explanation": "counts"}), calls[1][::2]):
        told = advice(of, stage, dict(outputs), SCHEMA)
        assert "and it is right." in told
        assert ("That verdict was a mistake." in told) == mistaken


def test_what_could_not_be_judged_teaches_nothing() -> None:
    told = advice(case(attempt("x", False), scored=False), "generator.formulate", {}, SCHEMA)
    assert "could not be judged" in told


def test_without_a_schema_nothing_is_compared() -> None:
    of = case(attempt("y", False), attempt("x", False, 1))
    assert advice(of, "generator.formulate", {"code": "y"}, None).startswith("This program runs")
    assert advice(of, "generator.ground", {"grounding": ""}, None).startswith("The final answer")

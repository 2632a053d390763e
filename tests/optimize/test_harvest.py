"""Demos come from calls that did well, and show the text that ran."""

from __future__ import annotations

import random
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from lynx_dspy.config import EMBEDDED, FULL, STAGES
from lynx_dspy.engines.base import Database
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.optimize import harvest
from lynx_dspy.optimize.demos import (
    CARRIED,
    Demo,
    carried,
    cut,
    shape_of,
    unlike,
    varied,
)
from lynx_dspy.optimize.harvest import Case, demos_of, lessons, quietly
from lynx_dspy.optimize.recipes import Harvest
from lynx_dspy.values import Schema

GOLD = "SELECT name FROM customers WHERE city = 'Oslo'"


def attempt(code: str, right: bool, **changes: Any) -> dict[str, Any]:
    plain = {"round": 0, "source": "formulate", "status": "ok", "failure_class": None}
    return {**plain, "code": code, "right": right, **changes}


def call(stage: str, inputs: dict[str, Any] | None = None, **outputs: Any) -> dict[str, Any]:
    return {"stage": stage, "inputs": inputs or {}, "outputs": outputs}


def case(
    calls: list[dict[str, Any]], attempts: list[dict[str, Any]], right: bool, **record: Any
) -> Case:
    example = SimpleNamespace(id="q", question="Who lives in Oslo?", gold_sql=(GOLD,), db="shop")
    failure = None if right else {"gold_code": GOLD}
    found = {
        "scores": {"ex": float(right)}, "attempts": attempts, "failure": failure,
        "code": attempts[-1]["code"] if attempts else "", "status": "ok",
    }  # fmt: skip
    trace = {
        "database": "shop", "dialect": "sqlite", "intent": "people", "grounding": "CREATE ...",
        "calls": calls,
    }  # fmt: skip
    return Case(cast(Any, example), cast(Any, found | record), trace)


def labelled(one: Case, **recipe: Any) -> list[tuple[str, str]]:
    return [(lesson.stage, lesson.label) for lesson in lessons(one, Harvest(**recipe))]


FAILING = attempt("SELECT nam", False, status="error", failure_class="schema")


def test_the_mended_text_is_taught_not_the_one_that_was_written() -> None:
    attempts = [FAILING, attempt("SELECT name", True, source="static")]
    one = case([call("generator.formulate", code="SELECT nam", analysis="a")], attempts, True)
    [lesson] = lessons(one, Harvest(labels="harvested"))
    assert lesson.outputs["code"] == "SELECT name"
    assert lesson.inputs["question"] == "Who lives in Oslo?"
    assert lesson.kind == "schema"


def test_a_candidate_that_was_right_is_taught_also_where_another_was_chosen() -> None:
    attempts = [attempt("SELECT right", True, source="sample"), attempt("SELECT 1", False)]
    calls = [
        call("generator.formulate", code="SELECT 1", analysis="wrong words"),
        call("generator.formulate", code="SELECT right", analysis="right words"),
    ]
    [lesson] = lessons(case(calls, attempts, False), Harvest(labels="harvested"))
    assert lesson.outputs == {"code": "SELECT right", "analysis": "right words"}


def test_a_program_that_was_repaired_teaches_no_formulation() -> None:
    repaired = attempt("SELECT name", True, round=1, source="repair")
    calls = [
        call("generator.formulate", code="SELECT nam"),
        call("critic.diagnose", {"delta": "d"}, suggestion="use name"),
        call("reviser.repair", {"program": "SELECT nam"}, code="SELECT name", analysis="fixed"),
    ]
    found = labelled(case(calls, [FAILING, repaired], True), labels="harvested")
    assert found == [("reviser.repair", "harvested"), ("critic.diagnose", "harvested")]


@pytest.mark.parametrize(
    ("before", "after", "right"),
    [
        (FAILING, attempt("B", False, round=1, source="repair", status="error"), False),
        (FAILING, attempt("B", False, round=1, source="repair"), False),
        (attempt("A", False), attempt("B", True, round=1, source="repair"), True),
    ],
)
def test_repairs_that_fixed_nothing_teach_nothing(
    before: dict[str, Any], after: dict[str, Any], right: bool
) -> None:
    calls = [call("critic.diagnose", suggestion="s"), call("reviser.repair", code="B")]
    assert labelled(case(calls, [before, after], right), labels="harvested") == []


def test_only_advice_before_a_repair_that_worked_is_taught() -> None:
    attempts = [
        FAILING,
        attempt("B", False, round=1, source="repair", status="error", failure_class="syntax"),
        attempt("C", True, round=2, source="repair"),
    ]
    calls = [
        call("critic.diagnose", {"delta": "1"}, suggestion="bad advice"),
        call("reviser.repair", code="B"),
        call("critic.diagnose", {"delta": "2"}, suggestion="good advice"),
        call("reviser.repair", code="C"),
    ]
    found = list(lessons(case(calls, attempts, True), Harvest(labels="harvested")))
    assert [(x.stage, x.kind) for x in found] == [
        ("reviser.repair", "syntax"),
        ("critic.diagnose", "syntax"),
    ]
    assert found[1].outputs["suggestion"] == "good advice"


@pytest.mark.parametrize(
    ("right", "verdict", "taught"),
    [(True, True, True), (False, False, True), (False, True, False), (True, False, False)],
)
def test_verdicts_are_taught_where_they_are_true(right: bool, verdict: bool, taught: bool) -> None:
    calls = [
        call("verifier.explain", {"program": "A"}, explanation="e"),
        call("verifier.compare", {"explanation": "e"}, consistent=verdict, mismatch=""),
    ]
    found = labelled(case(calls, [attempt("A", right)], right), labels="harvested")
    stages = {stage for stage, _ in found} - {"generator.formulate"}
    assert stages == ({"verifier.explain", "verifier.compare"} if taught else set())


@pytest.mark.parametrize(
    ("grounding", "taught"),
    [("customers: name, city = 'Oslo'", True), ("customers: name", False), ("", False)],
)
def test_grounding_is_taught_where_it_names_all_that_the_gold_uses(
    grounding: str, taught: bool
) -> None:
    calls = [call("generator.ground", {"intent": "i"}, grounding=grounding)]
    found = labelled(case(calls, [attempt("A", False)], False), labels="harvested")
    assert (("generator.ground", "harvested") in found) is taught


def test_intent_is_taught_where_the_end_is_right() -> None:
    calls = [call("generator.intent", {"question": "q"}, intent="i")]
    for right in (True, False):
        found = labelled(case(calls, [attempt("A", right)], right), labels="harvested")
        assert (("generator.intent", "harvested") in found) is right


@pytest.mark.parametrize(
    ("labels", "right", "label"),
    [
        ("harvested", False, None),
        ("gold", True, "gold"),
        ("both", True, "harvested"),
        ("both", False, "gold"),
    ],
)
def test_labels_say_whose_programs_are_shown(labels: Any, right: bool, label: str | None) -> None:
    one = case([call("generator.formulate", code="A")], [attempt("A", right)], right)
    assert labelled(one, labels=labels) == ([("generator.formulate", label)] if label else [])


def test_golds_are_explained_by_rule() -> None:
    [lesson] = lessons(case([], [], False), Harvest(labels="gold"))
    assert lesson.outputs["code"] == GOLD
    assert lesson.outputs["analysis"] == "It reads customers, filters the rows."


def test_for_golds_only_what_precedes_the_program_is_asked() -> None:
    assert quietly(EMBEDDED).stages == frozenset()
    assert quietly(FULL).stages == harvest.ASKED_BEFORE_WRITING


def test_a_demo_shows_only_the_schema_that_its_program_uses(shop: Database) -> None:
    schema = abstract(shop)
    text = cut(schema, GOLD, "ddl")
    assert "customers" in text and "name" in text and "city" in text
    assert "orders" not in text and "id " not in text
    assert cut(schema, "no program at all (", "ddl") == ""
    joined = "SELECT c.name FROM customers c JOIN orders o ON o.customer_id = c.id"
    assert "customer_id" in cut(schema, joined, "ddl")
    assert "total_cents" not in cut(schema, joined, "ddl")


def test_demos_are_short(shop: Database) -> None:
    one = case([call("generator.formulate", code=GOLD)], [attempt(GOLD, True)], True)
    cast(Any, one.trace).update(intent="word " * 500)
    schema = abstract(shop)
    [demo] = demos_of([one], Harvest(), EMBEDDED, lambda _: schema)
    assert "intent" not in demo.inputs
    assert demo.outputs == {"code": GOLD}, "the profile leaves the analysis out"
    used, bare = demo.shown("used"), demo.shown("bare")
    assert used.fields["grounding"] == cut(schema, GOLD, "ddl")
    assert "grounding" not in bare.fields
    assert bare.tokens < used.tokens < 120
    assert demos_of([one], Harvest(demo_tokens=20), EMBEDDED, lambda _: schema) == []


def test_every_stage_says_what_its_demos_carry() -> None:
    assert set(CARRIED) == set(STAGES)
    inputs = {"intent": "", "question": "q", "grounding": "long"}
    assert carried("generator.formulate", inputs, 10) == {"question": "q"}


def demo(question: str, code: str, database: str = "shop", kind: str = "") -> Demo:
    return Demo(
        "generator.formulate", {"question": question}, {"code": code}, question, database,
        "harvested", kind, shape=shape_of(code, "sqlite"),
        traits=harvest.traits_of(code, "sqlite"),
    )  # fmt: skip


def test_near_repeats_are_left_out() -> None:
    first = demo("How many customers live in Oslo?", "SELECT COUNT(*) FROM a WHERE b = 1")
    again = demo("How many customers live in Rome?", "SELECT COUNT(*) FROM a WHERE b = 2")
    other = demo("How many customers live in Rome?", "SELECT c FROM a")
    elsewhere = demo("How many customers live in Oslo?", first.outputs["code"], "bank")
    assert unlike([first, again, other, elsewhere], 0.6) == [first, other, elsewhere]


def test_sets_are_varied_seeded_and_within_budget() -> None:
    plain = [demo(f"plain {n}", f"SELECT a{n} FROM t") for n in range(20)]
    rare = [
        demo("grouped", "SELECT a, COUNT(*) FROM t GROUP BY a", "bank"),
        demo("joined", "SELECT a FROM t JOIN u ON t.x = u.x ORDER BY a LIMIT 1"),
    ]
    pool = plain + rare

    def draw(seed: int, size: int = 3, tokens: int = 500) -> list[Demo]:
        return varied(pool, size, tokens, "bare", random.Random(seed), spread=len(pool))

    assert draw(1) == draw(1)
    assert {d.question for d in draw(1)} >= {"grouped", "joined"}
    assert len({d.shape for d in draw(2)}) == 3
    small = draw(3, tokens=60)
    assert sum(d.shown("bare").tokens for d in small) <= 60


def test_traces_and_records_meet_in_a_real_run(counting: ModuleType, tmp_path: Path) -> None:
    from lynx_dspy.optimize.evaluate import evaluate
    from lynx_dspy.optimize.records import read_run

    examples = counting.questions(tmp_path, 8)
    lm = counting.model(counting.CountingEngine())
    with harvest.TraceBook(tmp_path / "run") as book:
        program = harvest.Traced(counting.program(max_rounds=0))
        evaluate(program, examples, lm=lm, out=tmp_path / "run", observe=book.observe)
    records = list(read_run(tmp_path / "run").records())
    found = list(harvest.cases(examples, records, tmp_path / "run"))
    assert [one.example.id for one in found] == [f"q{k}" for k in range(8)]
    schema: Schema | None = None
    config = counting.program().config
    demos = demos_of(found, Harvest(labels="both", likeness=1.1), config, lambda _: schema)
    assert [d.label for d in demos] == [
        "gold" if k % 4 == 1 or k % 7 == 3 else "harvested" for k in range(8)
    ]
    assert [d.outputs["code"] for d in demos] == [counting.gold(k) for k in range(8)]

"""The rubber duck's judgements are read, weighed and corrected in Python."""

from __future__ import annotations

from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy import config
from lynx_dspy.config import LynxConfig
from lynx_dspy.lm.adapter import adapter_for
from lynx_dspy.modules.checklist import Asked, Item, checklist
from lynx_dspy.modules.generator import Draft
from lynx_dspy.modules.verifier import (
    Judged,
    State,
    Verdict,
    Verifier,
    checked,
    read_items,
    weighed,
)
from lynx_dspy.values import Attempt, Column, Knowledge, Link, Outcome, Schema, Status, Table

SCHEMA = Schema("sqlite", (Table("t", (Column("a", "INT"), Column("b", "TEXT"))), Table("u", ())))
QUESTION = "Top 5 of a in Oslo"
LINKS = (Link("oslo", "t", "b", "Oslo"),)
DRAFT = Draft("", Knowledge("", "NOTES b = 'Oslo'", "", LINKS), SCHEMA, "INTENT", "")
ITEMS = (Item(Asked.OUTPUTS, "a"), Item(Asked.TOP_K, "top 5", 5), Item(Asked.GRAIN, "per b"))
TOLD = "Filters: b equals Oslo. Limit: 3 rows."


def judge(
    scripted: Any, code: str, compare: dict[str, Any], threshold: float = 1.0
) -> tuple[Verdict, dict[str, list[str]]]:
    lm, engine = scripted(
        {"verifier.explain": [{"explanation": TOLD}], "verifier.compare": [compare]}
    )
    attempt = Attempt(0, code, Outcome(Status.OK, ("a",), ((1,), (2,))), signals=("SIGNAL",))
    with (
        config.using(LynxConfig(verify_threshold=threshold)),
        dspy.context(lm=lm, adapter=adapter_for(lm, "json")),
    ):
        return Verifier()(QUESTION, DRAFT, attempt), engine.prompts


def reply(consistent: bool, *items: str, mismatch: str = "") -> dict[str, Any]:
    return {"items": list(items), "consistent": consistent, "mismatch": mismatch}


FIVE = "SELECT a FROM t WHERE b = 'Oslo' LIMIT 5"


def test_the_explanation_sees_the_tables_read_and_the_signals_and_no_words_of_the_question(
    scripted: Any,
) -> None:
    _, prompts = judge(scripted, "SELECT a FROM t LIMIT 5", reply(True))
    (explain,) = prompts["verifier.explain"]
    assert "SIGNAL" in explain
    assert "Oslo" not in explain
    assert not any(word in explain for word in ("NOTES", QUESTION, "TABLE u"))
    (compare,) = prompts["verifier.compare"]
    assert "2. top-k: Top 5" in compare
    assert "SIGNAL" in compare


def test_only_a_violated_item_rejects(scripted: Any) -> None:
    fine = reply(True, "1 satisfied", "2 satisfied", "3 unclear")
    assert judge(scripted, FIVE, fine)[0].consistent is True
    wrong = reply(False, "1 satisfied", '3 violated: "b equals Oslo"')
    verdict, _ = judge(scripted, FIVE, wrong)
    assert verdict.consistent is False
    assert [f.clause for f in verdict.findings] == ["WHERE"]
    assert "t.b = 'Oslo'" in verdict.mismatch


def test_an_overall_no_that_no_item_bears_out_does_not_reject(scripted: Any) -> None:
    verdict, _ = judge(scripted, FIVE, reply(False, "1 satisfied", "2 satisfied", mismatch="hm"))
    assert (verdict.consistent, verdict.doubt) == (True, 0.5)
    assert judge(scripted, FIVE, reply(False, "1 satisfied"), 0.5)[0].consistent is False


def test_without_judged_items_the_word_on_the_whole_counts(scripted: Any) -> None:
    verdict, _ = judge(scripted, FIVE, {"consistent": False, "mismatch": "shows cities"})
    assert (verdict.consistent, verdict.mismatch) == (False, "shows cities")


def test_a_violation_without_a_quote_weighs_half(scripted: Any) -> None:
    assert judge(scripted, FIVE, reply(True, "1 violated: I feel so"))[0].doubt == 0.5
    assert judge(scripted, FIVE, reply(True, '1 violated: "a in Oslo"'))[0].doubt == 1.0


def test_what_the_program_shows_overrules_the_judge(scripted: Any) -> None:
    missed = reply(True, "1 satisfied", "2 satisfied")
    assert judge(scripted, "SELECT a FROM t LIMIT 50", missed)[0].consistent is False
    slander = reply(True, '2 violated: "Limit: 3 rows"')
    assert judge(scripted, FIVE, slander)[0].consistent is True


def test_an_unreadable_comparison_is_no_verdict(scripted: Any) -> None:
    lm, _ = scripted({"verifier.explain": [{"explanation": TOLD}], "verifier.compare": ["{"]})
    attempt = Attempt(0, FIVE, Outcome(Status.OK, ("a",), ((1,),)))
    with config.using(LynxConfig()), dspy.context(lm=lm, adapter=adapter_for(lm, "json")):
        verdict = Verifier()(QUESTION, DRAFT, attempt)
    assert (verdict.consistent, verdict.doubt) == (None, None)


@pytest.mark.parametrize(
    ("lines", "states"),
    [
        (["1 satisfied", "3. violated: x", "9 violated", "2 maybe"], "satisfied - violated"),
        (["satisfied", "violated: x", "unclear"], "satisfied violated unclear"),
        (["violated: x"], "- - -"),
        (["outputs 1: not violated", "1 Satisfied", "1 violated"], "satisfied - -"),
        (["**2** - VIOLATED"], "- violated -"),
    ],
)
def test_judgements_are_read_by_number_or_in_order(lines: list[str], states: str) -> None:
    found = {j.item: str(j.state) for j in read_items(lines, ITEMS, "")}
    assert " ".join(found.get(item, "-") for item in ITEMS) == states


@given(st.lists(st.text(max_size=60), max_size=20), st.text(max_size=60))
def test_any_reply_is_read(lines: list[str], question: str) -> None:
    items = checklist(question)
    assert len(read_items(lines, items, question)) <= len(items)


JUDGED = st.builds(Judged, st.sampled_from(ITEMS), st.sampled_from(State), st.text(), st.booleans())


@given(st.booleans(), st.lists(JUDGED, max_size=5), st.floats(0.1, 5))
def test_a_higher_threshold_never_rejects_more(
    consistent: bool, items: list[Judged], threshold: float
) -> None:
    def stands(limit: float) -> bool | None:
        with config.using(LynxConfig(verify_threshold=limit)):
            return weighed(consistent, tuple(items), "", "").consistent

    assert not stands(threshold) or stands(threshold + 1)
    if consistent and not any(j.state is State.VIOLATED for j in items):
        assert stands(threshold)


def test_a_judgement_that_nothing_settles_stays() -> None:
    judged = Judged(Item(Asked.GRAIN, "per b"), State.VIOLATED, "x", True)
    assert checked(judged, "SELECT 1", "sqlite") is judged


def test_a_year_that_the_program_lacks_weighs_half() -> None:
    judged = Judged(Item(Asked.TIME, "in 1995", 1995), State.SATISFIED)
    assert checked(judged, "SELECT AVG(A15) FROM t", "sqlite").weight == 0.5
    assert checked(judged, "SELECT a FROM t WHERE y = 1995", "sqlite") is judged

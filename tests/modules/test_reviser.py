"""Each failure class is repaired with its own share of knowledge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dspy
import pytest

from lynx_dspy import config
from lynx_dspy.config import LynxConfig
from lynx_dspy.lm.adapter import adapter_for
from lynx_dspy.modules.critic import Criticism, Memory
from lynx_dspy.modules.delta import Change
from lynx_dspy.modules.generator import Draft
from lynx_dspy.modules.patterns import Fix, PatternStore
from lynx_dspy.modules.reviser import Reviser
from lynx_dspy.modules.strategies import Strategy
from lynx_dspy.values import (
    Attempt,
    Column,
    FailureClass,
    Finding,
    Knowledge,
    Outcome,
    Schema,
    Status,
    Table,
)

DRAFT = Draft("", Knowledge("SEM", "STRUCT", "SYN"), Schema("sqlite", ()), "INTENT", "GROUND")
SEES = {
    FailureClass.SYNTAX: ({"strftime"}, {"STRUCT", "SEM"}),
    FailureClass.SCHEMA: ({"STRUCT"}, {"SEM"}),
    FailureClass.SEMANTIC: ({"SEM", "GROUND"}, {"STRUCT"}),
}


@pytest.mark.parametrize("failure_class", list(FailureClass))
def test_only_the_knowledge_of_the_class_is_handed_in(
    scripted: Any, failure_class: FailureClass
) -> None:
    lm, engine = scripted({"reviser.repair": [{"analysis": "", "code": "SELECT 2"}]})
    outcome = Outcome(Status.ERROR, error="no such function: DATE_TRUNC on a date")
    failed = Attempt(0, "SELECT DATE_TRUNC('month', d)", outcome, failure_class=failure_class)
    said = Criticism(Memory(), Change.FIRST, "DELTA", "SUGGESTION")
    with config.using(LynxConfig()), dspy.context(lm=lm, adapter=adapter_for(lm, "json")):
        reply = Reviser()("QUESTION", DRAFT, failed, said)
    (prompt,) = engine.prompts["reviser.repair"]
    seen, hidden = SEES[failure_class]
    knowledge = prompt.rpartition("Knowledge:")[2].partition("Question:")[0]
    assert all(word.casefold() in knowledge.casefold() for word in seen)
    assert not any(word in knowledge for word in hidden)
    assert "no such function: DATE_TRUNC" in prompt
    assert "SUGGESTION" in prompt
    assert reply.code == "SELECT 2"


TABLE = Table("t", (Column("name", "TEXT"), Column("city", "TEXT")))
SHOP = Draft("", Knowledge("", "STRUCT", ""), Schema("sqlite", (TABLE,)), "", "")
FOUND = Finding(FailureClass.SCHEMA, "t has no column nme", "nme", ("name",))
FAILED = Attempt(
    0,
    "SELECT nme\nFROM t\nWHERE city = 'Oslo'",
    Outcome(Status.ERROR, error="no such column: nme"),
    failure_class=FailureClass.SCHEMA,
    findings=(FOUND,),
)
FIRST = Criticism(Memory(), Change.FIRST, "", "SUGGESTION")


def repaired(
    scripted: Any, *codes: str, said: Criticism = FIRST, **knobs: Any
) -> tuple[dspy.Prediction, list[str]]:
    lm, engine = scripted({"reviser.repair": [{"analysis": "", "code": code} for code in codes]})
    with config.using(LynxConfig(**knobs)), dspy.context(lm=lm, adapter=adapter_for(lm, "json")):
        reply = Reviser()("QUESTION", SHOP, FAILED, said)
    return reply, engine.prompts["reviser.repair"]


def test_the_failing_part_its_place_and_the_candidates_are_shown(scripted: Any) -> None:
    _, (prompt,) = repaired(scripted, "SELECT name FROM t WHERE city = 'Oslo'")
    assert "Failing part, line 1, SELECT: nme" in prompt
    assert "Could be meant: name" in prompt


def test_what_has_nothing_to_do_with_the_failure_is_put_back(scripted: Any) -> None:
    reply, prompts = repaired(scripted, "SELECT name FROM t WHERE city = 'Bergen' LIMIT 3")
    assert reply.code == "SELECT name FROM t WHERE city = 'Oslo'"
    assert set(reply.reverted) == {"WHERE", "LIMIT"}
    assert len(prompts) == 1


def test_an_edit_of_another_part_alone_is_refused_once_with_the_reason(scripted: Any) -> None:
    stray = "SELECT nme FROM t WHERE city = 'Bergen'"
    reply, prompts = repaired(scripted, stray, "SELECT name FROM t WHERE city = 'Oslo'")
    assert reply.code == "SELECT name FROM t WHERE city = 'Oslo'"
    assert "Your last edit was refused: it changes WHERE" in prompts[1]
    again, prompts = repaired(scripted, stray)
    assert (again.code, len(prompts)) == (stray, 2)


def test_a_rewrite_is_taken_where_edits_stopped_helping(scripted: Any) -> None:
    said = Criticism(Memory(stagnant=1), Change.CYCLE, "", "", Strategy("start-over", "Anew."))
    other = "SELECT city FROM t LIMIT 1"
    assert repaired(scripted, other, said=said)[0].code == other
    assert repaired(scripted, other, local_edits=False)[0].code == other


def test_fixes_that_worked_before_are_shown_where_a_store_is_kept(
    scripted: Any, tmp_path: Path
) -> None:
    path = tmp_path / "fixes.jsonl"
    fix = Fix("schema", "nme", "no such column: nme", "SELECT -nme +name")
    PatternStore(path).add([fix], SHOP.schema, "q", "m")
    good = "SELECT name FROM t WHERE city = 'Oslo'"
    assert "SELECT -nme +name" in repaired(scripted, good, fix_patterns=str(path))[1][0]
    assert "worked on this database" not in repaired(scripted, good)[1][0]

"""Each failure class is repaired with its own share of knowledge."""

from __future__ import annotations

from typing import Any

import dspy
import pytest

from lynx_dspy import config
from lynx_dspy.config import LynxConfig
from lynx_dspy.lm.adapter import adapter_for
from lynx_dspy.modules.critic import Change, Criticism, Memory
from lynx_dspy.modules.generator import Draft
from lynx_dspy.modules.reviser import Reviser
from lynx_dspy.values import Attempt, FailureClass, Knowledge, Outcome, Schema, Status

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

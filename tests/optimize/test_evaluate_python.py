"""The Python questions of the sample, asked, repaired and scored like any other dataset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dspy
import pytest

import lynx_dspy as lynx
from lynx_dspy.config import LynxConfig
from lynx_dspy.datasets.sample import frames
from lynx_dspy.optimize.questions import from_examples
from lynx_dspy.optimize.records import read_run
from lynx_dspy.program import Lynx

GOLD = {question["question"]: question["gold_python"][0] for question in frames.questions()}


class Knowing:
    """Writes the gold program; for `slow` questions a wrong one first, for `never` always."""

    supported_params = frozenset({"response_format"})
    supports_response_schema = True

    def __init__(self, slow: set[str], never: set[str]) -> None:
        self.slow, self.never = slow, never

    def complete(self, request: dspy.lm15.Request) -> dspy.lm15.Response:
        stage = dspy.settings.caller_modules[-1].stage_name
        text = "\n".join(m.text or "" for m in request.messages)
        question = next(q for q in GOLD if q in text)
        wrong = question in self.never or (stage.endswith("formulate") and question in self.slow)
        code = "result = len(orders) / 0" if question in self.slow else "result = -1"
        reply = {"analysis": "", "code": code if wrong else GOLD[question]}
        return dspy.lm15.Response(
            id=None,
            model="scripted",
            message=dspy.lm15.Message.assistant(json.dumps(reply)),
            finish_reason="stop",
            usage=dspy.lm15.Usage(input_tokens=10, output_tokens=5, total_tokens=15),
        )


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> list[dspy.Example]:
    return frames.load(tmp_path_factory.mktemp("sample") / "csv")


def test_python_programs_are_scored_with_ex_and_soft_f1(
    examples: list[dspy.Example], tmp_path: Path
) -> None:
    asked = [examples[0], examples[2], examples[7]]
    engine = Knowing(slow={asked[1].question}, never={asked[2].question})
    lm: Any = dspy.LM("test/knowing", engine=engine, cache=False, num_retries=0)
    stages = frozenset({"generator.formulate", "reviser.repair"})
    program = Lynx(language="python", config=LynxConfig(adapter="json", stages=stages))
    report = lynx.evaluate(program, from_examples(asked), lm=lm, out=tmp_path)
    assert (report.n, report.scored) == (3, 3)
    assert report.scores["ex"].value == pytest.approx(2 / 3)
    records = {record["id"]: record for record in read_run(tmp_path).records()}
    right, repaired, wrong = (records[one.id] for one in asked)
    assert right["scores"]["ex"] == right["scores"]["soft_f1"] == 1.0
    assert right["dialect"] == "pandas"
    assert repaired["right_by_round"] == [False, True]
    assert wrong["scores"]["ex"] == 0.0 and wrong["failure"]
    assert (tmp_path / "errors.md").read_text().count("\n## ") == 1

"""A student's answers are asked once, and the metric tells its callers apart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import dspy
import pytest

from lynx_dspy.errors import ModelError
from lynx_dspy.optimize.budget import Budget, Meter
from lynx_dspy.optimize.proposals import Task
from lynx_dspy.optimize.questions import from_examples
from lynx_dspy.optimize.quiet import Quiet
from lynx_dspy.optimize.search import Objective, Runs, Search
from lynx_dspy.optimize.studio import PARTIAL, Student, Studio, short
from lynx_dspy.optimize.writing import Halt

FORMULATE = "generator.formulate"


class Asked:
    """A student over four counting questions, two of them to train on, and its model."""

    def __init__(self, counting: ModuleType, folder: Path, budget: Budget) -> None:
        self.calls: list[int] = []
        self.fails = False
        engine = counting.CountingEngine(self.say)
        engine.supported_params = frozenset({"seed"})
        self.lm = counting.model(engine)
        self.gold = counting.gold
        examples = counting.questions(folder, 4)
        train, val = from_examples(examples[:2]), from_examples(examples[2:])
        self.meter = Meter(budget)
        search = Search(Runs(folder / "work", self.lm, self.meter), val, Objective(), 0)
        program = counting.program(max_rounds=0)
        task = Task(program, program.config, train, search, 0)
        self.studio = Studio(task, "test", Quiet())
        self.student = Student(program, self.studio, [FORMULATE])

    def say(self, k: int) -> str | Exception:
        """Right for even numbers."""
        self.calls.append(k)
        if self.fails:
            return dspy.lm15.AuthError("401")
        return f"```sql\n{self.gold(k + k % 2)}\n```"

    def __call__(self, id: str, lm: dspy.LM | None = None) -> Any:
        with dspy.context(lm=lm or self.lm):
            return self.student(id=id, asked="?", about="numbers")


@pytest.fixture
def asked(counting: ModuleType, tmp_path: Path) -> Iterator[Asked]:
    one = Asked(counting, tmp_path, Budget())
    with one.studio:
        yield one


def test_nothing_is_asked_twice(asked: Asked) -> None:
    first, again = asked("q0"), asked("q0")
    assert first.code == again.code == asked.gold(0)
    assert asked.calls == [0]
    drawn = [asked.lm.copy(rollout_id=n, temperature=1.0) for n in (0, 1, 0)]
    for lm in drawn:
        asked("q0", lm)
    assert asked.calls == [0, 0, 0], "each sampling is an answer of its own"
    assert asked.meter.spent.calls == 3


def test_validation_questions_are_asked_all_at_once(asked: Asked) -> None:
    asked("q2")
    assert sorted(asked.calls) == [2, 3]
    asked("q3")
    assert asked.studio.by_validation() == [], "the program as it was is no candidate"
    asked.student.program.generator.formulate.demos = [dspy.Example(question="a", code="b")]
    asked("q3")
    [found] = asked.studio.by_validation()
    assert found.name == "test-1" and found.about == {"demos": {FORMULATE: 1}}


def test_a_trace_is_that_of_the_predictors_that_ask_for_it(asked: Asked) -> None:
    copy = asked.student.deepcopy()
    assert copy.studio is asked.studio
    for student in (asked.student, copy):
        with dspy.context(trace=[], lm=asked.lm):
            student(id="q0")
            [(predictor, inputs, outputs)] = dspy.settings.trace
        assert predictor is student.program.generator.formulate
        assert outputs.code == asked.gold(0) and "grounding" in inputs
    assert asked.calls == [0]
    asked.studio.shown, asked.studio.input_tokens = short, 50
    [(_, inputs, _)] = asked.studio.steps(
        asked.studio.case(asked.student.program, "q0"),
        {FORMULATE: asked.student.program.generator.formulate},
    )
    assert inputs.keys() <= {"intent", "question"}


def test_each_optimizer_gets_the_metric_that_it_can_use(asked: Asked) -> None:
    right, wrong = asked("q0"), asked("q1")
    metric = asked.studio.metric
    example = dspy.Example()
    assert metric(example, right) == 1.0
    assert 0.0 <= metric(example, wrong) <= PARTIAL

    stage = asked.student.program.generator.formulate
    step = (stage, {"grounding": "a whole schema"}, dspy.Prediction(code=right.code))
    trace = [step, step]
    assert metric(example, right, trace) is True
    [(kept, inputs, outputs)] = trace
    assert kept is stage and inputs == {} and "a whole schema" not in str(outputs)
    trace = [step]
    assert metric(example, wrong, trace) is False and trace == []

    told = metric(
        example, wrong, [step], FORMULATE, [(stage, {}, dspy.Prediction(code=wrong.code))]
    )
    assert told.score == metric(example, wrong) and "its result is wrong" in told.feedback
    assert asked.studio.told_metric(example, right).score == 1.0


@pytest.mark.parametrize("answer", [None, dspy.Prediction(), "text"])
def test_the_metric_never_raises(asked: Asked, answer: object) -> None:
    metric = asked.studio.metric
    assert metric(dspy.Example(), answer) == 0.0
    assert metric(dspy.Example(), answer, []) is False
    assert metric(dspy.Example(), answer, [], FORMULATE, None).score == 0.0


def test_no_optimizer_sees_a_validation_gold(asked: Asked) -> None:
    [train, *_], [val, *_] = asked.studio.questions("train"), asked.studio.questions("val")
    assert train.gold_sql and "gold_sql" not in val
    fields = {name for one in asked.student.program.predictors() for name in one.signature.fields}
    assert not fields & {*train.keys(), *val.keys()}


def test_a_failing_model_is_no_wrong_answer(asked: Asked) -> None:
    asked.fails = True
    evaluate = dspy.Evaluate(
        devset=asked.studio.questions("train"), metric=asked.studio.metric, num_threads=1
    )
    with pytest.raises(Halt) as halt, dspy.context(lm=asked.lm):
        evaluate(asked.student)
    assert isinstance(halt.value.cause, ModelError)


def test_a_spent_budget_ends_an_evaluation(counting: ModuleType, tmp_path: Path) -> None:
    asked = Asked(counting, tmp_path, Budget(lm_calls=1))
    with pytest.raises(Halt), asked.studio:
        asked("q0")
    assert asked.calls == [0] and asked.meter.ended

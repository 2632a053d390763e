"""Harvest: the program runs once a training question; what a stage did well becomes a demo.

A call is worth showing by what came of it, not by the end alone: a repair that fixed nothing
teaches nothing, also where a later one was right.

    generator.formulate   its program is right at round 0; what is shown is the text that ran,
                          mended or not, of whichever candidate was right
    generator.ground      names all tables and columns of a gold
    other generator.*     the answer is right
    reviser.repair        the program before failed, the repaired one ran, and the answer is right
    critic.*              the next repair is worth showing
    verifier.*            the verdict is that of the judge
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import dspy
from sqlglot import exp

from lynx_dspy.config import LynxConfig
from lynx_dspy.engines import connect
from lynx_dspy.engines.base import Database
from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.metrics.linking import parsed
from lynx_dspy.modules.nearest import Fields
from lynx_dspy.optimize import journal
from lynx_dspy.optimize.demos import (
    SCHEMA_INPUT,
    Demo,
    analysis_of,
    carried,
    cut,
    shape_of,
    traits_of,
    unlike,
)
from lynx_dspy.optimize.recipes import Harvest
from lynx_dspy.optimize.records import GOLD_BROKEN, UNAVAILABLE, AttemptRecord, Record
from lynx_dspy.program import Lynx
from lynx_dspy.values import Schema

TRACES = "traces.jsonl"

ASKED_BEFORE_WRITING = frozenset(
    f"generator.{name}" for name in ("unknown_terms", "align", "distill", "intent", "ground")
)
"""What must be asked to know the inputs of `generator.formulate`: enough to show golds."""

_FORMULATE, _GROUND = "generator.formulate", "generator.ground"
_REPAIR, _EXPLAIN, _COMPARE = "reviser.repair", "verifier.explain", "verifier.compare"


@dataclass(frozen=True, slots=True)
class StageCall:
    """One reply of a stage that could be read."""

    stage: str
    inputs: Fields
    outputs: Fields


class Traced(dspy.Module):
    """A program whose answers hold what its stages were asked and replied (`answer.trace`)."""

    def __init__(self, program: Lynx) -> None:
        super().__init__()
        self.program = program
        self.config = program.config

    def forward(self, database: Database, **inputs: Any) -> dspy.Prediction:
        calls: list[tuple[dspy.Predict, dict[str, Any], dspy.Prediction]] = []
        with dspy.context(trace=calls):
            answer: dspy.Prediction = self.program(database=database, **inputs)
        answer.trace = {
            "database": database.name,
            "dialect": database.dialect,
            "intent": answer.intent,
            "grounding": answer.knowledge.structural,
            "calls": [_call_json(*call) for call in calls],
        }
        return answer


class TraceBook:
    """Keeps the traces of a run beside its records; a trace is kept before its record."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._journal = journal.Journal(folder / TRACES)

    def observe(self, example: dspy.Example, answer: dspy.Prediction) -> None:
        """For `evaluate(observe=...)`."""
        self._journal.append({"id": example.id, **answer.trace})

    def __enter__(self) -> TraceBook:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.__exit__(None, None, None)


def quietly(config: LynxConfig) -> LynxConfig:
    """The config of a run that only finds out what `generator.formulate` would be given."""
    stages = config.stages & ASKED_BEFORE_WRITING
    return config.with_(stages=stages, candidates=1, max_rounds=0)


@dataclass(frozen=True)
class Case:
    """A training question with what the program did."""

    example: dspy.Example
    record: Record
    trace: Mapping[str, Any]

    @cached_property
    def calls(self) -> list[StageCall]:
        return [StageCall(**call) for call in self.trace["calls"]]

    @property
    def right(self) -> bool:
        return self.record["scores"].get("ex") == 1.0

    @property
    def attempts(self) -> list[AttemptRecord]:
        return self.record["attempts"]

    def attempt_of(self, code: str) -> int | None:
        """The position of the attempt that a reply with this code led to."""
        places = [i for i, a in enumerate(self.attempts) if a["code"].strip() == code.strip()]
        if not places:
            return None
        place = places[0]
        mended = self.attempts[place + 1 : place + 2]
        return place + any(a["source"] == "static" for a in mended)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A call worth showing: `outputs` are what to show, `code` the program that it is about."""

    stage: str
    inputs: Fields
    outputs: Fields
    code: str
    label: str = "harvested"
    kind: str = ""


def cases(
    examples: Sequence[dspy.Example], records: Sequence[Record], folder: Path
) -> Iterator[Case]:
    """The questions that were answered and could be judged, in the order of `examples`."""
    by_id = {record["id"]: record for record in records}
    traces = {line["id"]: line for line in journal.lines(folder / TRACES)}
    for one in examples:
        record, trace = by_id.get(one.id), traces.get(one.id)
        if record and trace and record["status"] not in (UNAVAILABLE, GOLD_BROKEN):
            yield Case(one, record, trace)


def lessons(case: Case, recipe: Harvest) -> Iterator[Lesson]:
    """Every call of the case that is worth showing, by the rules of this module's docstring."""
    harvested = list(_formulate(case)) if recipe.labels != "gold" else []
    yield from harvested
    if recipe.labels != "harvested" and not harvested:
        yield from _gold(case)
    if recipe.labels == "gold":
        return
    for rule in _RULES:
        yield from rule(case)


def demos_of(
    found: Sequence[Case],
    recipe: Harvest,
    config: LynxConfig,
    schema_of: Callable[[dspy.Example], Schema | None],
) -> list[Demo]:
    """The demos of all stages: short enough, and none like another.

    `schema_of` gives the schema of a question's database, None where it cannot be read.
    """
    made = [
        _demo(case, lesson, recipe, config, schema_of(case.example))
        for case in found
        for lesson in lessons(case, recipe)
        if lesson.stage in config.stages
    ]
    fitting = [d for d in made if d.inputs and d.shown("used").tokens <= recipe.demo_tokens]
    return unlike(fitting, recipe.likeness)


class Schemas:
    """Schemas of training questions by database, each read once."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._known: dict[str, Schema | None] = {}

    def __call__(self, example: dspy.Example) -> Schema | None:
        url: str = example.database
        if url not in self._known:
            try:
                self._known[url] = abstract(self._stack.enter_context(connect(url)))
            except BadInput:
                self._known[url] = None
        return self._known[url]


def _demo(
    case: Case, lesson: Lesson, recipe: Harvest, config: LynxConfig, schema: Schema | None
) -> Demo:
    dialect = case.trace["dialect"]
    inputs = carried(lesson.stage, lesson.inputs, recipe.carry_tokens)
    text = cut(schema, lesson.code, config.schema_style) if schema is not None else ""
    if lesson.stage == _FORMULATE and _GROUND in config.stages:  # the model's own words, short
        text = str(lesson.inputs.get("grounding", ""))
    outputs = {n: v for n, v in lesson.outputs.items() if n not in config.omitted_outputs}
    return Demo(
        stage=lesson.stage,
        inputs=inputs,
        outputs=outputs,
        question=case.example.question,
        database=case.trace["database"],
        label=lesson.label,
        kind=lesson.kind,
        schema=text if lesson.stage in SCHEMA_INPUT else "",
        shape=shape_of(lesson.code, dialect),
        traits=traits_of(lesson.code, dialect),
    )


def _formulate(case: Case) -> Iterator[Lesson]:
    first = [a for a in case.attempts if a["round"] == 0]
    right = [a["code"] for a in first if a["right"]]
    if not right:
        return
    code = case.record["code"] if case.record["code"] in right else right[0]
    wrote = [c for c in case.calls if c.stage == _FORMULATE]
    own = [c for c in wrote if c.outputs.get("code", "").strip() == code.strip()]
    said = [c.outputs.get("analysis") for c in own]
    analysis = next(filter(None, said), None) or analysis_of(code, case.trace["dialect"])
    kind = next((a["failure_class"] or "" for a in first), "")
    outputs = {"analysis": analysis, "code": code}
    yield Lesson(_FORMULATE, _given(case), outputs, code, kind=kind)


def _gold(case: Case) -> Iterator[Lesson]:
    """The gold in the place of what the program wrote: the training split may be taught from."""
    failure = case.record["failure"]
    code = failure["gold_code"] if failure else next(iter(case.example.gold_sql), "")
    if code:
        code = code.strip().rstrip(";")
        outputs = {"analysis": analysis_of(code, case.trace["dialect"]), "code": code}
        yield Lesson(_FORMULATE, _given(case), outputs, code, label="gold")


def _given(case: Case) -> Fields:
    """What `generator.formulate` is given for the question, also where it was not asked."""
    grounded = [c.outputs["grounding"] for c in case.calls if c.stage == _GROUND]
    return {
        "grounding": grounded[-1] if grounded else case.trace["grounding"],
        "intent": case.trace["intent"],
        "question": case.example.question,
    }


def _end_right(case: Case) -> Iterator[Lesson]:
    wanted = ASKED_BEFORE_WRITING - {_GROUND}
    for call in case.calls if case.right else ():
        if call.stage in wanted:
            yield Lesson(call.stage, call.inputs, call.outputs, case.record["code"])


def _grounded(case: Case) -> Iterator[Lesson]:
    for call in (c for c in case.calls if c.stage == _GROUND):
        named = set(re.findall(r"\w+", str(call.outputs.get("grounding", "")).casefold()))
        for gold in case.example.gold_sql:
            wanted = _names(gold, case.trace["dialect"])
            if wanted and wanted <= named:
                yield Lesson(_GROUND, call.inputs, call.outputs, gold)
                return


def _repairs(case: Case) -> Iterator[Lesson]:
    for before, call, after in _mended(case):
        outputs = {**call.outputs, "code": after["code"]}
        kind = before["failure_class"] or ""
        yield Lesson(_REPAIR, call.inputs, outputs, after["code"], kind=kind)


def _advice(case: Case) -> Iterator[Lesson]:
    """What the Critic said right before a repair that worked."""
    said: list[StageCall] = []
    worked = {id(call): before for before, call, _ in _mended(case)}
    for call in case.calls:
        if call.stage.startswith("critic."):
            said.append(call)
        elif call.stage == _REPAIR:
            before = worked.get(id(call))
            for one in said if before is not None else ():
                kind = before["failure_class"] or "" if before else ""
                yield Lesson(one.stage, one.inputs, one.outputs, case.record["code"], kind=kind)
            said = []


def _mended(case: Case) -> Iterator[tuple[AttemptRecord, StageCall, AttemptRecord]]:
    """Repairs that made an error go away, where the answer is right: before, call, after."""
    for call in case.calls if case.right else ():
        place = case.attempt_of(call.outputs.get("code", "")) if call.stage == _REPAIR else None
        if place is None:
            continue
        after = case.attempts[place]
        earlier = [a for a in case.attempts if a["round"] == after["round"] - 1]
        failed = bool(earlier) and (earlier[-1]["failure_class"] is not None)
        if failed and after["status"] in ("ok", "empty") and after["failure_class"] is None:
            yield earlier[-1], call, after


def _verdicts(case: Case) -> Iterator[Lesson]:
    explained: StageCall | None = None
    for call in case.calls:
        if call.stage == _EXPLAIN:
            explained = call
        elif call.stage == _COMPARE and explained is not None:
            code = explained.inputs.get("program", "")
            truths = [a["right"] for a in case.attempts if a["code"].strip() == code.strip()]
            if truths and truths[-1] is not None and truths[-1] == call.outputs.get("consistent"):
                kind = "consistent" if truths[-1] else "mismatch"
                yield Lesson(_EXPLAIN, explained.inputs, explained.outputs, code, kind=kind)
                yield Lesson(_COMPARE, call.inputs, call.outputs, code, kind=kind)
            explained = None


_RULES: tuple[Callable[[Case], Iterator[Lesson]], ...] = (
    _end_right,
    _grounded,
    _repairs,
    _advice,
    _verdicts,
)


def _names(gold: str, dialect: str) -> set[str]:
    """The names of tables and columns in a gold, without its aliases."""
    tree = parsed(gold, Schema(dialect, ()))
    if tree is None:
        return set()
    own = {a.alias.casefold() for a in tree.find_all(exp.Alias, exp.CTE)}
    nodes = tree.find_all(exp.Table, exp.Column)
    return {node.name.casefold() for node in nodes if node.name not in ("", "*")} - own


def _call_json(
    predictor: dspy.Predict, inputs: Mapping[str, Any], reply: dspy.Prediction
) -> dict[str, Any]:
    return {
        "stage": cast(Any, predictor).stage_name,
        "inputs": {name: _plain(value) for name, value in inputs.items()},
        "outputs": {name: _plain(value) for name, value in reply.items()},
    }


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [str(item) for item in value]
    return value if isinstance(value, bool | str) or value is None else str(value)

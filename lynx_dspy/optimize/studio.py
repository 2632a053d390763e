"""A program as DSPy's optimizers want it: a student whose answers are records in the work folder.

An optimizer asks its student one question at a time and knows neither budget nor crash. Here each
answer goes through the runs of the search, by (program, sampling, question): it is judged by the
dataset's own rule, counted, and never asked twice. An optimizer that is started again with its seed
is so led through the same answers to the same end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from statistics import fmean
from types import TracebackType
from typing import Any, Self

import dspy

from lynx_dspy.errors import LynxError
from lynx_dspy.modules.nearest import Fields
from lynx_dspy.optimize import harvest
from lynx_dspy.optimize.advice import advice
from lynx_dspy.optimize.budget import BudgetSpent
from lynx_dspy.optimize.demos import carried
from lynx_dspy.optimize.harvest import Case, StageCall, TraceBook, Traced
from lynx_dspy.optimize.proposals import Task
from lynx_dspy.optimize.quiet import Quiet
from lynx_dspy.optimize.recipes import Harvest
from lynx_dspy.optimize.records import Record
from lynx_dspy.optimize.search import Candidate, Worth, program_hash
from lynx_dspy.optimize.states import predictors
from lynx_dspy.optimize.writing import Halt
from lynx_dspy.program import Lynx
from lynx_dspy.tokens import clip

PARTIAL = 0.1
"""What Soft-F1 1 is worth where EX is 0: it breaks ties, and tells a weak model's errors apart."""

Shown = Callable[[StageCall, int], Fields]
"""Which inputs of a call an optimizer sees, none of them longer than so many tokens."""


def cut(call: StageCall, tokens: int) -> Fields:
    """All inputs, long ones cut: to reflect on."""
    return {
        name: clip(value, tokens) if isinstance(value, str) else value
        for name, value in call.inputs.items()
    }


def short(call: StageCall, tokens: int) -> Fields:
    """Those inputs that a demo shows: whole, and no schema."""
    return carried(call.stage, call.inputs, tokens)


class Answer(dspy.Prediction):
    """What the student gives back, in plain fields; what it came of stays out of prompts."""

    _case: Case | None = None


class Student(dspy.Module):
    """Answers questions by writing a database program; `tuned` are the stages that may change."""

    def __init__(self, program: Lynx, studio: Studio, tuned: Sequence[str]) -> None:
        super().__init__()
        self.program = program
        self.studio = studio
        self.tuned = tuple(tuned)

    def named_predictors(self) -> list[tuple[str, dspy.Predict]]:
        """The stages that may change, under their names in the program."""
        return [(path, one) for path, one in predictors(self.program).items() if path in self.tuned]

    def forward(self, id: str, **asked: Any) -> dspy.Prediction:
        case = self.studio.case(self.program, id, self._sampling())
        if dspy.settings.trace is not None:
            own = {name_of(one): one for _, one in self.named_predictors()}
            dspy.settings.trace.extend(self.studio.steps(case, own))
        record = case.record
        answer = Answer(code=record["code"], status=record["status"], error=record["error"])
        answer._case = case
        return answer

    def _sampling(self) -> dspy.LM | None:
        """A model that an optimizer set to draw another answer than the usual one."""
        mine = [one.lm for one in predictors(self.program).values() if one.lm is not None]
        model = mine[0] if mine else dspy.settings.lm
        return model if "rollout_id" in model.kwargs else None


@dataclass
class Studio:
    """Where one optimizer works: the questions, the answers so far, and what was tried.

    Copies of a student share it.
    """

    task: Task
    label: str
    quiet: Quiet
    shown: Shown = cut
    input_tokens: int = 300
    demos: Harvest = field(default_factory=lambda: Harvest(labels="harvested"))
    tried: dict[str, Candidate] = field(default_factory=dict)
    """Candidates by hash in the order in which they were first asked anything."""

    def __post_init__(self) -> None:
        search = self.task.search
        self._parts = {"train": self.task.train, "val": search.val}
        self._split = {
            one.id: split for split, part in self._parts.items() for one in part.examples
        }
        self._examples = {one.id: one for part in self._parts.values() for one in part.examples}
        self._known: dict[tuple[str, str, str], Case] = {}
        self._stack = ExitStack()
        self._schemas = harvest.Schemas(self._stack)
        self._best: Worth | None = None
        self._start = program_hash(self.task.program)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> Studio:
        return self

    def questions(self, split: str) -> list[dspy.Example]:
        """The questions of `train` or `val` as an optimizer sees them; golds of `train` only.

        No field has the name of a predictor's, so that none can slip into a demo.
        """
        return [
            dspy.Example(
                id=one.id,
                asked=one.question,
                about=one.db,
                **({"gold_sql": list(one.gold_sql)[:1]} if split == "train" else {}),
            ).with_inputs("id", "asked", "about")
            for one in self._parts[split].examples
        ]

    def case(self, program: Lynx, id: str, sampling: dspy.LM | None = None) -> Case:
        """What the program did with a question; asked if it never was.

        Raises `Halt` when the budget is spent, or nothing can be asked.
        """
        candidate = Candidate("", program)
        drawn = "" if sampling is None else f"-{sampling.kwargs['rollout_id']}"
        key = (candidate.hash, drawn, id)
        if key not in self._known:
            try:
                with self.quiet.aloud(), dspy.context(trace=None):
                    self._ask(candidate, drawn, id, sampling)
            except (BudgetSpent, LynxError) as error:
                raise Halt(error) from None
        return self._known[key]

    def steps(
        self, case: Case, own: Mapping[str, dspy.Predict]
    ) -> list[tuple[dspy.Predict, Fields, dspy.Prediction]]:
        """The calls of a case as a trace; `own` are a student's predictors by stage."""
        return [
            (
                own[call.stage],
                self.shown(call, self.input_tokens),
                dspy.Prediction(**self._outputs(own[call.stage], call)),
            )
            for call in case.calls
            if call.stage in own
        ]

    def metric(
        self,
        example: dspy.Example,
        answer: object,
        trace: list[Any] | None = None,
        stage: str | None = None,
        stage_trace: list[Any] | None = None,
    ) -> Any:
        """The one metric of all optimizers, told apart by how they call it.

        With a stage's name (GEPA) a score with feedback on that stage; with a trace (gathering
        demos) whether the answer teaches anything, and the trace then holds just that; else a
        number: 1 for a right answer, a little of Soft-F1 for a wrong one. Never raises.
        """
        case = answer._case if isinstance(answer, Answer) else None
        if stage is not None:
            [(predictor, _, said)] = stage_trace or [(None, {}, {})]
            return self._told(case, name_of(predictor), dict(said))
        if trace is not None:
            trace[:] = self._lessons(case, trace) if case is not None and case.right else []
            return bool(trace)
        return worth_of(case)

    def told_metric(self, example: dspy.Example, answer: object) -> dspy.Prediction:
        """A score with feedback on the whole answer."""
        return self._told(answer._case if isinstance(answer, Answer) else None, "", {})

    def by_validation(self) -> list[Candidate]:
        """All that was asked every validation question, the best first."""
        search, total = self.task.search, len(self._parts["val"].examples)
        whole = [one for one in self._new() if len(search.kept(one)) == total]
        return sorted(whole, key=search.worth, reverse=True)

    def by_training(self, most: int) -> list[Candidate]:
        """The `most` best by mean score on the training questions that each was asked."""
        scores: dict[str, list[float]] = {}
        for (program, drawn, id), case in self._known.items():
            if not drawn and self._split[id] == "train":
                scores.setdefault(program, []).append(worth_of(case))
        asked = [one for one in self._new() if one.hash in scores]
        asked.sort(key=lambda c: (fmean(scores[c.hash]), len(scores[c.hash])), reverse=True)
        return asked[:most]

    def _new(self) -> list[Candidate]:
        return [one for one in self.tried.values() if one.hash != self._start]

    def _ask(self, candidate: Candidate, drawn: str, id: str, sampling: dspy.LM | None) -> None:
        candidate = self._noted(candidate)
        split = self._split[id]
        self.task.search.runs.meter.phase = f"{candidate.name}, {split}"
        if split == "val" and sampling is None:
            # All at once: by databases, for prefix caches, and with all workers.
            records = self.task.search.records(candidate)
            self._lead(candidate)
            for record in records:
                one = self._examples[record["id"]]
                self._known[candidate.hash, drawn, one.id] = Case(one, record, {"calls": []})
            return
        runs, part = self.task.search.runs, self._parts[split]
        folder = runs.place(candidate.hash, f"{split}{drawn}")
        one = replace(part, examples=(self._examples[id],))
        program = candidate.program.deepcopy()
        program.set_lm(None)
        with TraceBook(folder) as book:
            traced = Traced(program)
            runs.records(traced, folder, one, observe=book.observe, lm=_seeded(sampling))
        self._known[candidate.hash, drawn, id] = _case(
            self._examples[id], runs.kept(folder, one), folder
        )

    def _noted(self, candidate: Candidate) -> Candidate:
        """The candidate as it is known from now on: a copy, which no optimizer goes on changing."""
        if candidate.hash not in self.tried:
            start = self.task.program
            program = candidate.program.deepcopy()
            program.set_lm(None)
            same = candidate.hash == self._start
            number = len(self.tried.keys() - {self._start}) + 1
            name = "start" if same else f"{self.label}-{number}"
            self.tried[candidate.hash] = Candidate(name, program, changes(start, program))
        return self.tried[candidate.hash]

    def _lead(self, candidate: Candidate) -> None:
        worth = self.task.search.worth(candidate)
        if self._best is None or worth > self._best:
            self._best = worth
            self.task.search.runs.meter.lead(candidate.name, worth.ex)

    def _told(self, case: Case | None, stage: str, outputs: Fields) -> dspy.Prediction:
        if case is None:
            return dspy.Prediction(score=0.0, feedback="The program gave no answer.")
        schema = self._schemas(case.example) if stage else None
        return dspy.Prediction(score=worth_of(case), feedback=advice(case, stage, outputs, schema))

    def _lessons(self, case: Case, trace: Sequence[Any]) -> list[Any]:
        """What the harvest would show of a right answer, as steps of the trace's predictors."""
        own = {name_of(step[0]): step[0] for step in trace}
        made = harvest.demos_of([case], self.demos, self.task.config, self._schemas)
        return [
            (own[demo.stage], {}, demo.shown("used").fields) for demo in made if demo.stage in own
        ]

    def _outputs(self, predictor: dspy.Predict, call: StageCall) -> Fields:
        wanted = predictor.signature.output_fields.keys() - self.task.config.omitted_outputs
        return {name: value for name, value in call.outputs.items() if name in wanted}


def name_of(predictor: object) -> str:
    """The stage that a predictor is, as it stands in records and traces."""
    return str(getattr(predictor, "stage_name", ""))


def worth_of(case: Case | None) -> float:
    """1 for a right answer, else a little of its Soft-F1; 0 for what could not be judged."""
    scores = case.record["scores"] if case is not None else {}
    if not scores:
        return 0.0
    return 1.0 if scores["ex"] == 1.0 else PARTIAL * scores["soft_f1"]


def changes(start: Lynx, program: Lynx) -> dict[str, Any]:
    """Which stages have other instructions than in `start`, and the demos that stages show."""
    before, after = predictors(start), predictors(program)
    written = [
        path
        for path, one in after.items()
        if one.signature.instructions != before[path].signature.instructions
    ]
    shown = {path: len(one.demos) for path, one in after.items() if one.demos}
    made = {"instructions": ", ".join(written), "demos": shown}
    return {name: value for name, value in made.items() if value}


def _case(example: dspy.Example, records: Sequence[Record], folder: Any) -> Case:
    found = list(harvest.cases([example], records, folder))
    return found[0] if found else Case(example, records[0], {"calls": []})


def _seeded(sampling: dspy.LM | None) -> dspy.LM | None:
    """The model with its rollout as a seed where it takes one."""
    if sampling is None:
        return None
    takes = getattr(getattr(sampling, "engine", None), "supported_params", ())
    drawn: dspy.LM = sampling
    return drawn.copy(seed=sampling.kwargs["rollout_id"]) if "seed" in takes else drawn

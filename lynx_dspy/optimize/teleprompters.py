"""What DSPy's own optimizers propose: `bootstrap-rs`, `mipro`, `gepa`, `simba`.

Each runs over a `Student`, whose answers are kept, counted and judged by the search. Whatever it
tried is a candidate, also where the budget ended it; the search compares them as it compares all.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dspy
from dspy.teleprompt import GEPA, SIMBA, BootstrapFewShotWithRandomSearch, MIPROv2
from dspy.teleprompt.gepa import InstructionProposer
from dspy.utils.exceptions import AdapterParseError, LMError
from pydantic import ValidationError

from lynx_dspy.optimize.budget import BudgetSpent, Spent
from lynx_dspy.optimize.proposals import Task
from lynx_dspy.optimize.quiet import Quiet
from lynx_dspy.optimize.recipes import BootstrapRecipe, GepaRecipe, MiproRecipe, SimbaRecipe
from lynx_dspy.optimize.search import Candidate
from lynx_dspy.optimize.states import predictors
from lynx_dspy.optimize.studio import Student, Studio, cut, name_of, short
from lynx_dspy.optimize.writing import Halt, Lenient, writing

_UNWRITTEN = (AdapterParseError, LMError, ValidationError, ValueError)
"""What a weak model's attempt at an instruction ends in: then the old instruction stays."""


def propose_bootstrap(task: Task, recipe: BootstrapRecipe) -> list[Candidate]:
    """Sets of demos from the program's own right answers, each tried on all validation questions.

    A first trial with seed -1 takes the training questions in order, the others shuffle them.
    """
    with Studio(task, "bootstrap-rs", Quiet(), demos=recipe.harvest) as studio:
        total = len(task.search.val.examples)
        _plan(task, (recipe.sets + 1) * total + len(task.train.examples))
        optimizer = _aside(
            studio,
            lambda: BootstrapFewShotWithRandomSearch(
                metric=studio.metric,
                max_bootstrapped_demos=recipe.most_demos,
                max_labeled_demos=0,  # whole training rows would be shown, golds and all
                max_rounds=recipe.rounds,
                num_candidate_programs=recipe.sets,
                num_threads=1,
            ),
        )
        train, val = _shuffled(studio.questions("train"), task.seed), studio.questions("val")
        with _asking(studio):
            optimizer.compile(_student(studio), trainset=train, valset=val)
        return studio.by_validation()


def propose_mipro(task: Task, recipe: MiproRecipe) -> list[Candidate]:
    """Instructions and sets of demos, chosen together by a Bayesian search over `trials`."""
    with (
        Studio(task, "mipro", Quiet(), demos=recipe.harvest) as studio,
        _writer(studio, recipe.temperature) as writer,
    ):
        total = len(task.search.val.examples)
        _plan(task, recipe.trials * total + len(task.train.examples))
        optimizer = _Mipro(
            metric=studio.metric,
            prompt_model=writer,
            task_model=task.search.runs.lm,
            max_bootstrapped_demos=recipe.most_demos,
            max_labeled_demos=0,  # as above
            auto=None,  # "light" would be 82 trials for 8 stages
            num_candidates=recipe.candidates,
            num_threads=1,
            seed=task.seed + 1,  # 0 is taken for none
            init_temperature=recipe.temperature,
            track_stats=False,
        )
        with _asking(studio):
            optimizer.compile(
                _student(studio),
                trainset=_shuffled(studio.questions("train"), task.seed),
                valset=studio.questions("val"),
                num_trials=recipe.trials,
                minibatch=False,
                program_aware_proposer=False,  # it would show the source of the student
                data_aware_proposer=recipe.data_aware,
                view_data_batch_size=recipe.data_batch,
            )
        return studio.by_validation()


def propose_gepa(task: Task, recipe: GepaRecipe) -> list[Candidate]:
    """Instructions that a model rewrites after reading what went wrong, kept on a Pareto front."""
    label = "gepa"
    with (
        Studio(task, label, Quiet(), cut, recipe.input_tokens) as studio,
        _writer(studio, recipe.temperature) as writer,
    ):
        _plan(task, recipe.metric_calls)
        optimizer = GEPA(
            metric=studio.metric,
            max_metric_calls=recipe.metric_calls,
            reflection_minibatch_size=recipe.batch,
            reflection_lm=writer,
            instruction_proposer=Rewriter(recipe.most_chars),
            component_selector=RanSelector(),
            use_merge=len(_tuned(task)) > 1,
            num_threads=1,
            warn_on_score_mismatch=False,
            seed=task.seed,
        )
        with _asking(studio):
            optimizer.compile(
                _student(studio),
                trainset=studio.questions("train"),
                valset=studio.questions("val"),
            )
        return studio.by_validation()


def propose_simba(task: Task, recipe: SimbaRecipe) -> list[Candidate]:
    """Rules and demos from questions that the program answers now rightly and now wrongly."""
    search = task.search
    with (
        Studio(task, "simba", Quiet(), short, recipe.input_tokens) as studio,
        _writer(studio, recipe.temperature) as writer,
    ):
        train = studio.questions("train")
        batch = min(recipe.batch, len(train))
        _plan(task, recipe.steps * batch * 2 * (recipe.candidates + 1))
        search.runs.meter.reserve = search.reserve_for(1, Candidate("", task.program))
        optimizer = SIMBA(
            metric=studio.told_metric,
            bsize=batch,
            num_candidates=recipe.candidates,
            max_steps=recipe.steps,
            max_demos=recipe.most_demos,
            prompt_model=writer,
            num_threads=1,
        )
        with _asking(studio):
            optimizer.compile(_student(studio), trainset=train, seed=task.seed)
        search.runs.meter.reserve = Spent()
        return studio.by_training(recipe.finalists)


class RanSelector:
    """GEPA's choice of the stage to rewrite: one that ran where the answer was wrong.

    Among several it is the one that was chosen least often for this candidate. DSPy's own takes
    each in turn, and spends turns on those that were never asked.
    """

    def __init__(self) -> None:
        self._chosen: Counter[tuple[int, str]] = Counter()

    def __call__(
        self,
        state: Any,
        trajectories: Sequence[Any],
        subsample_scores: Sequence[float],
        candidate_idx: int,
        candidate: dict[str, str],
    ) -> list[str]:
        wrong = [one for one in trajectories if one["score"] < 1.0] or list(trajectories)
        ran = {name_of(step[0]) for one in wrong for step in one["trace"]}
        names = [name for name in candidate if name in ran] or list(candidate)
        name = min(names, key=lambda name: self._chosen[candidate_idx, name])
        self._chosen[candidate_idx, name] += 1
        return [name]


class Rewriter:
    """GEPA's own proposer of instructions, for models that may fail at it: the old one stays."""

    def __init__(self, most_chars: int) -> None:
        self._propose = InstructionProposer(max_chars=most_chars, adapter=Lenient())

    def __call__(
        self,
        candidate: dict[str, str],
        reflective_dataset: dict[str, Any],
        components_to_update: list[str],
    ) -> dict[str, str]:
        try:
            written: dict[str, str] = self._propose(
                candidate, reflective_dataset, components_to_update
            )
        except _UNWRITTEN:
            return {name: candidate[name] for name in components_to_update}
        return written


class _Mipro(MIPROv2):
    """MIPROv2; where its model cannot write instructions it goes on with those that are there."""

    def _propose_instructions(self, program: dspy.Module, *given: Any, **options: Any) -> Any:
        try:
            return super()._propose_instructions(program, *given, **options)
        except _UNWRITTEN:
            return {i: [p.signature.instructions] for i, p in enumerate(program.predictors())}


@contextmanager
def _asking(studio: Studio) -> Iterator[None]:
    """Where an optimizer runs: in silence, with the program's model, until the budget is spent.

    Raises what else ended it, as our own errors.
    """
    lm = studio.task.search.runs.lm
    try:
        with studio.quiet.hushed(), dspy.context(lm=lm, adapter=Lenient()):
            yield
    except Halt as halt:
        if not isinstance(halt.cause, BudgetSpent):
            raise halt.cause from None


@contextmanager
def _writer(studio: Studio, temperature: float) -> Iterator[dspy.LM]:
    runs = studio.task.search.runs
    model = studio.task.writer or runs.lm
    with writing(model, runs.folder, studio.label, runs.meter, temperature) as writer:
        yield writer


def _aside(studio: Studio, make: Callable[[], Any]) -> Any:
    """What `make` gives, without what it prints."""
    with studio.quiet.hushed():
        return make()


def _student(studio: Studio) -> Student:
    return Student(studio.task.program.deepcopy(), studio, _tuned(studio.task))


def _tuned(task: Task) -> list[str]:
    """The stages that ran on some validation question; to change the others changes nothing."""
    records = task.search.kept(Candidate("", task.program))
    ran = {use["stage"] for record in records for use in record["stages"]}
    return [path for path, one in predictors(task.program).items() if name_of(one) in ran]


def _shuffled(examples: list[dspy.Example], seed: int) -> list[dspy.Example]:
    """DSPy's bootstrapping has seeds of its own; with 0 the order is the given one."""
    if seed:
        random.Random(seed).shuffle(examples)
    return examples


def _plan(task: Task, questions: int) -> None:
    task.search.runs.meter.planned += questions

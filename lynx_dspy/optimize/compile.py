"""Compile: a recipe over a training split, the best candidate on a validation split, an artifact.

    split       by database where possible; questions that leak are left out
    baseline    the program as it is, on every validation question
    recipe      candidates from the training questions (`PROPOSERS`), successive halving
    verdict     the best is kept if it is worth more and its paired interval is not below the
                baseline's; else the baseline is shipped, and the report says so
    test        both programs once on the test split, which no search sees

What is asked is kept beside the artifact, in `.NAME.work`; the same call goes on from there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dspy

from lynx_dspy import config as configs
from lynx_dspy.errors import BadInput, ModelError
from lynx_dspy.optimize import outcome
from lynx_dspy.optimize.artifact import save
from lynx_dspy.optimize.budget import Budget, BudgetSpent, Meter, Spent, Watch
from lynx_dspy.optimize.evaluate import THREADS
from lynx_dspy.optimize.outcome import Compiled, Measured
from lynx_dspy.optimize.proposals import Task, propose_demos, propose_nearest
from lynx_dspy.optimize.questions import Questions
from lynx_dspy.optimize.recipes import (
    DEFAULT,
    BootstrapRecipe,
    DemosRecipe,
    GepaRecipe,
    MiproRecipe,
    NearestRecipe,
    OptunaRecipe,
    Recipe,
    SimbaRecipe,
    chain,
)
from lynx_dspy.optimize.records import Record
from lynx_dspy.optimize.search import (
    BASELINE,
    Candidate,
    Found,
    Objective,
    Runs,
    Search,
    Standing,
    furthest,
    judge,
)
from lynx_dspy.optimize.splitting import Splits, splits_of
from lynx_dspy.optimize.teleprompters import (
    propose_bootstrap,
    propose_gepa,
    propose_mipro,
    propose_simba,
)
from lynx_dspy.optimize.tuning import tune
from lynx_dspy.program import Lynx

if TYPE_CHECKING:
    from lynx_dspy.optimize.ray_pool import RayPool

PROPOSERS: dict[type[Recipe], Callable[[Task, Any], Sequence[Candidate] | Found]] = {
    DemosRecipe: propose_demos,
    NearestRecipe: propose_nearest,
    OptunaRecipe: tune,
    BootstrapRecipe: propose_bootstrap,
    MiproRecipe: propose_mipro,
    GepaRecipe: propose_gepa,
    SimbaRecipe: propose_simba,
}
"""What carries out each kind of recipe: candidates made from a task, which are then halved, or the
end of a search of its own."""


def compile(
    program: Lynx,
    dataset: str | Sequence[dspy.Example] | Questions,
    recipe: str = DEFAULT,
    *,
    lm: dspy.LM | None = None,
    reflection_lm: dspy.LM | None = None,
    out: str | Path | None = None,
    data: str | Path = "",
    train_split: str = "",
    val_split: str = "",
    test_split: str = "",
    limit: int | None = None,
    seed: int = 0,
    token_weight: float = 0.0,
    max_lm_calls: int | None = None,
    max_tokens: int | None = None,
    max_minutes: float | None = None,
    params: Mapping[str, Any] | None = None,
    workers: int = 1,
    deadline: float | None = None,
    watch: Watch | None = None,
    engine: str | RayPool = THREADS,
    ves: int = 0,
) -> Compiled:
    """Make `program` better on `dataset` for the language model `lm`; the artifact is in `out`.

    `dataset` is a name of `datasets.DATASETS` with its folder `data`, or examples, which are shared
    out. `recipe` is a name of `recipes.RECIPES` or several joined by `+`, `params` change its
    numbers; `reflection_lm` writes the instructions of recipes that change them, `lm` does if there
    is none. EX decides, then Soft-F1; 1,000 tokens a question cost `token_weight` of EX. The
    budgets end the search, not the test at its end. Calling it again with the same `out` goes on
    where it ended and gives what one call would have given. `engine` is that of `evaluate`, as is
    `ves` for the test split. Raises `BadInput` for what cannot be compiled and `ModelError` when
    the model cannot be used.
    """
    model = lm if lm is not None else dspy.settings.lm
    if model is None:
        raise ModelError("No language model is set. Pass lm=lynx.lm(...), or use dspy.context.")
    recipes = chain(recipe, params)
    splits = splits_of(
        dataset,
        data,
        train_split=train_split,
        val_split=val_split,
        test_split=test_split,
        limit=limit,
        seed=seed,
    )
    meter = Meter(Budget(max_lm_calls, max_tokens, max_minutes), watch)
    with _work(out) as folder, _asked_by(engine, workers) as asked_by:
        runs = Runs(folder, model, meter, workers, deadline=deadline, engine=asked_by)
        job = _Job(program, model, splits, runs, Objective(token_weight), seed, reflection_lm, ves)
        job.search_by(recipes)
        made = job.finish(recipe, recipes)
        outcome.write(made, folder)
        if out is not None:
            save(made.program, Path(out), made.manifest, made.rows)
    return made


@dataclass
class _Job:
    """One compile: what was found so far."""

    program: Lynx
    lm: dspy.LM
    splits: Splits
    runs: Runs
    objective: Objective
    seed: int
    writer: dspy.LM | None = None
    ves: int = 0
    standings: list[Standing] = field(default_factory=list)
    budget_spent: bool = False

    def __post_init__(self) -> None:
        self.baseline = Candidate(BASELINE, self.program)
        self.best = self.baseline
        self.search = Search(self.runs, self.splits.val, self.objective, self.seed)

    def search_by(self, recipes: Sequence[tuple[str, Recipe]]) -> None:
        """The baseline, then each recipe on what the one before it found."""
        meter = self.runs.meter
        meter.phase, meter.planned = BASELINE, len(self.splits.val.examples)
        try:
            self.search.records(self.baseline)
        except BudgetSpent:
            self.budget_spent = True
        if len(self.search.kept(self.baseline)) < len(self.splits.val.examples):
            return  # nothing can be compared with half a baseline
        for _, recipe in recipes:
            config = self.best.program.config or configs.profile(str(self.lm.model))
            task = Task(
                self.best.program, config, self.splits.train, self.search, self.seed, self.writer
            )
            made = PROPOSERS[type(recipe)](task, recipe)
            found = (
                made
                if isinstance(made, Found)
                else self.search.halve(self.best, made, recipe.halving)
            )
            if found.best.hash != self.best.hash:
                self.best = found.best
            self.standings = furthest([*self.standings, *found.standings])
            self.budget_spent = self.budget_spent or found.budget_spent or meter.ended

    def finish(self, name: str, recipes: Sequence[tuple[str, Recipe]]) -> Compiled:
        """The verdict, the test, and what is recorded of all."""
        before, after = self.search.kept(self.baseline), self.search.kept(self.best)
        same = self.best.hash == self.baseline.hash
        verdict = judge(before, after, self.objective, same)
        shipped = self.best if verdict.kept else self.baseline
        measured = {"val": Measured(before, after if verdict.kept else before)}
        if self.splits.test is not None:
            tested = [self._tested(one) for one in (self.baseline, shipped)]
            measured["test"] = Measured(*tested)
        return outcome.compiled(
            outcome.Job(
                name=name,
                recipes=recipes,
                lm=self.lm,
                splits=self.splits,
                seed=self.seed,
                token_weight=self.objective.token_weight,
                budget=self.runs.meter.budget,
                spent=self.runs.meter.spent,
                budget_spent=self.budget_spent,
                standings=self.standings,
                writer=self.writer,
            ),
            best=self.best,
            shipped=shipped,
            verdict=verdict,
            measured=measured,
        )

    def _tested(self, candidate: Candidate) -> list[Record]:
        """The records on the test split, whatever the budget of the search."""
        assert self.splits.test is not None
        meter = self.runs.meter
        budget, meter.budget, meter.reserve = meter.budget, Budget(), Spent()
        meter.phase = f"test, {candidate.name}"
        try:
            folder = self.runs.place(candidate.hash, "test")
            return self.runs.records(candidate.program, folder, self.splits.test, ves=self.ves)
        finally:
            meter.budget = budget


@contextmanager
def _asked_by(engine: str | RayPool, workers: int) -> Iterator[str | RayPool]:
    """Who asks in all runs of a compile: workers elsewhere stay between them."""
    if engine == THREADS:
        yield engine
        return
    from lynx_dspy.optimize.ray_pool import opened

    with opened(engine, workers) as pool:
        yield pool


@contextmanager
def _work(out: str | Path | None) -> Iterator[Path]:
    """Where runs are kept: beside the artifact, so that it holds nothing else than itself."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="lynx-compile-") as folder:
            yield Path(folder)
        return
    place = Path(out)
    if place.is_file():
        raise BadInput(f"Cannot write to {place}: it is a file. Name a folder for the artifact.")
    kept = place.parent / f".{place.name}.work"
    try:
        kept.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"Cannot write to {kept}: {error.strerror}.") from None
    yield kept

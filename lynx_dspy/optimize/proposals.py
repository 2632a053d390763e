"""What the recipes `demos` and `nearest` propose: programs with harvested demos in their stages."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import dspy

from lynx_dspy.config import LynxConfig
from lynx_dspy.grounding.embedding import default_embedder
from lynx_dspy.modules.nearest import NearestDemos
from lynx_dspy.modules.stage import Stage
from lynx_dspy.optimize import harvest
from lynx_dspy.optimize.budget import BudgetSpent
from lynx_dspy.optimize.demos import Demo, varied
from lynx_dspy.optimize.questions import Questions
from lynx_dspy.optimize.recipes import DemosRecipe, Harvest, NearestRecipe, View
from lynx_dspy.optimize.search import Candidate, Search, program_hash
from lynx_dspy.program import Lynx

_SHARED = {
    "generator.formulate": ("dialect", "grounding", "syntax"),
    "generator.ground": ("structure",),
}
"""Inputs that all questions of a database have in common; the grounding only if it is a schema."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a recipe starts from: the program so far, its config, the training questions, and the
    search that will try what it proposes (with the runs and the budget). `writer` is the model
    that writes instructions, the program's own if None."""

    program: Lynx
    config: LynxConfig
    train: Questions
    search: Search
    seed: int
    writer: dspy.LM | None = None


def propose_demos(task: Task, recipe: DemosRecipe) -> list[Candidate]:
    """Sampled demo sets of all sizes and views in turn."""
    pool = by_stage(gather(task, recipe.harvest))
    made = []
    for number in range(recipe.sets if pool else 0):
        size = recipe.sizes[number % len(recipe.sizes)]
        view = recipe.views[number // len(recipe.sizes) % len(recipe.views)]
        chosen = {
            stage: varied(
                demos,
                size,
                recipe.stage_tokens,
                view,
                random.Random(f"{task.seed}/{number}/{stage}"),
                recipe.spread,
            )
            for stage, demos in pool.items()
        }
        about = {"size": size, "view": view, **summary(d for one in chosen.values() for d in one)}
        made.append(Candidate(f"demos-{number + 1}", with_demos(task.program, chosen, view), about))
    return made


def propose_nearest(task: Task, recipe: NearestRecipe) -> list[Candidate]:
    """All demos in each stage, some of them picked for each question."""
    pool = by_stage(gather(task, recipe.harvest))
    found = default_embedder() if recipe.embedder == "default" else None
    embedder = found.name if found else ""
    made = []
    for view in recipe.views if pool else ():
        for k in recipe.ks:
            program = task.program.deepcopy()
            for stage in stages(program):
                demos = pool.get(stage.stage_name)
                if demos:
                    stage.nearest = NearestDemos(
                        shots=tuple(demo.shown(view) for demo in demos),
                        k=k,
                        tokens=recipe.stage_tokens,
                        same_database_first=recipe.same_database_first,
                        shared=shared_inputs(stage.stage_name, task.config),
                        embedder=embedder,
                    )
            about = {"k": k, "view": view, "embedder": embedder or "keywords"}
            about |= summary(demo for demos in pool.values() for demo in demos)
            made.append(Candidate(f"nearest-{k}-{view}", program, about))
    return made


def gather(task: Task, recipe: Harvest) -> list[Demo]:
    """Run the program once a training question, and make demos of what it did well.

    For golds alone it is only asked what comes before the program is written. When the budget is
    spent, the demos are those of the questions that were asked.
    """
    program = task.program
    if recipe.labels == "gold":
        program = program.deepcopy()
        program.config = harvest.quietly(task.config)
    runs = task.search.runs
    folder = runs.place(program_hash(program), "train")
    runs.meter.phase = "harvest"
    runs.meter.planned += len(task.train.examples)
    runs.meter.reserve = task.search.reserve_for(1, Candidate("", task.program))
    with harvest.TraceBook(folder) as book, suppress(BudgetSpent):
        runs.records(harvest.Traced(program), folder, task.train, observe=book.observe)
    records = runs.kept(folder, task.train)
    found = list(harvest.cases(task.train.examples, records, folder))
    with ExitStack() as stack:
        return harvest.demos_of(found, recipe, task.config, harvest.Schemas(stack))


def with_demos(program: Lynx, chosen: Mapping[str, Sequence[Demo]], view: View) -> Lynx:
    """A copy of the program with these demos in its stages, and no others."""
    program = program.deepcopy()
    for stage in stages(program):
        demos = chosen.get(stage.stage_name, ())
        stage.demos = [dspy.Example(**demo.shown(view).fields) for demo in demos]
    return program


def stages(program: Lynx) -> list[Stage]:
    """The program's stages."""
    return [one for one in program.predictors() if isinstance(one, Stage)]


def shared_inputs(stage: str, config: LynxConfig) -> tuple[str, ...]:
    """Inputs that may stand before picked demos: the same for all questions of a database."""
    if stage == "generator.formulate" and "generator.ground" in config.stages:
        return ()
    return _SHARED.get(stage, ())


def by_stage(demos: Iterable[Demo]) -> dict[str, list[Demo]]:
    """The demos of each stage, in order."""
    found: defaultdict[str, list[Demo]] = defaultdict(list)
    for demo in demos:
        found[demo.stage].append(demo)
    return dict(found)


def summary(demos: Iterable[Demo]) -> dict[str, Any]:
    """Numbers of demos by stage, by label and by database."""
    listed = list(demos)
    return {
        "stages": dict(sorted(Counter(d.stage for d in listed).items())),
        "labels": dict(sorted(Counter(d.label for d in listed).items())),
        "databases": dict(sorted(Counter(d.database for d in listed).items())),
    }

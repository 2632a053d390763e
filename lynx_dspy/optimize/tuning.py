"""The recipe `optuna`: a study over the config, the stages that ask and the number of demos.

    space     what plays a part in this program (`space_of`)
    trial     a point of the space as a program, asked the rungs of the validation questions; it
              ends early where it is beaten in EX and in tokens (`fronts.goes_on`), since Optuna's
              own pruners take one objective only
    end       the best of all that were asked every question; the other trials are told of

What a trial asks is kept by a hash of its program: a config that is proposed again costs nothing.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from lynx_dspy.config import LynxConfig
from lynx_dspy.metrics.thresholds import best_threshold
from lynx_dspy.modules.candidates import NoCandidates
from lynx_dspy.optimize.budget import Spent
from lynx_dspy.optimize.demos import Demo, varied
from lynx_dspy.optimize.fronts import goes_on
from lynx_dspy.optimize.proposals import Task, by_stage, gather, stages, with_demos
from lynx_dspy.optimize.recipes import Halving, OptunaRecipe, Space
from lynx_dspy.optimize.search import (
    BASELINE,
    Candidate,
    Found,
    Search,
    Standing,
    Worth,
    furthest,
    program_hash,
)
from lynx_dspy.optimize.trials import Choice, Trials
from lynx_dspy.program import Lynx

STUDY = "study.db"

_ALWAYS = "generator.formulate"

KNOBS: dict[str, tuple[str, ...]] = {
    "candidates": (_ALWAYS,),
    "rescue_candidates": (_ALWAYS,),
    "candidate_temperature": (_ALWAYS,),
    "top_k": (_ALWAYS,),
    "document_tokens": (_ALWAYS,),
    "schema_tokens": (_ALWAYS,),
    "schema_style": (_ALWAYS,),
    "syntax_tokens": (_ALWAYS,),
    "jit_below": ("generator.unknown_terms",),
    "distill_above_tokens": ("generator.distill",),
    "history_tokens": ("critic.reflect", "critic.diagnose"),
    "max_rounds": ("reviser.repair",),
    "stagnation_rounds": ("reviser.repair",),
    "verify_threshold": ("verifier.compare",),
}
"""Knobs of `LynxConfig`, each with the stages of which one must ask for it to play a part."""

SWITCHES: dict[str, tuple[str, ...]] = {
    "none": (),
    "jit": ("generator.unknown_terms",),
    "align": ("generator.align",),
    "distill": ("generator.distill",),
    "intent": ("generator.intent",),
    "ground": ("generator.ground",),
    "reflect": ("critic.reflect",),
    "diagnose": ("critic.diagnose",),
    "verification": ("verifier.explain", "verifier.compare"),
}
"""Stages that are turned off together; what answers for them by rule is `modules/plain.py`."""

_OF_DOCUMENTS = ("top_k", "document_tokens")
_OF_CANDIDATES = ("candidates", "rescue_candidates", "candidate_temperature")


@dataclass(frozen=True, slots=True)
class Start:
    """The program that a study changes. `pool` are demos by stage, for a program without any."""

    program: Lynx
    config: LynxConfig
    pool: Mapping[str, Sequence[Demo]]
    documents: bool
    """Whether some question has documents."""

    @property
    def asks(self) -> frozenset[str]:
        """The stages that ask a model: in the program, and not left to a rule."""
        return self.config.stages & {stage.stage_name for stage in stages(self.program)}


def tune(task: Task, recipe: OptunaRecipe) -> Found:
    """Run the study, or go on with it: trials that are done are gone through again at no call.

    The un-compiled program is known to the study, and is never dropped. Raises `BadInput` where the
    study's file cannot be used.
    """
    search, meter = task.search, task.search.runs.meter
    start = start_of(task, recipe)
    space = space_of(start, with_learned(task, recipe.space))
    climb = _Climb(search, recipe.halving)
    holder = Candidate(BASELINE, task.program)
    standings, spent = [Standing(holder, search.worth(holder), climb.total)], False
    trials = _opened(task, recipe, holder, space)
    trials.know(point_of(start, space), values_of(standings[0].worth))
    number_of = min(recipe.trials, math.prod(map(len, space.values())))
    meter.reserve, meter.planned = Spent(), meter.planned + number_of * climb.total
    for number in range(0 if spent else number_of):
        choice = trials.choice(number)
        standing, spent = climb.tried(proposed(start, number, choice, recipe, task.seed))
        standings += [standing] if standing else []
        is_whole = standing is not None and standing.asked == climb.total
        if is_whole or not spent:
            trials.tell(number, values_of(standing.worth) if standing and is_whole else None)
        best = _best(standings, climb.total)
        meter.lead(best.candidate.name, best.worth.ex)
        if spent:
            break
    trials.break_off()
    return Found(_best(standings, climb.total).candidate, tuple(furthest(standings)), spent)


def start_of(task: Task, recipe: OptunaRecipe) -> Start:
    """Where the study begins; demos are harvested where some are wanted and none are there."""
    wanted = max(recipe.space.demos) > 0 and not demos_of(task.program)
    asked = (*task.train.examples, *task.search.val.examples)
    return Start(
        task.program,
        task.config,
        by_stage(gather(task, recipe.harvest)) if wanted else {},
        documents=any(one.documents for one in asked),
    )


def with_learned(task: Task, space: Space) -> Space:
    """The space with the threshold that the attempts at the training questions speak for.

    They were made where demos were harvested; without them the space stays as it is, as it does
    where the threshold is held.
    """
    runs = task.search.runs
    records = runs.kept(runs.place(program_hash(task.program), "train"), task.train)
    judged = [
        (doubt, attempt["right"])
        for record in records
        for attempt in record["attempts"]
        if (doubt := attempt.get("doubt")) is not None and attempt["right"] is not None
    ]
    if not judged or len(space.verify_threshold) == 1:
        return space
    thresholds = sorted({*space.verify_threshold, best_threshold(judged)})
    return replace(space, verify_threshold=tuple(thresholds))


def space_of(start: Start, space: Space) -> dict[str, tuple[Any, ...]]:
    """What is chosen among for this program: knobs, stages that may be off (False), demos.

    >>> from lynx_dspy.config import EMBEDDED
    >>> start = Start(Lynx(), EMBEDDED, {}, documents=False)
    >>> space_of(start, Space(top_k=(2, 4), max_rounds=(0, 1), schema_tokens=(700,))).keys()
    dict_keys(['candidates', 'rescue_candidates', 'candidate_temperature', 'schema_tokens', \
'schema_style', 'syntax_tokens'])
    """
    idle = {*(() if start.documents else _OF_DOCUMENTS)}
    if isinstance(start.program.candidates, NoCandidates):
        idle |= {*_OF_CANDIDATES}
    found: dict[str, tuple[Any, ...]] = {
        one.name: getattr(space, one.name)
        for one in fields(space)
        if one.name not in idle and start.asks.intersection(KNOBS.get(one.name, ()))
    }
    found |= {
        name: (True, False) for name in space.switches if start.asks.intersection(SWITCHES[name])
    }
    if start.pool or demos_of(start.program):
        found["demos"] = space.demos
    return {name: tuple(dict.fromkeys(values)) for name, values in found.items()}


def point_of(start: Start, names: Iterable[str]) -> Choice:
    """Where the program stands in a space with these names."""
    own = {"demos": demos_of(start.program), **dict.fromkeys(SWITCHES, True)}
    return {name: own[name] if name in own else getattr(start.config, name) for name in names}


def demos_of(program: Lynx) -> int:
    """The most demos that a stage of the program shows."""
    shown = (max(len(one.demos), one.nearest.k if one.nearest else 0) for one in stages(program))
    return max(shown, default=0)


def proposed(
    start: Start, number: int, choice: Choice, recipe: OptunaRecipe, seed: int
) -> Candidate:
    """The candidate of a trial."""
    return Candidate(
        f"optuna-{number + 1}", made(start, choice, recipe, seed), {"trial": number, **choice}
    )


def made(start: Start, choice: Choice, recipe: OptunaRecipe, seed: int) -> Lynx:
    """The program at a point of the space; where it stands already it is the very program."""
    if choice == point_of(start, choice):
        return start.program
    off = {s for name in SWITCHES if choice.get(name) is False for s in SWITCHES[name]}
    knobs = {name: value for name, value in choice.items() if name in KNOBS}
    program: Lynx = start.program.deepcopy()
    if "demos" in choice:
        number = int(choice["demos"])
        program = (
            _with_harvested(start, number, recipe, seed)
            if start.pool
            else _with_fewer(program, number)
        )
    program.config = start.config.with_(stages=start.config.stages - off, **knobs)
    return program


def _with_harvested(start: Start, number: int, recipe: OptunaRecipe, seed: int) -> Lynx:
    chosen = {
        stage: varied(
            demos,
            number,
            recipe.stage_tokens,
            recipe.view,
            random.Random(f"{seed}/{stage}"),
            recipe.spread,
        )
        for stage, demos in start.pool.items()
    }
    return with_demos(start.program, chosen, recipe.view)


def _with_fewer(program: Lynx, number: int) -> Lynx:
    """At most `number` demos a stage, of those that the program has."""
    for stage in stages(program):
        stage.demos = stage.demos[:number]
        if stage.nearest is not None:
            stage.nearest = replace(stage.nearest, k=number) if number else None
    return program


class _Climb:
    """Asks one trial after another the rungs of the validation questions."""

    def __init__(self, search: Search, recipe: Halving) -> None:
        self.total = len(search.val.examples)
        self._search, self._keep = search, recipe.keep
        self._rungs = sorted({*(math.ceil(share * self.total) for share in recipe.rungs)})
        self._reached: dict[int, list[Worth]] = {asked: [] for asked in self._rungs}

    def tried(self, candidate: Candidate) -> tuple[Standing | None, bool]:
        """How far the trial came, None if no rung was asked whole; whether the budget ended it."""
        standing: Standing | None = None
        for asked in self._rungs:
            now, short = self._search.stand(candidate, asked)
            standing = now or standing
            if short or now is None:
                return standing, True
            others = self._reached[asked]
            stays = not now.worth.n or goes_on(now.worth, others, self._keep)
            if now.worth.n:
                others.append(now.worth)
            if not stays:
                break
        return standing, False


def values_of(worth: Worth) -> tuple[float, float] | None:
    """The objectives: EX and tokens a question; None where nothing could be judged."""
    return (worth.ex, -worth.thrift) if worth.n else None


def _opened(
    task: Task, recipe: OptunaRecipe, holder: Candidate, space: Mapping[str, Sequence[Any]]
) -> Trials:
    return Trials(
        task.search.runs.folder / STUDY,
        holder.hash,
        space,
        sampler=recipe.sampler,
        startup=recipe.startup,
        seed=task.seed,
    )


def _best(standings: Sequence[Standing], total: int) -> Standing:
    """The best of those that were asked everything; the first of equals."""
    return max((one for one in standings if one.asked == total), key=lambda one: one.worth)

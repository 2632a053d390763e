"""Search: candidates on the validation questions, the weak ones dropped early.

Every run of a program goes through `evaluate`, into a folder named after a hash of the program: its
journal is keyed by (candidate, question), so that a search that was stopped goes on where it ended
and comes to the same result.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, cast

import dspy

from lynx_dspy.config import LynxConfig
from lynx_dspy.metrics.intervals import Interval, mcnemar, paired_bootstrap
from lynx_dspy.optimize import journal
from lynx_dspy.optimize.budget import BudgetSpent, Meter, Spent, cost, mean
from lynx_dspy.optimize.evaluate import Observe, evaluate
from lynx_dspy.optimize.manifest import config_json
from lynx_dspy.optimize.plainjson import digest_of
from lynx_dspy.optimize.questions import Questions
from lynx_dspy.optimize.recipes import Halving
from lynx_dspy.optimize.records import PREDICTIONS, Record
from lynx_dspy.optimize.runner import Progress
from lynx_dspy.optimize.states import module_graph, predictors, state_of
from lynx_dspy.program import Lynx

BASELINE = "baseline"


@dataclass(frozen=True)
class Candidate:
    """A program to try; `about` says how it was made, in JSON values."""

    name: str
    program: Lynx
    about: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def hash(self) -> str:
        """Equal for programs that ask the same; the name plays no part."""
        return program_hash(self.program)


def program_hash(program: Lynx) -> str:
    """A hash over all that decides a program's prompts: parts, states, picked demos, config."""
    config = program.config
    return digest_of(
        {
            "modules": module_graph(program),
            "states": {path: state_of(path, one) for path, one in predictors(program).items()},
            "files": dict(program.artifact_files()),
            "config": config_json(config) if isinstance(config, LynxConfig) else None,
        }
    )


@dataclass(frozen=True, slots=True)
class Objective:
    """EX, with Soft-F1 as tie-breaker; 1,000 tokens a question are worth `token_weight` of EX."""

    token_weight: float = 0.0

    def worth(self, records: Sequence[Record]) -> Worth:
        """Over the questions that could be judged; without any, nothing is worth less."""
        scored = [r for r in records if r["scores"]]
        if not scored:
            return Worth(-math.inf)
        ex = fmean(r["scores"]["ex"] for r in scored)
        tokens = fmean(r["usage"]["total_tokens"] for r in scored)
        return Worth(
            value=round(ex - self.token_weight * tokens / 1_000, 9),
            soft_f1=round(fmean(r["scores"]["soft_f1"] for r in scored), 9),
            thrift=-tokens,
            ex=ex,
            n=len(scored),
        )


@dataclass(frozen=True, slots=True, order=True)
class Worth:
    """Compared by objective, then Soft-F1, then fewer tokens."""

    value: float
    soft_f1: float = 0.0
    thrift: float = 0.0
    ex: float = field(default=0.0, compare=False)
    n: int = field(default=0, compare=False)


class Runs:
    """Runs programs over questions within one folder and one budget."""

    def __init__(
        self, folder: Path, lm: dspy.LM, meter: Meter, workers: int = 1, **options: Any
    ) -> None:
        self.folder, self.meter = folder, meter
        self.lm, self._workers, self._options = lm, workers, options

    def place(self, name: str, split: str) -> Path:
        """Where the run of a program (by its hash) over a split is kept."""
        return self.folder / split / name

    def records(
        self,
        program: dspy.Module,
        folder: Path,
        questions: Questions,
        observe: Observe | None = None,
        lm: dspy.LM | None = None,
        ves: int = 0,
    ) -> list[Record]:
        """The records of all `questions`, asking those that are not done.

        `lm` takes the place of the runs' own model, `ves` is as in `evaluate`. Raises `BudgetSpent`
        between two questions, `BadInput` and `ModelError` as `evaluate`.
        """
        ids = [one.id for one in questions.examples]
        before = 0

        def tick(progress: Progress) -> None:
            nonlocal before
            self.meter.look(folder, ids, progress.asked - before)
            before = progress.asked

        evaluate(
            program,
            questions,
            lm=lm or self.lm,
            out=folder,
            workers=self._workers,
            watch=tick,
            observe=observe,
            ves=ves,
            **self._options,
        )
        return self.kept(folder, questions)

    def kept(self, folder: Path, questions: Questions) -> list[Record]:
        """The records that are there already, in the order of `questions`."""
        by_id = {line["id"]: cast(Record, line) for line in journal.lines(folder / PREDICTIONS)}
        return [by_id[one.id] for one in questions.examples if one.id in by_id]


@dataclass(frozen=True, slots=True)
class Standing:
    """A candidate with what it did on the first `asked` questions of the search's order."""

    candidate: Candidate
    worth: Worth
    asked: int


@dataclass(frozen=True, slots=True)
class Found:
    """How a search ended: the best candidate that ran on all questions, and every standing."""

    best: Candidate
    standings: tuple[Standing, ...]
    budget_spent: bool = False


class Search:
    """Tries candidates on the validation split, all in one order of questions."""

    def __init__(self, runs: Runs, val: Questions, objective: Objective, seed: int) -> None:
        self.runs, self.objective = runs, objective
        self.val = replace(val, examples=tuple(dealt(val.examples, seed)))

    def records(self, candidate: Candidate, most: int | None = None) -> list[Record]:
        """The candidate's records on the first `most` questions. Raises `BudgetSpent`."""
        # One database after another: a model that caches prefixes reads each schema once.
        chosen = sorted(self.val.examples[:most], key=lambda one: str(one.db))
        part = replace(self.val, examples=tuple(chosen))
        return self.runs.records(candidate.program, self.runs.place(candidate.hash, "val"), part)

    def kept(self, candidate: Candidate) -> list[Record]:
        """What the candidate did so far, without asking."""
        return self.runs.kept(self.runs.place(candidate.hash, "val"), self.val)

    def reserve_for(self, candidates: int, like: Candidate) -> Spent:
        """What it would cost to ask so many candidates every question, going by `like`."""
        done = self.kept(like)
        each = mean(sum(map(cost, done), Spent()), len(done))
        return each.times(candidates * len(self.val.examples))

    def halve(self, holder: Candidate, others: Sequence[Candidate], recipe: Halving) -> Found:
        """Successive halving; `holder` ran on all questions already and is never dropped.

        Until the last rung as much of the budget is kept back as one candidate needs there.
        """
        field_ = [one for one in unique(others) if one.hash != holder.hash]
        total = len(self.val.examples)
        standings = {holder.hash: Standing(holder, self.worth(holder, total), total)}
        self.runs.meter.lead(holder.name, standings[holder.hash].worth.ex)
        self.runs.meter.planned += planned(len(field_), total, recipe)
        spent = False
        for share in recipe.rungs if field_ else ():
            asked, last = math.ceil(share * total), share == recipe.rungs[-1]
            if spent and not last:
                continue
            self.runs.meter.reserve = Spent() if last else self.reserve_for(1, holder)
            ran, short = self._rung(field_, asked)
            spent = spent or short
            standings |= {one.candidate.hash: one for one in ran}
            if ran and not last:
                field_ = self._better(holder, ran, asked, recipe)
        self.runs.meter.reserve = Spent()
        whole = [s for s in standings.values() if s.asked == total]
        best = max(whole, key=lambda s: (s.worth, s.candidate.hash == holder.hash))
        self.runs.meter.lead(best.candidate.name, best.worth.ex)
        return Found(best.candidate, tuple(standings.values()), spent)

    def stand(self, candidate: Candidate, asked: int) -> tuple[Standing | None, bool]:
        """The candidate on the first `asked` questions, and whether the budget is spent.

        Without a standing if it was spent before the last of them.
        """
        self.runs.meter.phase = f"{candidate.name}, {asked} questions"
        short = False
        try:
            self.records(candidate, asked)
        except BudgetSpent:
            short = True
            done = {record["id"] for record in self.kept(candidate)}
            if any(one.id not in done for one in self.val.examples[:asked]):
                return None, True
        return Standing(candidate, self.worth(candidate, asked), asked), short

    def worth(self, candidate: Candidate, asked: int | None = None) -> Worth:
        """What the candidate was worth on the first `asked` questions (all), without asking."""
        ids = {one.id for one in self.val.examples[:asked]}
        return self.objective.worth([r for r in self.kept(candidate) if r["id"] in ids])

    def _rung(self, field_: Sequence[Candidate], asked: int) -> tuple[list[Standing], bool]:
        """Those candidates that could be asked `asked` questions, and whether money ran out."""
        ran: list[Standing] = []
        for number, candidate in enumerate(field_):
            standing, short = self.stand(candidate, asked)
            ran += [standing] if standing is not None else []
            if short:  # what was asked already, by an optimizer, costs nothing
                return ran + self._stood(field_[number + 1 :], asked), True
        return ran, False

    def _stood(self, field_: Sequence[Candidate], asked: int) -> list[Standing]:
        """Standings of those candidates that were asked the first `asked` questions before."""
        wanted = {one.id for one in self.val.examples[:asked]}
        return [
            Standing(one, self.worth(one, asked), asked)
            for one in field_
            if wanted <= {record["id"] for record in self.kept(one)}
        ]

    def _better(
        self,
        holder: Candidate,
        ran: Sequence[Standing],
        asked: int,
        recipe: Halving,
    ) -> list[Candidate]:
        """The better share of a rung, best first, so that a short budget goes to the best."""
        ranked = sorted(ran, key=lambda s: s.worth, reverse=True)
        known = [(s.worth, s.candidate) for s in ranked] + [(self.worth(holder, asked), holder)]
        best = max(known, key=lambda pair: pair[0])
        self.runs.meter.lead(best[1].name, best[0].ex)
        return [s.candidate for s in ranked[: max(1, math.ceil(len(ranked) * recipe.keep))]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the best candidate takes the baseline's place, and why.

    `change` is its EX less the baseline's with the paired 95 % interval; `p` is McNemar's.
    """

    kept: bool
    reason: str
    change: Interval | None = None
    p: float | None = None


def judge(
    baseline: Sequence[Record], best: Sequence[Record], objective: Objective, same: bool
) -> Verdict:
    """The best candidate against the baseline on the same validation questions.

    It is kept if it is worth more and the paired interval of EX does not lie below 0.
    """
    if same:
        return Verdict(False, "no candidate was better than the un-compiled program")
    first = {r["id"]: r for r in baseline if r["scores"]}
    second = {r["id"]: r for r in best if r["scores"]}
    shared = [id for id in first if id in second]
    if not shared:
        return Verdict(False, "no question could be judged for both programs")
    before = [first[id]["scores"]["ex"] for id in shared]
    after = [second[id]["scores"]["ex"] for id in shared]
    change = paired_bootstrap(before, after)
    p = mcnemar([v == 1.0 for v in before], [v == 1.0 for v in after])
    worth = [objective.worth([side[id] for id in shared]) for side in (first, second)]
    if worth[1] <= worth[0]:
        return Verdict(False, "it is worth no more than the un-compiled program", change, p)
    if change.high < 0:
        return Verdict(False, "its EX is below that of the un-compiled program", change, p)
    sure = "" if change.low > 0 else "; the interval holds 0, so it may be chance"
    return Verdict(True, f"EX changes by {change.value * 100:+.1f} points{sure}", change, p)


def planned(candidates: int, questions: int, recipe: Halving) -> int:
    """Questions that a search asks at most.

    >>> planned(8, 40, Halving())
    160
    """
    total = before = 0
    for share in recipe.rungs if candidates else ():
        asked = math.ceil(share * questions)
        total += candidates * (asked - before)
        before = asked
        candidates = max(1, math.ceil(candidates * recipe.keep))
    return total


def furthest(standings: Sequence[Standing]) -> list[Standing]:
    """One standing a program, that with most questions, in the order of the first of each."""
    found: dict[str, Standing] = {}
    for one in standings:
        before = found.setdefault(one.candidate.hash, one)
        if one.asked > before.asked:
            found[one.candidate.hash] = one
    return list(found.values())


def unique(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates without those that ask the same as an earlier one."""
    return list({one.hash: one for one in reversed(candidates)}.values())[::-1]


def dealt(examples: Sequence[dspy.Example], seed: int) -> list[dspy.Example]:
    """The questions in a seeded order in which databases take turns: every rung sees all."""
    mixed = list(examples)
    random.Random(seed).shuffle(mixed)
    turns: dict[str, int] = {}

    def turn(one: dspy.Example) -> int:
        turns[one.db] = turns.get(one.db, -1) + 1
        return turns[one.db]

    return [one for _, one in sorted(((turn(e), e) for e in mixed), key=lambda pair: pair[0])]

"""Tally: records in, one at a time, a report out. Only numbers are held."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

from lynx_dspy.datasets import DATASETS, Official
from lynx_dspy.metrics.intervals import Interval, bootstrap, wilson
from lynx_dspy.optimize.records import (
    SCORES,
    UNAVAILABLE,
    UNSCORED,
    Change,
    Cost,
    Group,
    LinkingRecord,
    Record,
    Report,
    RunConfig,
    StageUse,
    Verifier,
)

PROPORTIONS = ("ex", "ex_strict")
"""Scores that are right or wrong: Wilson's interval. The others get the bootstrap's."""

AXES = ("difficulty", "dialect", "db")
_WRITTEN = ("formulate", "sample", "repair")
"""Sources of attempts that a model wrote."""

_NEW = ("formulate", "sample")
"""Of these, programs that change none before them."""


def report_on(records: Iterable[Record], config: RunConfig) -> Report:
    """The report of a run, the same whatever order its questions were finished in."""
    known = DATASETS.get(config["dataset"])
    tally = _Tally(known.official if known else ())
    for record in records:
        tally.add(record)
    return tally.report(config)


def interval(name: str, values: Sequence[float]) -> Interval:
    """Mean and 95 % interval of one score.

    >>> interval("ex", [1.0, 0.0]).value
    0.5
    """
    if name in PROPORTIONS:
        return wilson(round(sum(values)), len(values))
    return bootstrap(sorted(values))


@dataclass(slots=True)
class _Part:
    """The scores of a run or of a group in it."""

    n: int = 0
    scored: int = 0
    scores: dict[str, array[float]] = field(default_factory=lambda: defaultdict(_doubles))

    def add(self, record: Record) -> None:
        self.n += 1
        self.scored += bool(record["scores"])
        for name, value in record["scores"].items():
            self.scores[name].append(value)

    def intervals(self) -> dict[str, Interval]:
        return {name: interval(name, self.scores[name]) for name in SCORES if self.scores[name]}


def _doubles() -> array[float]:
    return array("d")


@dataclass(slots=True)
class _Sum:
    """Sums of what stages cost."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    billed_tokens: int = 0
    seconds: float = 0.0

    def add(self, use: StageUse) -> None:
        self.calls += use["calls"]
        self.prompt_tokens += use["prompt_tokens"]
        self.completion_tokens += use["completion_tokens"]
        self.billed_tokens += use["billed_tokens"]
        self.seconds += use["seconds"]

    def over(self, n: int) -> Cost:
        """The mean over `n` questions."""
        n = max(n, 1)
        return Cost(
            calls=round(self.calls / n, 4),
            prompt_tokens=round(self.prompt_tokens / n, 2),
            completion_tokens=round(self.completion_tokens / n, 2),
            total_tokens=round((self.prompt_tokens + self.completion_tokens) / n, 2),
            billed_tokens=round(self.billed_tokens / n, 2),
            seconds=round(self.seconds / n, 4),
        )


class _Means:
    """Means of the four shares of schema linking."""

    def __init__(self) -> None:
        self._values: dict[str, array[float]] = defaultdict(_doubles)

    def add(self, shares: LinkingRecord | None) -> None:
        for name, value in (shares or {}).items():
            self._values[name].append(float(str(value)))

    def means(self) -> dict[str, float]:
        found = {name: round(fmean(values), 4) for name, values in self._values.items()}
        return found | {"n": max(map(len, self._values.values()))} if found else {}


class _Tally:
    def __init__(self, official: Sequence[Official]) -> None:
        self.official = {one: 0 for one in official}
        self.whole = _Part()
        self.by: dict[str, dict[str, _Part]] = {axis: defaultdict(_Part) for axis in AXES}
        self.statuses: Counter[str] = Counter()
        self.finishes: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.answered = self.ran = self.cut = self.any_right = self.attempted = 0
        self.rounds = 0
        self.seconds = 0.0
        self.cost = _Sum()
        self.by_stage: dict[str, _Sum] = defaultdict(_Sum)
        self.by_round: dict[int, _Sum] = defaultdict(_Sum)
        self.linking, self.linked = _Means(), _Means()
        self.attempts = _AttemptTally()

    def add(self, record: Record) -> None:
        self.whole.add(record)
        for axis, parts in self.by.items():
            value = str(record[axis])  # type: ignore[literal-required]
            parts[value or "(none)"].add(record)
        self.statuses[record["status"]] += 1
        if record["status"] != UNAVAILABLE:
            self._add_cost(record)
        if record["scores"]:
            self._add_scored(record)

    def _add_cost(self, record: Record) -> None:
        self.answered += 1
        self.finishes[record["finish"]] += 1
        self.rounds += record["rounds"]
        self.seconds += record["seconds"]
        for use in record["stages"]:
            self.cost.add(use)
            self.by_stage[use["stage"]].add(use)
            self.by_round[use["round"]].add(use)
            self.cut += use["cut"]
        self.attempts.add_extraction(record)

    def _add_scored(self, record: Record) -> None:
        self.ran += record["status"] in ("ok", "empty")
        for one in self.official:
            self.official[one] += record["scores"]["ex"] == 1 and record["id"] not in one.without
        self.linking.add(record["linking"])
        self.linked.add(record["linked"])
        if record["failure"]:
            self.failures[record["failure_class"] or record["failure"]["kind"]] += 1
        elif not record["scores"]["ex"]:
            self.failures[record["status"]] += 1
        if record["attempts"]:
            self.attempted += 1
            self.any_right += any(a["right"] for a in record["attempts"])
        self.attempts.add(record)

    def report(self, config: RunConfig) -> Report:
        cost = self.cost.over(self.answered)
        scored = self.whole.scored
        return Report(
            dataset=config["dataset"],
            split=config["split"],
            dataset_hash=config["dataset_hash"],
            n=self.whole.n,
            scored=scored,
            unscored={status: self.statuses[status] for status in UNSCORED},
            statuses=dict(self.statuses.most_common()),
            scores=self.whole.intervals(),
            executable=_share(self.ran, scored),
            extraction=self.attempts.extraction(),
            tokens_per_question=cost.total_tokens,
            rounds_mean=round(self.rounds / max(1, self.answered), 4),
            seconds_per_question=round(self.seconds / max(1, self.answered), 4),
            cost=cost,
            by_stage={name: total.over(self.answered) for name, total in self.by_stage.items()},
            by_round={
                str(number): self.by_round[number].over(self.answered)
                for number in sorted(self.by_round)
            },
            cut_replies=self.cut,
            finishes=dict(self.finishes.most_common()),
            failures=dict(self.failures.most_common()),
            linking=self.linking.means(),
            linked=self.linked.means(),
            verifier=self.attempts.verifier(),
            changes=self.attempts.changes(),
            ex_by_round=self.attempts.ex_by_round(),
            any_right=_share(self.any_right, self.attempted),
            by={axis: _groups(parts) for axis, parts in self.by.items()},
            lm=config["lm"],
            artifact=config["artifact"],
            config=config["config"],
            without=config["without"],
            version=config["version"],
            official={str(one.n): right for one, right in self.official.items()},
        )


class _AttemptTally:
    """What the attempts of the loop say of its parts."""

    def __init__(self) -> None:
        self._written = self._extracted = 0
        self._verdicts: Counter[tuple[bool, bool]] = Counter()
        self._sources: Counter[str] = Counter()
        self._repaired: Counter[str] = Counter()
        self._broken: Counter[str] = Counter()
        self._rights: Counter[tuple[bool, ...]] = Counter()

    def add_extraction(self, record: Record) -> None:
        written = [a for a in record["attempts"] if a["source"] in _WRITTEN]
        self._written += len(written)
        self._extracted += sum(a["extracted"] for a in written)

    def add(self, record: Record) -> None:
        attempts = record["attempts"]
        for attempt in attempts:
            self._sources[attempt["source"]] += 1
            if attempt["verified"] is not None:
                self._verdicts[attempt["verified"], bool(attempt["right"])] += 1
        for before, after in pairwise(attempts):
            if after["source"] in _NEW:
                continue
            self._repaired[after["source"]] += bool(after["right"]) and not before["right"]
            self._broken[after["source"]] += bool(before["right"]) and not after["right"]
        if record["right_by_round"]:
            self._rights[tuple(record["right_by_round"])] += 1

    def extraction(self) -> float | None:
        return _share(self._extracted, self._written)

    def verifier(self) -> Verifier:
        verdicts = self._verdicts
        rejected = verdicts[False, False] + verdicts[False, True]
        wrong = verdicts[False, False] + verdicts[True, False]
        return Verifier(
            rejected_wrong=verdicts[False, False],
            rejected_right=verdicts[False, True],
            passed_right=verdicts[True, True],
            passed_wrong=verdicts[True, False],
            precision=_share(verdicts[False, False], rejected),
            recall=_share(verdicts[False, False], wrong),
        )

    def changes(self) -> dict[str, Change]:
        return {
            source: Change(n, self._repaired[source], self._broken[source])
            for source, n in sorted(self._sources.items())
        }

    def ex_by_round(self) -> list[float]:
        n = sum(self._rights.values())
        rounds = max(map(len, self._rights), default=0)
        return [
            round(sum(c for r, c in self._rights.items() if r[min(k, len(r) - 1)]) / n, 6)
            for k in range(rounds)
        ]


def _groups(parts: dict[str, _Part]) -> dict[str, Group]:
    return {
        name: Group(part.n, part.scored, part.intervals()) for name, part in sorted(parts.items())
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None

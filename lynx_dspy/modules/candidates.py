"""Candidates: several formulations where tokens are free, the one that most results agree on taken.

Not part of the paper's loop; off unless the profile of the backbone measured a gain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from lynx_dspy import config
from lynx_dspy.progress import report
from lynx_dspy.values import Attempt, Status

Sampler = Callable[[int], Sequence[Attempt]]


class Candidates:
    """Sample, run, and group by result."""

    def __call__(
        self, first: Sequence[Attempt], sample: Sampler, spent: Callable[[], int] = lambda: 0
    ) -> tuple[Attempt, ...]:
        """All attempts, the chosen one last. `sample(k)` writes, checks and runs the k-th program.

        Sampling ends early once the leading result cannot be overtaken or `spent()` has reached
        `question_tokens`, and goes on for some more (`rescue_candidates`) as long as no program
        gives rows.
        """
        settings = config.current()
        tried = [tuple(first)]
        for k in range(1, settings.candidates + settings.rescue_candidates):
            if _decided([one[-1] for one in tried], settings.candidates):
                break
            if 0 < settings.question_tokens <= spent():
                break
            report("generator.formulate", f"candidate {k + 1}/{max(k + 1, settings.candidates)}")
            tried.append(tuple(sample(k)))
        chosen = tried.pop(choose([one[-1] for one in tried]))
        return tuple(attempt for one in (*tried, chosen) for attempt in one)


class NoCandidates(Candidates):
    """For ablation: the first program goes into the loop, as in the paper."""

    def __call__(
        self, first: Sequence[Attempt], sample: Sampler, spent: Callable[[], int] = lambda: 0
    ) -> tuple[Attempt, ...]:
        return tuple(first)


def choose(finals: Sequence[Attempt]) -> int:
    """The first position of the largest group of equal results; rows count before none."""
    groups = Counter(result_key(a) for a in finals if a.outcome.ran)

    def worth(position: int) -> tuple[bool, bool, int, int, int]:
        attempt = finals[position]
        votes = groups[result_key(attempt)] if attempt.outcome.ran else 0
        has_rows = attempt.outcome.status is Status.OK
        return attempt.outcome.ran, has_rows, votes, -len(attempt.findings), -position

    return max(range(len(finals)), key=worth)


def runners_up(attempts: Sequence[Attempt]) -> list[Attempt]:
    """One candidate for each result with rows other than the last attempt's, best group first."""
    left = [a for a in attempts if a.outcome.status is Status.OK]
    taken = [result_key(attempts[-1])]
    found: list[Attempt] = []
    while left := [a for a in left if result_key(a) not in taken]:
        found.append(left[choose(left)])
        taken.append(result_key(found[-1]))
    return found


def result_key(attempt: Attempt) -> tuple[tuple[str, ...], ...]:
    """Equal for equal results, whatever the order of rows and the names of columns."""
    return tuple(sorted(tuple(_rounded(v) for v in row) for row in attempt.outcome.rows))


def agreement(attempts: Sequence[Attempt], answer: Attempt) -> tuple[int, int]:
    """How many of the programs written before any repair gave the answer's result, and of how many.

    Each of them left one attempt with source formulate or sample; if that one was mended, the
    mended program ran in its place.
    """
    first = [a for a in attempts if a.round == 0]
    key = result_key(answer)
    votes = sum(a.outcome.ran and result_key(a) == key for a in first)
    return votes, sum(a.source in ("formulate", "sample") for a in first)


def _rounded(value: object) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _decided(finals: Sequence[Attempt], wanted: int) -> bool:
    """Whether there are rows, and no other result can still win more votes than the leader."""
    counts = Counter(result_key(a) for a in finals if a.outcome.status is Status.OK)
    leader, second = [*(n for _, n in counts.most_common(2)), 0, 0][:2]
    left = wanted - len(finals)
    return leader > 0 and (left <= 0 or leader > second + left)

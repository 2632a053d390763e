"""Splits that do not leak: by database where there are several, and a check of what got across."""

from __future__ import annotations

import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import dspy

_WORD = re.compile(r"\w+")

_ROUNDING = 1e-9
"""0.7 * 10 is a little more than 7 in floats, which must not become 8."""


@dataclass(frozen=True, slots=True)
class Leak:
    """A test question that training gives away. `kind` is `question` or `gold`.

    `likeness` is the share of words that both questions have in common, in [0, 1].
    """

    kind: str
    train_id: str
    test_id: str
    likeness: float


def split(
    examples: Sequence[dspy.Example], shares: Sequence[float], seed: int = 0
) -> list[list[dspy.Example]]:
    """Parts of about these shares (of their sum), each database whole in one part.

    Largest databases are placed first, each where most is still wanted. With fewer databases than
    parts the questions themselves are dealt out. The order within a part is that of `examples`.
    """
    groups: dict[str, list[int]] = defaultdict(list)
    for position, one in enumerate(examples):
        groups[one.db].append(position)
    if len(groups) < len(shares):
        groups = {str(position): [position] for position in range(len(examples))}
    order = list(groups.values())
    random.Random(seed).shuffle(order)
    order.sort(key=len, reverse=True)
    wanted = [share / sum(shares) * len(examples) for share in shares]
    parts: list[list[int]] = [[] for _ in shares]
    for group in order:
        most = max(range(len(parts)), key=lambda i: wanted[i] - len(parts[i]))
        parts[most].extend(group)
    return [[examples[i] for i in sorted(part)] for part in parts]


def leaks(
    train: Sequence[dspy.Example], test: Sequence[dspy.Example], threshold: float = 0.8
) -> list[Leak]:
    """Test questions that nearly repeat a training question, or share its gold on one database.

    Two questions nearly repeat each other if the Jaccard likeness of their bags of words reaches
    `threshold`. An index by rare words spares comparing every pair.
    """
    return [*_alike_questions(train, test, threshold), *_equal_golds(train, test)]


def _alike_questions(
    train: Sequence[dspy.Example], test: Sequence[dspy.Example], threshold: float
) -> Iterator[Leak]:
    bags = [_words(one.question) for one in train]
    frequency = Counter(word for bag in bags for word in bag)
    index: dict[tuple[str, int], list[int]] = defaultdict(list)
    for position, bag in enumerate(bags):
        for word in _rarest(bag, frequency, threshold):
            index[word].append(position)
    for one in test:
        bag = _words(one.question)
        near = {i for word in _rarest(bag, frequency, threshold) for i in index.get(word, ())}
        for position in sorted(near):
            likeness = len(bag & bags[position]) / len(bag | bags[position])
            if likeness >= threshold:
                yield Leak("question", train[position].id, one.id, likeness)


def _words(question: str) -> frozenset[tuple[str, int]]:
    """The words with the number of their occurrence, so that sets behave like bags."""
    seen: Counter[str] = Counter()
    words = []
    for word in _WORD.findall(question.casefold()):
        words.append((word, seen[word]))
        seen[word] += 1
    return frozenset(words)


def _rarest(
    bag: frozenset[tuple[str, int]], frequency: Counter[tuple[str, int]], threshold: float
) -> list[tuple[str, int]]:
    """The prefix of the words, rarest first, of which alike bags must share at least one.

    Bags of likeness t share at least t of the words of either, so leaving out all but
    n - ceil(t n) + 1 words loses none.
    """
    ranked = sorted(bag, key=lambda word: (frequency[word], word))
    shared = math.ceil(threshold * len(ranked) - _ROUNDING)
    return ranked[: len(ranked) - shared + 1]


def _equal_golds(train: Sequence[dspy.Example], test: Sequence[dspy.Example]) -> Iterator[Leak]:
    homes = {(one.db, _plain(sql)): one for one in train for sql in one.gold_sql}
    for one in test:
        for sql in one.gold_sql:
            known = homes.get((one.db, _plain(sql)))
            if known is not None:
                both = _words(known.question), _words(one.question)
                likeness = len(both[0] & both[1]) / max(1, len(both[0] | both[1]))
                yield Leak("gold", known.id, one.id, likeness)
                break


def _plain(sql: str) -> str:
    return " ".join(sql.casefold().rstrip("; \n").split())

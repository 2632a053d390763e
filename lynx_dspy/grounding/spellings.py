"""When two spellings are one value: signs, plurals, number formats and slips of the pen (III-A2).

`key` is what spellings share that differ in signs, case, accents, plural or number format alone.
Keys that differ by one or two edits share a piece (`pieces`, `probes`): of k + 1 parts of a text,
k edits leave one as it was. So near spellings are looked up, not searched for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from lynx_dspy.grounding.identifiers import fold

SHORTEST = 5
"""Keys with fewer letters are too near to too much to be compared for slips."""

LONGEST = 40
"""Keys with more signs are not compared for slips."""

_MOST_EDITS = 2
_TWO_EDITS_FROM = 9
_DIGITS_OF_A_NUMBER = 7
_PART = re.compile(r"[^\W_]+")
_PLURAL = re.compile(r"(?<=..)ies$|(?<=[cs]h|ss|.x|.z)es$|(?<=..[^sui])s$")
_NUMBER = re.compile(r"[-+]?[$€£¥]?\s?(\d{1,3}(?:[, ]\d{3})+|\d+)(\.\d+)?\s?([$€£¥%]?)")


@lru_cache(maxsize=65_536)
def key(text: str) -> str:
    """What is left of a spelling when signs, case, accents, plural and number format are taken off.

    >>> key("New-York") == key("new york"), key("AB 12-34") == key("ab1234")
    (True, True)
    >>> key("Batteries"), key("$1,200.00"), key("5 %"), key("1-5")
    ('battery', '1200', '5%', '1.5')
    """
    folded = fold(text)
    if (number := _number(folded)) is not None:
        return number
    parts = _PART.findall(folded)
    if len(parts) > 1 and parts[0] == "the":
        del parts[0]
    letters = any(part[0].isalpha() or part[-1].isalpha() for part in parts)
    if not letters and sum(map(len, parts)) < _DIGITS_OF_A_NUMBER:
        return ".".join(parts) or folded
    return "".join(map(_singular, parts))


def _number(folded: str) -> str | None:
    match = _NUMBER.fullmatch(folded)
    if match is None:
        return None
    whole, fraction, mark = match.groups()
    digits = re.sub(r"\D", "", whole)
    fraction = (fraction or "").rstrip("0").rstrip(".")
    sign = "-" if folded.startswith("-") else ""
    return f"{sign}{digits}{fraction}{'%' if mark == '%' else ''}"


def _singular(part: str) -> str:
    """A plural's base; other endings tell values apart (`Jane` is not `Jan`)."""
    match = _PLURAL.search(part)
    if match is None or not part.isalpha():
        return part
    return f"{part[: match.start()]}{'y' if match[0] == 'ies' else ''}"


def slips(key: str) -> int:
    """How many edits two keys of this length may lie apart and still be one value: 0, 1 or 2."""
    if not SHORTEST <= len(key) <= LONGEST or sum(map(str.isalpha, key)) < SHORTEST:
        return 0
    return _MOST_EDITS if len(key) >= _TWO_EDITS_FROM else 1


def pieces(key: str) -> Iterator[str]:
    """The parts under which a stored key is filed."""
    edits = slips(key)
    for i, (start, end) in enumerate(_bounds(len(key), edits) if edits else ()):
        yield _filed(len(key), i, key[start:end])


def probes(key: str) -> frozenset[str]:
    """The parts under which every stored key is filed that lies within `slips` edits of this one.

    >>> any(piece in probes("carribean") for piece in pieces("caribbean"))
    True
    """
    return frozenset(_probes(key)) if slips(key) else frozenset()


def _probes(key: str) -> Iterator[str]:
    size = len(key)
    for length in range(size - _MOST_EDITS, size + _MOST_EDITS + 1):
        allowed = slips("a" * length)
        if abs(length - size) > allowed or not allowed:
            continue
        bounds = _bounds(length, allowed)
        for i, (start, end) in enumerate(bounds):
            for shift in range(-allowed, allowed + 1):
                if start + shift >= 0 and end + shift <= size:
                    yield _filed(length, i, key[start + shift : end + shift])
        if length == size:
            yield from _across(key, bounds)


def _across(key: str, bounds: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Two letters exchanged across the border of two parts: one edit that changes both."""
    for i, (start, end) in enumerate(bounds[:-1]):
        swapped = key[: end - 1] + key[end : end + 1] + key[end - 1] + key[end + 1 :]
        yield _filed(len(key), i, swapped[start:end])


@lru_cache(maxsize=256)
def _bounds(length: int, edits: int) -> tuple[tuple[int, int], ...]:
    cuts = [length * i // (edits + 1) for i in range(edits + 2)]
    return tuple(pairwise(cuts))


def _filed(length: int, part: int, text: str) -> str:
    return f"{length} {part} {text}"


def distance(one: str, other: str, most: int) -> int:
    """Edits between two texts, an exchange of neighbours being one; `most + 1` if more.

    >>> distance("carribean", "caribbean", 2), distance("ab", "ba", 1)
    (2, 1)
    """
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
        before, last = last, row
    return min(last[-1], most + 1)


def digits(text: str) -> str:
    """The digits of a text: what differs in them is no slip but another value."""
    return "".join(c for c in text if c.isdigit())

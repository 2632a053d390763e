"""The checklist that an explanation is compared with, made from the question by rule (III-C).

It names what a question can ask for and an answer can miss: outputs, filters, time windows,
exclusions, grain, aggregates, order, top-k, units; each with the words of the question that ask.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from sqlglot import exp

from lynx_dspy.modules.clauses import query
from lynx_dspy.values import Link


class Asked(StrEnum):
    """What an item is about."""

    OUTPUTS = "outputs"
    FILTER = "filter"
    TIME = "time window"
    EXCLUSION = "exclusion"
    GRAIN = "grain"
    AGGREGATE = "aggregate"
    ORDER = "order"
    TOP_K = "top-k"
    UNIT = "unit"


CLAUSE_OF = {
    Asked.OUTPUTS: "SELECT",
    Asked.FILTER: "WHERE",
    Asked.TIME: "WHERE",
    Asked.EXCLUSION: "WHERE",
    Asked.GRAIN: "GROUP BY",
    Asked.AGGREGATE: "SELECT",
    Asked.ORDER: "ORDER BY",
    Asked.TOP_K: "LIMIT",
    Asked.UNIT: "SELECT",
}
"""Where a program does what an item asks for."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing asked: its kind, the words that ask for it, and the number in them if it counts."""

    asked: Asked
    quote: str
    number: int = 0

    @property
    def text(self) -> str:
        return f"{self.asked}: {self.quote}"


_MOST_ITEMS = 12
_MOST_OF_A_KIND = 3
_LONGEST_QUOTE = 90
_SURE = 0.6

_MONTHS = (
    "(?-i:January|February|March|April|May|June|July|August|September|October|November|December)"
)
"""With a capital only: one may march in March."""

_SUPERLATIVE = (
    r"most|least|fewest|highest|lowest|largest|smallest|biggest|best|worst|oldest|youngest|newest"
    r"|latest|earliest|longest|shortest|cheapest|fastest|slowest|greatest"
)
_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNTS = {word: number for number, word in enumerate(_WORDS, 1)}
_NUMBER = rf"\d{{1,3}}|{'|'.join(_COUNTS)}"
_SPAN = r"days?|weeks?|months?|quarters?|years?"

_RULES: tuple[tuple[Asked, str], ...] = (
    (Asked.TOP_K, rf"\b(?:top|first|bottom|best|worst)[ -](?P<n>{_NUMBER})\b(?!\s*(?:{_SPAN})\b)"),
    (Asked.TOP_K, rf"(?<![\w-])(?P<n>{_NUMBER}) (?:\w+ ){{0,4}}?(?:{_SUPERLATIVE})\b"),
    (Asked.TOP_K, rf"\b(?:the|which|what) (?:\w+ ){{0,3}}?(?:{_SUPERLATIVE})\b(?: \w+)?"),
    (Asked.TIME, rf"\b(?:{_MONTHS})\b(?: \d{{1,2}}(?:st|nd|rd|th)?)?,? ?(?P<n>(?:19|20)\d\d)?"),
    (Asked.TIME, r"\b(?:19|20)\d\d-\d\d(?:-\d\d)?"),
    (Asked.TIME, r"\b(?:between|from) (?:19|20)\d\d (?:and|to|until) (?:19|20)\d\d\b"),
    (Asked.TIME, r"\b(?:since|before|after|until|by) (?:the year )?(?:19|20)\d\d\b"),
    (Asked.TIME, r"\b(?:in|during|of|for) (?:the )?(?:year )?(?P<n>(?:19|20)\d\d)\b"),
    (Asked.TIME, rf"\b(?:last|past|previous|current|this) (?:\w+ )?(?:{_SPAN})\b"),
    (Asked.TIME, r"\bq[1-4]\b(?: (?:of )?(?:19|20)\d\d)?"),
    (
        Asked.EXCLUSION,
        r"\b(?:excluding|exclude|except(?: for)?|other than|apart from|without|never|neither"
        r"|not|non-\w+|\w+n't)\b(?: [\w'-]+){0,5}",
    ),
    (Asked.GRAIN, r"\b(?:per|(?:for )?(?:each|every)|grouped by|broken down by) [\w-]+(?: \w+)?"),
    (Asked.GRAIN, r"\bby (?:day|week|month|quarter|year|hour)\b"),
    (Asked.GRAIN, r"\b(?:daily|weekly|monthly|quarterly|yearly|annual(?:ly)?)\b"),
    (
        Asked.ORDER,
        r"\b(?:order|ordered|sort|sorted|rank|ranked|arranged?) (?:\w+ ){0,3}?by [^,.;?]+",
    ),
    (Asked.ORDER, r"\b(?:alphabetical|chronological|descending|ascending)\w*(?: order)?"),
    (Asked.ORDER, rf"\bfrom (?:the )?(?:{_SUPERLATIVE}) to (?:the )?(?:{_SUPERLATIVE})\b"),
    (
        Asked.UNIT,
        r"\b(?:percentage|percent|proportion|ratio|fraction|share)\b(?: of [\w ]{1,30})?|%",
    ),
    (Asked.UNIT, r"\b(?:in|to) (?:\w+ )?(?:dollars|euros|cents|hours|minutes|seconds|km|miles)\b"),
    (Asked.UNIT, r"\bround(?:ed)? (?:\w+ ){0,3}?to (?:\w+ ){0,3}?(?:decimals?|places|digits)\b"),
    (Asked.AGGREGATE, r"\b(?:how many|number of|count of|how much) (?:\w+ )?\w+"),
    (Asked.AGGREGATE, r"\b(?:average|mean|median|total|sum of|maximum|minimum) (?:\w+ )?\w+"),
    (Asked.AGGREGATE, r"\b(?:distinct|unique|different) \w+"),
    (Asked.FILTER, r"(?<!\w)(?:'[^']{1,60}'|\"[^\"]{1,60}\")"),
    (
        Asked.FILTER,
        r"\b(?:more|less|fewer|greater|higher|lower|larger|smaller|older|younger|later|earlier)"
        r" than [\w$.,%-]+(?: \w+)?",
    ),
    (Asked.FILTER, r"\b(?:at least|at most|above|below|over|under|exceeding) [$]?\d[\w.,%]*"),
)
"""What in a question asks for what; group `n` holds its number. Earlier rules take the words."""

_PATTERNS = tuple((asked, re.compile(pattern, re.I)) for asked, pattern in _RULES)


def checklist(question: str, links: Iterable[Link] = ()) -> tuple[Item, ...]:
    """The items of a question, outputs first; `links` add the stored values that it names.

    >>> [item.text for item in checklist("Top 5 cities by sales in 2024, excluding Oslo")]
    ['outputs: Top 5 cities by sales in 2024', 'top-k: Top 5', 'time window: in 2024', \
'exclusion: excluding Oslo']
    """
    text = " ".join(question.split())
    outputs = Item(
        Asked.OUTPUTS, _clipped(re.split(r"[.;?,]", text.lstrip(" .;?,"), maxsplit=1)[0])
    )
    found = [outputs, *_matched(text), *_stored(links)]
    kinds: dict[Asked, int] = {}
    kept = []
    for item in dict.fromkeys(found):
        kinds[item.asked] = kinds.get(item.asked, 0) + 1
        if item.quote and kinds[item.asked] <= _MOST_OF_A_KIND:
            kept.append(item)
    return tuple(kept[:_MOST_ITEMS])


def _matched(text: str) -> Iterator[Item]:
    taken: list[tuple[int, int]] = []
    for asked, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            start, end = match.span()
            if any(start < b and a < end for a, b in taken):
                continue
            taken.append((start, end))
            yield Item(asked, _clipped(match[0].strip(" ,")), _number(match))


def _number(match: re.Match[str]) -> int:
    told = match.groupdict().get("n") or ""
    return int(told) if told.isdecimal() else _COUNTS.get(told.casefold(), 0)


def _stored(links: Iterable[Link]) -> Iterator[Item]:
    for link in links:
        if link.value and link.confidence >= _SURE:
            yield Item(Asked.FILTER, f"{link.table}.{link.column} = {link.value!r}")


def numbered(items: Iterable[Item]) -> str:
    """The checklist as lines of a prompt."""
    return "\n".join(f"{number}. {item.text}" for number, item in enumerate(items, 1))


def shown_by(code: str, item: Item, dialect: str) -> bool | None:
    """Whether the text of a program settles an item: True done, False missed, None open.

    Only what cannot be done in another way is settled: a top 5 needs a 5 (or "below 6"), and a
    single year its number or that of a neighbour.

    >>> [shown_by(f"SELECT a FROM t LIMIT {n}", Item(Asked.TOP_K, "top 5", 5), "sqlite")
    ...  for n in (5, 6, 10)]
    [True, None, False]
    """
    tree = query(code, dialect)
    if tree is None or item.number < 2:
        return None
    if item.asked is Asked.TOP_K:
        limit = tree.args.get("limit")
        if limit is not None and _numbers(limit) == {item.number}:
            return True
        return None if _numbers(tree) & {item.number, item.number + 1} else False
    if item.asked is Asked.TIME:
        years = (item.number - 1, item.number, item.number + 1)
        return None if any(str(year) in code for year in years) else False
    return None


def _numbers(tree: exp.Expr) -> set[int]:
    literals = (node.name for node in tree.find_all(exp.Literal) if not node.is_string)
    return {int(text) for text in literals if text.isdecimal()}


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…"

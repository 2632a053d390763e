"""Values that the question writes in another way than the database: the wider half of Align's
value links (paper, III-A2).

Other signs, plurals, number formats and slips of the pen; dates and percentages in the form that
the columns store; words that stand in columns of long texts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from lynx_dspy.grounding.date_styles import Style, dates_in, style_of
from lynx_dspy.grounding.lexical import ASKING_WORDS, STOP_WORDS, split
from lynx_dspy.grounding.value_places import Place, ValueIndex
from lynx_dspy.values import Column, Link, Schema

_TOKEN = re.compile(r"\S+")
_QUOTED = re.compile(
    r"""(?<!\w)(?:'([^']{1,200})'|"([^"]{1,200})"|`([^`]{1,200})`"""
    r"""|“([^”]{1,200})”|‘([^’]{1,200})’)(?!\w)"""
)
_EDGE = ".,;:!?()[]{}\"'`“”‘’"
_OWNER = re.compile(r"['’]s$")
_MOST_WORDS = 6
_MOST_SLIPPED = 4
_DERIVED = ("n", "an", "ful")
_NAMED = 0.5
"""Confidence from which a column counts as named by the question."""

_BONUS = 0.1
_SHARE = 0.15
_RARE = 3
"""A word that stands in the long texts of more columns than this points at none of them."""

_PERCENT = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s?(?:%|percent\b|per cent\b)", re.IGNORECASE)

_Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words of a text that could be a value; `tokens` are their positions."""

    text: str
    tokens: range
    quoted: bool = False

    @property
    def confidence(self) -> float:
        """Several words stored as one value are hardly chance; a word in lower case may be."""
        if self.quoted:
            return 1.0
        if len(self.tokens) > 1:
            return 0.95
        if any(c.isdigit() for c in self.text):
            return 0.7
        return 0.85 if self.text[:1].isupper() and self.tokens.start else 0.6

    @property
    def slip_confidence(self) -> float:
        """How surely a near spelling is meant; 0 where it is not to be looked for."""
        words = [w for w in split(self.text)]
        if len(self.tokens) > _MOST_SLIPPED and not self.quoted:
            return 0.0
        if not words or not (words[0].content and words[-1].content):
            return 0.0
        if all(w.folded in ASKING_WORDS for w in words):
            return 0.0
        if self.quoted:
            return 0.8
        named = self.text[:1].isupper() and (self.tokens.start or len(self.tokens) > 1)
        return 0.75 if named else 0.6 if len(self.tokens) > 1 else 0.5


def phrases(text: str) -> list[Phrase]:
    """What could be a value: quoted texts, then runs of up to six words, the longest first.

    >>> [p.text for p in phrases("Brazil’s ‘Rio Grande’?")]
    ['Rio Grande', 'Brazil’s Rio Grande', 'Brazil’s Rio', 'Rio Grande', 'Brazil', 'Rio', 'Grande']
    """
    tokens = [(m.start(), m.end(), m[0].strip(_EDGE)) for m in _TOKEN.finditer(text)]
    found = []
    for match in _QUOTED.finditer(text):
        inside = [i for i, (a, b, _) in enumerate(tokens) if a < match.end() and b > match.start()]
        quoted = next(filter(None, match.groups()))
        found.append(Phrase(quoted, range(inside[0], inside[-1] + 1), quoted=True))
    for size in range(_MOST_WORDS, 0, -1):
        for start in range(len(tokens) - size + 1):
            words = [word for _, _, word in tokens[start : start + size]]
            if all(words) and any(map(_telling, words)):
                run = _OWNER.sub("", " ".join(words))
                found.append(Phrase(run, range(start, start + size)))
    return found


def _telling(word: str) -> bool:
    folded = word.casefold()
    return folded.isdigit() or word.isupper() or (len(word) > 1 and folded not in STOP_WORDS)


@dataclass(frozen=True, slots=True)
class Named:
    """What the names of a schema explain of the question: columns, and words by their stem."""

    columns: frozenset[_Place]
    stems: frozenset[str]

    @classmethod
    def by(cls, links: Iterable[Link]) -> Named:
        """What `links` to columns say surely enough."""
        sure = [one for one in links if one.column and one.confidence >= _NAMED]
        stems = (w.stem for one in sure for w in split(one.concept))
        return cls(frozenset((x.table, x.column) for x in sure), frozenset(stems))

    def explains(self, phrase: Phrase) -> bool:
        """Whether a name of the schema is meant rather than a value."""
        words = [w for w in split(phrase.text) if w.content]
        return not phrase.quoted and all(w.stem in self.stems for w in words)


def other_spellings(text: str, index: ValueIndex, named: Named) -> Iterator[Link]:
    """Links of the phrases of `text` to values spelled alike, else to the nearest spellings.

    A phrase whose words a longer one has explained is left alone.
    """
    taken: set[int] = set()
    for phrase in phrases(text):
        places = index.alike(phrase.text)
        confidence = phrase.confidence
        if not places:
            places = [p for ending in _DERIVED for p in _without(phrase, ending, index)]
            confidence = phrase.confidence * 0.95
        if not places and phrase.slip_confidence and not named.explains(phrase):
            places = index.near(phrase.text) if taken.isdisjoint(phrase.tokens) else []
            confidence = phrase.slip_confidence
        if places and (phrase.quoted or taken.isdisjoint(phrase.tokens)):
            taken.update(phrase.tokens)
            yield from _to_values(phrase.text, places, confidence, named.columns)


def _without(phrase: Phrase, ending: str, index: ValueIndex) -> list[Place]:
    text = phrase.text
    derived = len(phrase.tokens) == 1 and len(text) - len(ending) >= 4
    return index.alike(text[: -len(ending)]) if derived and text.endswith(ending) else []


def _to_values(
    concept: str, places: Sequence[Place], confidence: float, named: Collection[_Place]
) -> Iterator[Link]:
    """Links to values; a column that the question names is surer than others with the value."""
    shared = 1 / (1 + _SHARE * max(0, len({(p.table, p.column) for p in places}) - 1))
    for place in places:
        meant = (place.table, place.column) in named
        sure = min(1.0, confidence + _BONUS) if meant else confidence * shared
        yield Link(concept, place.table, place.column, place.value, "value", round(sure, 2))


def dates(text: str, schema: Schema, index: ValueIndex, named: Named) -> Iterator[Link]:
    """Links of full dates to columns, with the date as the column writes it.

    Columns that store the date come first; others are given where the question names them, or
    where there is no other column of dates.
    """
    found = list(dates_in(text))
    styles = {style: index.styled(style) for style in index.styles()} if found else {}
    only = sum(map(len, styles.values())) == 1
    for concept, day in found:
        for style, columns in styles.items():
            written = style.write(day)
            held = [p for p in index.find(written) if (p.table, p.column) in columns]
            yield from _to_values(concept, held, 0.85, named.columns)
            for table, column in columns:
                if only or (table, column) in named.columns:
                    yield Link(concept, table, column, written, "date", 0.65)
        for table, column, typed in _typed(schema, named):
            yield Link(concept, table, column, typed.write(day), "date", 0.65)


def _typed(schema: Schema, named: Named) -> Iterator[tuple[str, str, Style]]:
    """The named columns that are no text and whose samples are dates: DATE, or 20190503."""
    for table, column in _columns(schema, named):
        style = style_of([s.strip("'") for s in column.samples])
        if style is not None:
            yield table, column.name, style


def shares(text: str, schema: Schema, named: Named) -> Iterator[Link]:
    """Links of percentages to the named columns that store shares of one."""
    for match in _PERCENT.finditer(text):
        for table, column in _columns(schema, named):
            if _holds_shares(column):
                value = f"{float(match[1]) / 100:.10g}"
                yield Link(match[0], table, column.name, value, "number", 0.65)


def _holds_shares(column: Column) -> bool:
    try:
        numbers = [float(sample) for sample in column.samples]
    except ValueError:
        return False
    return any(0 < abs(n) < 1 for n in numbers) and all(abs(n) <= 1 for n in numbers)


def _columns(schema: Schema, named: Named) -> Iterator[tuple[str, Column]]:
    for table_name, name in sorted(named.columns):
        table = schema.table(table_name)
        if table is not None and (column := table.column(name)):
            yield table_name, column


def in_long_texts(text: str, index: ValueIndex, explained: Collection[str]) -> Iterator[Link]:
    """Links to columns of long texts: where a quoted phrase stands, or a rare unexplained word."""
    for phrase in phrases(text):
        words = [w for w in split(phrase.text) if w.content]
        if phrase.quoted and words:
            holding = set.intersection(*(set(index.telling(w.folded)) for w in words))
            for table, column in sorted(holding):
                yield Link(phrase.text, table, column, "", "value", 0.6)
        elif len(phrase.tokens) == len(words) == 1 and words[0].folded not in ASKING_WORDS:
            columns = [] if words[0].stem in explained else index.telling(words[0].folded)
            for table, column in columns if len(columns) <= _RARE else ():
                yield Link(phrase.text, table, column, "", "value", 0.35)

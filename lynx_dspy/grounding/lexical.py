"""Words of a question against the names and descriptions of a schema: the lexical part of Align."""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lynx_dspy.engines.identity import by_identity
from lynx_dspy.grounding.identifiers import fold, stem, words
from lynx_dspy.values import Link, Schema, Table

STOP_WORDS = frozenset(
    """
    a about after all also among an and any are as at be been before being between both but by
    can could did do does each either ever every find for from get give given had has have her
    his how if in into is it its itself just let list me more most much name names no not of off
    on one only or other our out over own per please return same shall she should show so some
    such tell than that the their them then there these they this those through to too under
    until up us use used using very was we were what when where whether which while who whom
    whose why will with within without would you your
    """.split()  # noqa: SIM905 - a list of a hundred quoted words would fill two pages
)
ASKING_WORDS = frozenset(
    """
    average avg count different distinct greater greatest high higher highest larger largest last
    least less longest low lower lowest maximum max mean minimum min many number order ordered
    ascending descending percent percentage ratio share shortest smallest sorted sort sum top total
    first five four three two ten compute calculate output
    """.split()  # noqa: SIM905 - as above
)
_TOKEN = re.compile(r"[^\W_]+(?:[_'’.-][^\W_]+)*", re.UNICODE)
_SHORTHANDS: dict[str, tuple[str, ...]] = {
    "transaction": ("tx", "txn", "trans"),
    "number": ("num", "no", "nr", "nbr"),
    "quantity": ("qty",),
    "amount": ("amt",),
    "average": ("avg",),
    "description": ("desc",),
    "customer": ("cust",),
    "department": ("dept",),
    "employee": ("emp",),
    "address": ("addr",),
    "date": ("dt", "dob", "day"),
    "born": ("birth", "dob", "birthday"),
    "year": ("yr", "date"),
    "telephone": ("phone", "tel"),
    "live": ("address", "residence"),
    "when": ("date", "time", "year"),
    "where": ("location", "address", "city", "country"),
    "tall": ("height",),
    "heavy": ("weight",),
    "light": ("weight",),
    "weigh": ("weight",),
    "long": ("length", "duration"),
    "big": ("size", "area", "population"),
    "large": ("size", "area", "population"),
    "cost": ("price", "amount"),
    "expensive": ("price", "cost"),
    "cheap": ("price", "cost"),
    "nation": ("country",),
    "citizen": ("population",),
    "people": ("population", "person"),
    "rating": ("stars", "score"),
    "old": ("age", "birth"),
    "young": ("age", "birth"),
    "who": ("name",),
}
_SHORT_STEMS = {stem(k): frozenset(map(stem, v)) for k, v in _SHORTHANDS.items()}


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a text: as written, folded, stemmed."""

    text: str
    folded: str
    stem: str

    @property
    def content(self) -> bool:
        return self.folded not in STOP_WORDS and len(self.folded) > 1


@dataclass(frozen=True, slots=True, eq=False)
class _Element:
    """A table or column as stems; `own` leaves out what a column repeats of its table's name."""

    table: str
    column: str
    name: tuple[str, ...]
    own: tuple[str, ...]
    description: frozenset[str]


COMMON = 2_000
"""A word of more elements than this is looked for only in tables that a rarer word speaks for."""

_TABLES_AHEAD = 300
"""So many tables are searched for common words: those for which rarer words speak most."""


@dataclass(frozen=True, slots=True, eq=False)
class _Vocabulary:
    elements: tuple[_Element, ...]
    by_stem: dict[str, list[_Element]]
    by_note: dict[str, list[int]]
    """Positions of elements by the words of their descriptions."""

    grams: dict[str, list[str]]
    """Stems by each run of four letters that they hold."""

    span: dict[str, tuple[int, int]]
    """Where a table's elements begin and end: itself, then its columns."""

    weight: dict[str, float]
    """How telling a stem is: 1 where one element has it, less the more do."""

    labels: dict[str, str]
    """The column that names the rows of a table: who is asked for a customer wants its name."""


_YEAR = re.compile(r"(?:19|20)\d\d")
_FILLERS = frozenset({"id", "of", "the", "cod", "nam", "typ", "num"})


def by_name(text: str, schema: Schema, evidence: str, trust: float) -> Iterator[Link]:
    """Links of `text` to tables and columns by their names, confidence at most `trust`."""
    vocabulary = _vocabulary(schema)
    matched = _matched(split(text), vocabulary)
    labels = vocabulary.labels
    touched = _touched(matched, vocabulary)
    tables = {
        e.table for e in touched if not e.column and _coverage(e.name, matched, vocabulary) > 0.5
    }
    for element in touched:
        stems = element.own if element.column else element.name
        hits = [matched[s] for s in stems if s in matched]
        if not hits:
            continue
        rarity = max(vocabulary.weight[s] for s in stems if s in matched)
        confidence = _coverage(stems, matched, vocabulary) * (0.6 + 0.4 * rarity)
        if element.column and element.table in tables:
            confidence += 0.15
        concept = " ".join(dict.fromkeys(word.text for _, word in hits))
        confidence = round(trust * min(confidence, 1.0), 2)
        yield Link(concept, element.table, element.column, evidence=evidence, confidence=confidence)
        if not element.column and element.table in tables and (label := labels.get(element.table)):
            yield Link(concept, element.table, label, evidence=evidence, confidence=0.5 * trust)


def by_description(text: str, schema: Schema) -> Iterator[Link]:
    """Links to tables and columns whose description shares telling words with `text`."""
    vocabulary = _vocabulary(schema)
    asked = {w.stem: w for w in split(text) if w.content and w.folded not in ASKING_WORDS}
    found = {i for s in asked for i in _few(vocabulary.by_note.get(s, ()))}
    for element in (vocabulary.elements[i] for i in sorted(found)):
        shared = [s for s in asked if s in element.description]
        share = len(shared) / min(len(element.description), 6)
        confidence = round(min(0.3 + 0.5 * share, 0.8) - (0.1 if len(shared) == 1 else 0), 2)
        concept = " ".join(asked[s].text for s in shared)
        yield Link(concept, element.table, element.column, "", "documentation", confidence)


def _few(positions: Sequence[int]) -> Sequence[int]:
    return positions if len(positions) <= COMMON else ()


def _touched(
    matched: Mapping[str, tuple[float, Word]], vocabulary: _Vocabulary
) -> dict[_Element, None]:
    """The elements whose names have a matched stem; for common stems only in likely tables."""
    rare = [s for s in matched if len(vocabulary.by_stem[s]) <= COMMON]
    touched = dict.fromkeys(e for s in rare for e in vocabulary.by_stem[s])
    common = matched.keys() - set(rare)
    if not common:
        return touched
    touched |= dict.fromkeys(e for s in common for e in vocabulary.by_stem[s] if not e.column)
    scores: dict[str, float] = defaultdict(float)
    for element in touched:
        scores[element.table] += _telling(element, matched, vocabulary)
    for table in heapq.nlargest(_TABLES_AHEAD, scores, key=scores.__getitem__):
        start, end = vocabulary.span[table]
        inside = vocabulary.elements[start:end]
        touched |= dict.fromkeys(e for e in inside if not common.isdisjoint(e.own))
    return touched


def _telling(
    element: _Element, matched: Mapping[str, tuple[float, Word]], vocabulary: _Vocabulary
) -> float:
    """What an element says for its table; a table's own name says most."""
    stems = element.own if element.column else element.name
    said = sum(vocabulary.weight[s] * matched[s][0] for s in stems if s in matched)
    return said if element.column else 4 * said


def _coverage(
    stems: Sequence[str], matched: Mapping[str, tuple[float, Word]], vocabulary: _Vocabulary
) -> float:
    """The share of a name that the text mentions; words that many names have count less."""
    weights = {s: (0.5 if s in _FILLERS else 1.0) * vocabulary.weight[s] for s in stems}
    covered = sum(w * matched[s][0] for s, w in weights.items() if s in matched)
    return covered / sum(weights.values())


def _matched(text: Sequence[Word], vocabulary: _Vocabulary) -> dict[str, tuple[float, Word]]:
    """For each stem of the schema that the text mentions: how surely, and by which word."""
    asked = {s: w for w in text if w.content for s in _meanings(w)}
    found = {s: (1.0, w) for s, w in asked.items() if s in vocabulary.by_stem}
    near = {have for s in asked for have in _candidates(s, vocabulary)} - found.keys()
    for have in sorted(near):
        score, best = max(((_likeness(s, have), s) for s in asked), default=(0.0, ""))
        if score:
            found[have] = (score, asked[best])
    return found


def _candidates(asked: str, vocabulary: _Vocabulary) -> Iterator[str]:
    """The stems of the schema that could be like `asked`: each rule of `_likeness` has its way."""
    yield from _SHORT_STEMS.get(asked, frozenset()) & vocabulary.by_stem.keys()
    yield from vocabulary.grams.get(asked[:_GRAM], ())
    for length in range(3, len(asked)):
        if asked[:length] in vocabulary.by_stem:
            yield asked[:length]


def _meanings(word: Word) -> tuple[str, ...]:
    """The stems of a word and of what it is a comparative of: `lighter`; a year asks for one."""
    if _YEAR.fullmatch(word.text):
        return (word.stem, "year")
    base = re.sub(r"(i?)(?:er|est)$", lambda m: "y" if m.group(1) else "", word.folded)
    return (word.stem, stem(base)) if base != word.folded and len(base) > 2 else (word.stem,)


def _likeness(asked: str, have: str) -> float:
    """How surely the asked stem means the schema's: shorthand, common start, or a part of it."""
    if have in _SHORT_STEMS.get(asked, ()):
        return 0.8
    shorter, longer = sorted((asked, have), key=len)
    if len(shorter) >= 4 and longer.startswith(shorter):
        return 0.85 if len(longer) - len(shorter) <= 3 else 0.7
    if len(asked) >= 4 and asked in have:
        return 0.75
    if len(have) >= 3 and asked.startswith(have):
        return 0.6
    return 0.7 if len(shorter) >= 6 and shorter[:-2] == longer[: len(shorter) - 2] else 0.0


def split(text: str) -> list[Word]:
    """The words of a text; `customer_id` and `customerId` count word by word."""
    return list(_split(text))


@lru_cache(maxsize=8_192)
def _split(text: str) -> tuple[Word, ...]:
    pieces = [piece for token in _TOKEN.findall(text) for piece in _pieces(token)]
    return tuple(Word(piece, folded := fold(piece), stem(folded)) for piece in pieces)


def _pieces(token: str) -> tuple[str, ...]:
    token = re.sub(r"['’]s$", "", token)
    compound = "_" in token or re.search(r"[a-z][A-Z]", token)
    return words(token) if compound else tuple(re.split(r"['’.-]", token))


_GRAM = 4


@by_identity(16)
def _vocabulary(schema: Schema) -> _Vocabulary:
    """The words of a schema, indexed; made once for a schema."""
    elements: list[_Element] = []
    span: dict[str, tuple[int, int]] = {}
    for table in schema.tables:
        start = len(elements)
        elements += _elements(table)
        span[table.name] = (start, len(elements))
    seen = Counter(s for e in elements for s in set(e.own if e.column else e.name))
    weight = {s: 1 / (1 + math.log(n)) for s, n in seen.items()}
    by_stem: dict[str, list[_Element]] = defaultdict(list)
    by_note: dict[str, list[int]] = defaultdict(list)
    for i, element in enumerate(elements):
        for part in dict.fromkeys(element.own if element.column else element.name):
            by_stem[part].append(element)
        for part in element.description:
            by_note[part].append(i)
    grams: dict[str, list[str]] = defaultdict(list)
    for have in by_stem:
        for gram in {have[i : i + _GRAM] for i in range(len(have) - _GRAM + 1)}:
            grams[gram].append(have)
    named = [e for e in elements if e.column and e.column.casefold().endswith(("name", "title"))]
    labels = {e.table: e.column for e in reversed(named)}
    return _Vocabulary(
        tuple(elements), dict(by_stem), dict(by_note), dict(grams), span, weight, labels
    )


def _elements(table: Table) -> Iterator[_Element]:
    name = _stems(table.name)
    yield _Element(table.name, "", name, name, _text_stems(table.description))
    for column in table.columns:
        parts = _stems(column.name)
        own = tuple(s for s in parts if s not in name) or parts
        yield _Element(table.name, column.name, parts, own, _text_stems(column.description))


@lru_cache(maxsize=65_536)
def _stems(name: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in words(name))


@lru_cache(maxsize=4_096)
def _text_stems(text: str) -> frozenset[str]:
    return frozenset(w.stem for w in split(text) if w.content)

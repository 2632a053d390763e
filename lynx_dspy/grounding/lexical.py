"""Words of a question against the names and descriptions of a schema: the lexical part of Align."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lynx_dspy.grounding.identifiers import fold, stem, words
from lynx_dspy.grounding.recent import Recent
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


@dataclass(frozen=True, slots=True)
class _Element:
    """A table or column as stems; `own` leaves out what a column repeats of its table's name."""

    table: str
    column: str
    name: tuple[str, ...]
    own: tuple[str, ...]
    description: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    elements: tuple[_Element, ...]
    by_stem: dict[str, list[_Element]]
    weight: dict[str, float]
    """How telling a stem is: 1 where one element has it, less the more do."""

    labels: dict[str, str]
    """The column that names the rows of a table: who is asked for a customer wants its name."""


_YEAR = re.compile(r"(?:19|20)\d\d")
_FILLERS = frozenset({"id", "of", "the", "cod", "nam", "typ", "num"})
_vocabularies: Recent[_Vocabulary] = Recent(size=16)


def by_name(text: str, schema: Schema, evidence: str, trust: float) -> Iterator[Link]:
    """Links of `text` to tables and columns by their names, confidence at most `trust`."""
    vocabulary = _vocabularies.get(schema, lambda: _vocabulary(schema))
    matched = _matched(split(text), vocabulary)
    labels = vocabulary.labels
    touched = dict.fromkeys(e for s in matched for e in vocabulary.by_stem[s])
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
    vocabulary = _vocabularies.get(schema, lambda: _vocabulary(schema))
    asked = {w.stem: w for w in split(text) if w.content and w.folded not in ASKING_WORDS}
    for element in vocabulary.elements:
        shared = [s for s in asked if s in element.description]
        if shared:
            share = len(shared) / min(len(element.description), 6)
            confidence = round(min(0.3 + 0.5 * share, 0.8) - (0.1 if len(shared) == 1 else 0), 2)
            concept = " ".join(asked[s].text for s in shared)
            yield Link(concept, element.table, element.column, "", "documentation", confidence)


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
    for have in vocabulary.by_stem:
        if have not in found:
            score, best = max(((_likeness(s, have), s) for s in asked), default=(0.0, ""))
            if score:
                found[have] = (score, asked[best])
    return found


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
    pieces = [piece for token in _TOKEN.findall(text) for piece in _pieces(token)]
    return [Word(piece, folded := fold(piece), stem(folded)) for piece in pieces]


def _pieces(token: str) -> tuple[str, ...]:
    token = re.sub(r"['’]s$", "", token)
    compound = "_" in token or re.search(r"[a-z][A-Z]", token)
    return words(token) if compound else tuple(re.split(r"['’.-]", token))


def _vocabulary(schema: Schema) -> _Vocabulary:
    elements = [e for table in schema.tables for e in _elements(table)]
    seen = Counter(s for e in elements for s in set(e.own if e.column else e.name))
    weight = {s: 1 / (1 + math.log(n)) for s, n in seen.items()}
    by_stem: dict[str, list[_Element]] = defaultdict(list)
    for element in elements:
        for part in dict.fromkeys(element.own if element.column else element.name):
            by_stem[part].append(element)
    named = [e for e in elements if e.column and e.column.casefold().endswith(("name", "title"))]
    labels = {e.table: e.column for e in reversed(named)}
    return _Vocabulary(tuple(elements), dict(by_stem), weight, labels)


def _elements(table: Table) -> Iterator[_Element]:
    name = _stems(table.name)
    yield _Element(table.name, "", name, name, _text_stems(table.description))
    for column in table.columns:
        parts = _stems(column.name)
        own = tuple(s for s in parts if s not in name) or parts
        yield _Element(table.name, column.name, parts, own, _text_stems(column.description))


def _stems(name: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in words(name))


def _text_stems(text: str) -> frozenset[str]:
    return frozenset(w.stem for w in split(text) if w.content)

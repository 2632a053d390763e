"""Align, the part without a model: words of the question tied to schema elements (paper, III-A2).

Four kinds of evidence: names (lexical), descriptions and the question's own notes (documentation),
stored values (value), and nearness of meaning where an embedder is given (embedding).
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from lynx_dspy.engines.base import Database
from lynx_dspy.grounding.embedding import Embedder
from lynx_dspy.grounding.keys import neighbours
from lynx_dspy.grounding.lexical import ASKING_WORDS, Word, by_description, by_name, split
from lynx_dspy.grounding.nearness import near_elements
from lynx_dspy.grounding.value_links import (
    Named,
    dates,
    in_long_texts,
    other_spellings,
    shares,
)
from lynx_dspy.grounding.value_places import Place, ValueIndex
from lynx_dspy.grounding.values import value_index
from lynx_dspy.values import Link, Schema

LEAST = 0.3
"""Links of less confidence are dropped."""

_QUOTED = re.compile(
    r"""(?<!\w)(?:'([^']{1,60})'|"([^"]{1,60})"|`([^`]{1,60})`|“([^”]{1,60})”)(?!\w)"""
)
_SENTENCE = re.compile(r"(?<=[.;!?])\s+|\n+")
_NOTE_TRUST = 0.9
_ASIDE_TRUST = 0.5
_RUN = re.compile(r"\S+")
_LONGEST_VALUE = 6
_TABLE_SHARE = {"table": 1.0, "column": 0.75, "value": 0.9}
_FORMS = ("s", "n", "an")
_FLOOR = 0.45
_AT_LEAST = 2
"""Fewer tables than this are joined by their neighbours: these cost little and are often meant."""

_PATH = 3


def link(
    question: str,
    evidence: str,
    schema: Schema,
    database: Database | None = None,
    embedder: Embedder | None = None,
    spellings: bool = False,
) -> list[Link]:
    """Concepts of `question` (and of `evidence`, its given notes) tied to tables, columns, values.

    Best first, one link for each schema element and stored value, confidence in [0.3, 1]. Notes
    that share no word with the question are trusted less. Without `database` no values are looked
    up, with `spellings` also those that the question writes in another way; without `embedder` only
    like words are found.
    """
    found = [*by_name(question, schema, "lexical", 1.0), *by_description(question, schema)]
    notes = list(_notes(question, evidence))
    for note, trust in notes:
        found += by_name(note, schema, "documentation", trust)
    if database is not None:
        index = value_index(database, schema)
        found += _by_value(question, index, 1.0)
        for note, trust in notes:
            found += _by_value(note, index, trust)
        if spellings:
            found += _by_spelling([(question, 1.0), *notes], schema, index, found)
    links = _ranked(found)
    if embedder is not None:
        links = _ranked([*links, *near_elements(open_concepts(question, links), schema, embedder)])
    return links


def _ranked(found: Iterable[Link]) -> list[Link]:
    best: dict[tuple[str, str, str], Link] = {}
    for one in found:
        key = (one.table, one.column, one.value)
        if one.confidence >= LEAST and (key not in best or best[key].confidence < one.confidence):
            best[key] = one
    return sorted(best.values(), key=lambda x: (-x.confidence, x.table, x.column, x.value))


def _notes(question: str, evidence: str) -> Iterator[tuple[str, float]]:
    """The sentences of the notes; those that share no word with the question are trusted less."""
    asked = {w.stem for w in split(question) if w.content}
    for note in _SENTENCE.split(evidence):
        about = any(w.stem in asked for w in split(note) if w.content)
        yield note, _NOTE_TRUST if about else _ASIDE_TRUST


def _by_value(text: str, index: ValueIndex, trust: float) -> Iterator[Link]:
    """Links to columns that store what `text` quotes, names or writes out."""
    for concept, confidence in _candidates(text):
        places = index.find(concept)
        if not places:
            places = [p for form in _FORMS for p in _varied(concept, form, index)]
            confidence *= 0.9
        shared = 1 / (1 + 0.15 * max(0, len({(p.table, p.column) for p in places}) - 1))
        for place in places:
            yield _value_link(concept, place, trust * confidence * shared)
    for word in dict.fromkeys(_RUN.findall(text)):
        bare = word.strip(".,;:!?()[]\"'")
        named = bare[:1].isupper() and any(part.content for part in split(bare))
        if named or (any(c.isdigit() for c in bare) and any(c.isalpha() for c in bare)):
            for place in index.holding(bare)[:5]:
                yield _value_link(bare, place, trust * 0.5)


def _by_spelling(
    texts: Sequence[tuple[str, float]], schema: Schema, index: ValueIndex, found: Sequence[Link]
) -> list[Link]:
    """Links to what the texts write in another way than the database, by the trust in each."""
    named = Named.by(one for one in found if not one.value)
    links = []
    for text, trust in texts:
        made = [*other_spellings(text, index, named), *dates(text, schema, index, named)]
        made += shares(text, schema, named)
        known = {w.stem for one in (*found, *made) for w in split(one.concept)}
        made += in_long_texts(text, index, known)
        links += [replace(one, confidence=round(trust * one.confidence, 2)) for one in made]
    return links


def _varied(concept: str, ending: str, index: ValueIndex) -> list[Place]:
    """Places of the name that `concept` is derived from: `Volvos`, `European`, `Asian`."""
    if len(concept) - len(ending) < 4 or not concept.casefold().endswith(ending):
        return []
    return index.find(concept[: len(concept) - len(ending)])


def _value_link(concept: str, place: Place, confidence: float) -> Link:
    return Link(concept, place.table, place.column, place.value, "value", round(confidence, 2))


def _candidates(text: str) -> Iterator[tuple[str, float]]:
    """What could be a stored value: quoted text, and runs of up to six words, with a confidence."""
    for groups in _QUOTED.findall(text):
        yield "".join(groups), 1.0
    runs = [r.strip(".,;:!?()[]\"'") for r in _RUN.findall(text)]
    for size in range(1, _LONGEST_VALUE + 1):
        for i in range(len(runs) - size + 1):
            run = " ".join(runs[i : i + size])
            parts = split(run)
            if any(p.content or p.text.isdigit() or p.text.isupper() for p in parts):
                yield run, _run_confidence(run, size, first=i == 0)


def _run_confidence(run: str, size: int, first: bool) -> float:
    """Several words that are stored as one value are hardly chance; a lower-case word may be."""
    if size > 1:
        return 0.95
    if any(c.isdigit() for c in run):
        return 0.7
    return 0.85 if run[:1].isupper() and not first else 0.6


def tables_for(links: Sequence[Link], schema: Schema, k: int = 12) -> tuple[str, ...]:
    """The at most `k` tables that `links` speak for, and those needed to join them; schema order.

    All tables if no link speaks for any.
    """
    scores = table_scores(links)
    if not scores:
        return tuple(t.name for t in schema.tables)
    floor = _FLOOR * max(scores.values())
    ranked = sorted((t for t in scores if scores[t] >= floor), key=lambda t: -scores[t])
    near = neighbours(schema)
    chosen = _joined(ranked[:k], near)
    beside = (other for table in ranked for other in near[table])
    while len(chosen) < min(_AT_LEAST, k) and (other := next(beside, None)):
        chosen.add(other)
    return tuple(t.name for t in schema.tables if t.name in chosen)


def table_scores(links: Iterable[Link]) -> dict[str, float]:
    """How strongly `links` speak for each table, in (0, 1]: what different words say adds up."""
    against: dict[str, dict[str, float]] = defaultdict(dict)
    for one in links:
        kind = "value" if one.value else "column" if one.column else "table"
        doubt = 1 - _TABLE_SHARE[kind] * one.confidence
        heard = against[one.table]
        heard[one.concept] = min(doubt, heard.get(one.concept, 1.0))
    return {table: 1 - _product(heard.values()) for table, heard in against.items()}


def _product(values: Iterable[float]) -> float:
    product = 1.0
    for value in values:
        product *= value
    return product


def _joined(seeds: Sequence[str], near: Mapping[str, list[str]]) -> set[str]:
    """`seeds` and the tables on the shortest join path from each to those before it."""
    chosen: set[str] = set()
    for seed in seeds:
        chosen.update(_path(seed, chosen, near))
        chosen.add(seed)
    return chosen


def _path(start: str, goals: set[str], near: Mapping[str, list[str]]) -> list[str]:
    """The shortest join path from `start` to any goal, empty if it takes more than three joins."""
    queue = deque([[start]])
    seen = {start}
    while queue:
        path = queue.popleft()
        if path[-1] in goals:
            return path
        if len(path) <= _PATH:
            for table in near.get(path[-1], ()):
                if table not in seen:
                    seen.add(table)
                    queue.append([*path, table])
    return []


def open_concepts(question: str, links: Sequence[Link]) -> tuple[str, ...]:
    """Phrases of the question that no link explains: what is left for a model to say.

    >>> open_concepts("List customers with high churn risk", [Link("customers", "customer")])
    ('churn risk',)
    """
    linked = {w.stem for one in links for w in split(one.concept)}
    phrases: list[list[str]] = [[]]
    for word in split(question):
        if _is_open(word, linked):
            phrases[-1].append(word.text)
        elif phrases[-1]:
            phrases.append([])
    return tuple(dict.fromkeys(" ".join(phrase) for phrase in phrases if phrase))


def _is_open(word: Word, linked: set[str]) -> bool:
    return word.content and word.folded not in ASKING_WORDS and word.stem not in linked

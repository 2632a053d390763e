"""Demos that are picked for each question: the nearest of those that compiling kept for a stage.

Picking asks no model. Demos of the question itself are never handed out, so that a program can be
tried on the questions that it was compiled from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Protocol, cast

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, TypeAdapter, ValidationError

from lynx_dspy.errors import ArtifactError
from lynx_dspy.grounding.embedding import Embedder, embedder_of
from lynx_dspy.grounding.identifiers import fold, stem, words
from lynx_dspy.grounding.lexical import STOP_WORDS
from lynx_dspy.progress import report
from lynx_dspy.tokens import estimate

FILE = "demos.json"
"""Where an artifact keeps the demos of all stages."""

_TURN_TOKENS = 12
"""What the labels and turns around a demo cost about."""

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shot:
    """A demo's fields, and the question and database that it comes from."""

    fields: Fields
    question: str
    database: str

    @property
    def tokens(self) -> int:
        """About what it costs in a prompt."""
        return _TURN_TOKENS + sum(estimate(str(value)) for value in self.fields.values())


@dataclass(frozen=True, slots=True)
class Asked:
    """The question that is being answered, and the name of its database."""

    question: str = ""
    database: str = ""


_asked: ContextVar[Asked] = ContextVar("lynx_asked", default=Asked())  # noqa: B039 - frozen


@contextmanager
def answering(question: str, database: str) -> Iterator[None]:
    """Demos picked inside the block are those near to `question`."""
    token = _asked.set(Asked(question, database))
    try:
        yield
    finally:
        _asked.reset(token)


@dataclass(frozen=True)
class NearestDemos:
    """The demos of one stage, and how some of them are picked.

    At most `k` demos within `tokens` are handed out, the nearest last: next to the question. With
    `same_database_first` those of the question's database come before all others. Inputs named in
    `shared` are the same for every question of a database (its schema): they stand before the
    demos, which a prefix cache likes, and demos of that database do not repeat them. `embedder`
    names the one that nearness was tried with; empty means keywords.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    shots: tuple[Shot, ...]
    k: int = 4
    tokens: int = 600
    same_database_first: bool = True
    shared: tuple[str, ...] = ()
    embedder: str = ""

    def pick(self) -> list[Fields]:
        """The fields of the demos for the question that is being answered."""
        asked = _asked.get()
        likeness = self._likeness(asked.question)
        itself = _plain(asked.question)

        def nearness(place: int) -> tuple[bool, float, int]:
            own = self.same_database_first and self.shots[place].database == asked.database
            return own, float(likeness[place]), -place

        ranked = sorted(range(len(self.shots)), key=nearness, reverse=True)
        others = (self.shots[i] for i in ranked if _plain(self.shots[i].question) != itself)
        return self._fitting(self._shown(shot, asked.database) for shot in others)

    def _shown(self, shot: Shot, database: str) -> Shot:
        if shot.database != database:
            return shot
        own = {name: v for name, v in shot.fields.items() if name not in self.shared}
        return Shot(own, shot.question, shot.database)

    def _fitting(self, ranked: Iterator[Shot]) -> list[Fields]:
        kept: list[Fields] = []
        room = self.tokens
        for shot in ranked:
            if len(kept) == self.k:
                break
            if shot.tokens <= room:
                room -= shot.tokens
                kept.insert(0, dict(shot.fields))
        return kept

    def _likeness(self, question: str) -> npt.NDArray[np.float32]:
        if not question:
            return np.zeros(len(self.shots), dtype=np.float32)
        if self._vectors is None:
            return self._keywords.scores(question)
        embedder, vectors = self._vectors
        return cast(npt.NDArray[np.float32], vectors @ embedder.encode([question])[0])

    @cached_property
    def _vectors(self) -> tuple[Embedder, npt.NDArray[np.float32]] | None:
        if not self.embedder or not self.shots:
            return None
        embedder = embedder_of(self.embedder)
        if embedder is None:
            report("demos", f"{self.embedder} is not here: demos are picked by keywords")
            return None
        return embedder, embedder.encode([shot.question for shot in self.shots])

    @cached_property
    def _keywords(self) -> _Keywords:
        return _Keywords([shot.question for shot in self.shots])

    def __deepcopy__(self, memo: dict[int, Any]) -> NearestDemos:
        return self

    def to_json(self) -> Fields:
        """As plain JSON values."""
        known = {f.name: getattr(self, f.name) for f in fields(self)}
        return {
            **known,
            "shared": list(self.shared),
            "shots": [asdict(shot) for shot in self.shots],
        }

    @classmethod
    def from_json(cls, value: Any) -> NearestDemos:
        """What `to_json` gave. Raises `ArtifactError` for another shape."""
        try:
            # As JSON, whose lists may become tuples although every type is checked.
            return TypeAdapter(cls).validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, fault["loc"])) or "a stage"
            reason = f"{where}: {fault['msg'].lower()}"
            raise ArtifactError(f"{FILE} does not hold demos to pick from ({reason}).") from None


class Picks(Protocol):
    """A predictor that picks its demos."""

    nearest: NearestDemos | None


def artifact_files(predictors: Mapping[str, object]) -> dict[str, Any]:
    """What an artifact keeps of the stages that pick their demos, by dotted path."""
    picking = {path: getattr(one, "nearest", None) for path, one in predictors.items()}
    kept = {path: one.to_json() for path, one in picking.items() if one is not None}
    return {FILE: kept} if kept else {}


def restore_files(predictors: Mapping[str, object], files: Mapping[str, Any]) -> None:
    """Give stages what `artifact_files` kept. Raises `ArtifactError` for what does not fit."""
    for path, value in files.get(FILE, {}).items():
        if not hasattr(predictors.get(path), "nearest"):
            raise ArtifactError(f"{FILE} has demos for {path!r}, which is no stage of the program.")
        cast(Picks, predictors[path]).nearest = NearestDemos.from_json(value)


class _Keywords:
    """Likeness by the words that two questions share, weighted by BM25."""

    def __init__(self, questions: Sequence[str]) -> None:
        import bm25s

        corpus = [_terms(question) or ["_"] for question in questions]
        self._known = {term for terms in corpus for term in terms}
        self._index = bm25s.BM25()
        self._index.index(corpus, show_progress=False)
        self._size = len(corpus)

    def scores(self, question: str) -> npt.NDArray[np.float32]:
        """One a question, the higher the nearer."""
        terms = [term for term in _terms(question) if term in self._known]
        if not terms:
            return np.zeros(self._size, dtype=np.float32)
        return cast(npt.NDArray[np.float32], self._index.get_scores(terms))


def _terms(question: str) -> list[str]:
    return [stem(word) for word in words(question) if word not in STOP_WORDS]


def _plain(question: str) -> str:
    return " ".join(fold(question).split()).strip(" .?!")

"""Fallback: what a model may object to is taken out, the riskiest first (paper, Fig. 3).

A stage that is refused, by a content filter or since its prompt is too long, says so in its reply.
The stages are then asked again without external text, then without documents, then without sample
values; schema and metadata stay. What an earlier stage wrote from text that is dropped is written
again too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import dspy
from dspy.utils.exceptions import (
    ContextWindowExceededError,
    LMInvalidRequestError,
    LMProviderError,
)

from lynx_dspy.lm.ledger import finish_reason
from lynx_dspy.progress import report
from lynx_dspy.values import Dropped, Knowledge

LENGTH = "length"
CONTENT_FILTER = "content filter"
NOTHING = "nothing"

T = TypeVar("T")

_FILTERED = re.compile(
    r"content[ _-]?(?:filter|polic|moderation|management|violation)|responsible ai|"
    r"safety (?:system|filter|setting|polic|reason)|flagged|moderation|usage polic",
    re.I,
)


class Objection(NamedTuple):
    """Which stage was refused, and why: `LENGTH` or `CONTENT_FILTER`."""

    stage: str
    why: str


class Rung(NamedTuple):
    """Knowledge without `what`, and without all that the rungs before it left out."""

    what: str
    knowledge: Knowledge


Ask = Callable[[Knowledge, bool], tuple[T, Objection | None]]
"""Asks the stages with this knowledge. It returns at the first objection, unless the flag is set:
then a stage that is refused gives nothing, and the others are asked all the same."""


def asked_with_less(
    ask: Ask[T], knowledge: Knowledge, lesser: Iterator[Rung]
) -> tuple[T, tuple[Dropped, ...]]:
    """What `ask` gives for the first knowledge without objection, and what was dropped until then.

    `lesser` is advanced only as far as it is needed.
    """
    dropped: list[Dropped] = []
    result, objection = ask(knowledge, False)
    while objection is not None:
        rung = next(lesser, None)
        what = rung.what if rung else NOTHING
        dropped.append(Dropped(objection.stage, what, objection.why))
        report(objection.stage, f"refused ({objection.why}); dropped: {what}")
        if rung is None:
            return ask(knowledge, True)[0], tuple(dropped)
        knowledge = rung.knowledge
        result, objection = ask(knowledge, False)
    return result, tuple(dropped)


def objection_in(stage: str, reply: dspy.Prediction) -> Objection | None:
    """The objection that a stage's reply carries."""
    why = reply.get("objection")
    return Objection(stage, why) if why else None


def reason_of(error: LMProviderError) -> str:
    """`LENGTH` or `CONTENT_FILTER`; empty if the provider refuses for another reason."""
    if isinstance(error, ContextWindowExceededError):
        return LENGTH
    refused = isinstance(error, LMInvalidRequestError) or type(error) is LMProviderError
    said = f"{error.code} {error.provider_code} {error.message}"
    return CONTENT_FILTER if refused and _FILTERED.search(said) else ""


class Watch:
    """Looks like a calling module to DSPy, which hands it the history entry of every call."""

    def __init__(self) -> None:
        self.history: list[dict[str, Any]] = []

    @property
    def filtered(self) -> bool:
        """Whether the last reply was cut or withheld by a content filter."""
        return bool(self.history) and finish_reason(self.history[-1]) == "content_filter"


@contextmanager
def watching() -> Iterator[Watch]:
    """See how the calls inside the block end, in this context alone."""
    watch = Watch()
    with dspy.context(caller_modules=[watch, *(dspy.settings.caller_modules or [])]):
        yield watch

"""Verifier: rubber-duck check of a program that runs (paper, III-C).

The program is explained by a stage that does not see the question; another holds the explanation
against the checklist of the question. Its judgements are weighed here, and only what is violated
asks for a correction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import dspy

from lynx_dspy import config
from lynx_dspy.grounding.render import render
from lynx_dspy.modules import plain
from lynx_dspy.modules.checklist import CLAUSE_OF, Asked, Item, checklist, numbered, shown_by
from lynx_dspy.modules.clauses import tables_named
from lynx_dspy.modules.critic import bounded
from lynx_dspy.modules.generator import Draft
from lynx_dspy.modules.stage import Stage
from lynx_dspy.signatures import CompareExplanation, ExplainProgram
from lynx_dspy.tokens import clip
from lynx_dspy.values import Attempt, FailureClass, Finding, Outcome


class Explain(Stage):
    """`verifier.explain`."""

    stage_name = "verifier.explain"
    asks = ExplainProgram
    stand_in = staticmethod(plain.no_explanation)
    says = "explaining the program without seeing the question"


class Compare(Stage):
    """`verifier.compare`."""

    stage_name = "verifier.compare"
    asks = CompareExplanation
    stand_in = staticmethod(plain.no_verdict)
    says = "comparing the explanation with the question"
    needs = ("explanation",)


class State(StrEnum):
    """What was found of an item."""

    SATISFIED = "satisfied"
    VIOLATED = "violated"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Judged:
    """One item of the checklist; `supported` says that its quote occurs where it must."""

    item: Item
    state: State
    quote: str = ""
    supported: bool = False

    @property
    def weight(self) -> float:
        """What the item adds to the doubt: 1 if violated with a quote, half of it without one."""
        return (1.0 if self.supported else 0.5) if self.state is State.VIOLATED else 0.0

    @property
    def text(self) -> str:
        """The item and what was found of it, in one line."""
        return f"{self.item.text} is {self.state}{f' ({self.quote})' if self.quote else ''}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`consistent` is None when nobody judged; `doubt` is what the verdict was taken from."""

    consistent: bool | None
    explanation: str = ""
    mismatch: str = ""
    items: tuple[Judged, ...] = ()
    doubt: float | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What a rejected program must change: a finding for each violated item."""
        violated = [j for j in self.items if j.state is State.VIOLATED]
        if not violated:
            text = self.mismatch or "does not answer the question"
            return (Finding(FailureClass.SEMANTIC, text),)
        return tuple(
            Finding(FailureClass.SEMANTIC, j.text, clause=CLAUSE_OF[j.item.asked]) for j in violated
        )


class Verifier(dspy.Module):
    """Explain, then compare."""

    def __init__(self) -> None:
        super().__init__()
        self.explain = Explain()
        self.compare = Compare()

    def forward(self, question: str, draft: Draft, attempt: Attempt) -> Verdict:
        """The verdict on an attempt that ran; it is rejected from `verify_threshold` on."""
        dialect = draft.schema.dialect
        told = self.explain(
            structure=tables_read(draft, attempt),
            program=bounded(attempt.code, config.current().program_tokens),
            preview=preview(attempt),
        )
        items = checklist(question, draft.knowledge.links)
        reply = self.compare(
            intent=draft.intent,
            question=question,
            checklist=numbered(items),
            result=shape(attempt),
            explanation=told.explanation,
        )
        if reply.consistent is None:
            return Verdict(None, told.explanation)
        seen = f"{told.explanation}\n{attempt.code}\n{question}\n{shape(attempt)}"
        judged = read_items(reply.get("items") or (), items, seen)
        judged = tuple(checked(j, attempt.code, dialect) for j in judged)
        return weighed(reply.consistent, judged, told.explanation, reply.mismatch or "")


def weighed(
    consistent: bool, items: tuple[Judged, ...], explanation: str, mismatch: str
) -> Verdict:
    """The verdict from the judged items and from the model's word on the whole.

    An overall no weighs half a violated item, and a whole one where no item was judged.
    """
    overall = 0.0 if consistent else 0.5 if items else 1.0
    doubt = overall + sum(judged.weight for judged in items)
    stands = doubt < config.current().verify_threshold
    told = "; ".join(j.text for j in items if j.state is State.VIOLATED)
    return Verdict(stands, explanation, "" if stands else told or mismatch, items, doubt)


_JUDGEMENT = re.compile(
    r"\W*(?:(?P<n>\d+)\b)?.*?\b(?<!not )(?P<state>satisfied|violated|unclear)\b", re.I
)
_QUOTED = re.compile(r"[\"“'](.{3,}?)[\"”'](?!\w)")


def read_items(lines: Sequence[str], items: Sequence[Item], seen: str) -> tuple[Judged, ...]:
    """The judgements of a reply's `number state: quote` lines, each item once, by its number.

    Lines that lost their numbers are read in order if there is one for each item.
    """
    read = [(line, match) for line in map(str, lines) if (match := _JUDGEMENT.match(line))]
    in_order = len(read) == len(items) and not any(match["n"] for _, match in read)
    found: dict[int, Judged] = {}
    for place, (line, match) in enumerate(read, 1):
        number = place if in_order else int(match["n"] or 0)
        if 1 <= number <= len(items) and number not in found:
            quote = line[match.end() :].strip(" :-–—.,")
            state = State(match["state"].casefold())
            supported = _occurs(quote, seen)
            found[number] = Judged(items[number - 1], state, bounded(quote, 40), supported)
    return tuple(found[number] for number in sorted(found))


def _occurs(quote: str, seen: str) -> bool:
    """Whether the quoted words (all of the text where none are marked) stand in what was seen."""
    marked = _QUOTED.findall(quote) or [quote]
    haystack = _plain(seen)
    return any(len(_plain(text)) > 2 and _plain(text) in haystack for text in marked)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[\w%]+", text.casefold()))


def checked(judged: Judged, code: str, dialect: str) -> Judged:
    """The judgement, corrected by what the program's text settles.

    A year that the program lacks weighs half: a column may hold that year's figures alone.
    """
    shown = shown_by(code, judged.item, dialect)
    if shown is False and judged.state is not State.VIOLATED:
        sure = judged.item.asked is not Asked.TIME
        return Judged(judged.item, State.VIOLATED, "the program does not do it", sure)
    if shown is True and judged.state is State.VIOLATED:
        return replace(judged, state=State.UNCLEAR)
    return judged


def tables_read(draft: Draft, attempt: Attempt) -> str:
    """The tables that the program reads, as schema text: all that the explanation needs.

    What the generator linked is left out of it, for it repeats words of the question.
    """
    names = tables_named(attempt.code, draft.schema.dialect)
    tables = tuple(t for t in draft.schema.tables if t.name.casefold() in names)
    read = replace(draft.schema, tables=tables or draft.schema.tables)
    return render(read, config.current().schema_tokens).text


def shape(attempt: Attempt) -> str:
    """Output columns, number of rows and oddities of a result."""
    outcome = attempt.outcome
    rows = f"{outcome.row_count}{' or more' if outcome.truncated else ''} rows"
    lines = [f"columns {', '.join(outcome.columns)}; {rows}", *attempt.signals]
    return clip("\n".join(lines), 150)


def preview(attempt: Attempt) -> str:
    """Column names and first rows as clipped text, then what is odd about the result.

    Cells are data for the model, never advice.
    """
    return "\n".join([rows_text(attempt.outcome), *attempt.signals])


def rows_text(outcome: Outcome) -> str:
    """Column names and the first `preview_rows` rows, then how many there are."""
    rows = outcome.rows[: config.current().preview_rows]
    lines = [" | ".join(outcome.columns), *(" | ".join(_cell(v) for v in row) for row in rows)]
    return clip("\n".join([*lines, f"({outcome.row_count} rows)"]), 200)


def _cell(value: object) -> str:
    text = "NULL" if value is None else str(value).replace("\n", " ")
    return text if len(text) <= 40 else text[:39] + "…"

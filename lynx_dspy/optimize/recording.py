"""From an answer and a judge to the record of a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from lynx_dspy.answers import cell
from lynx_dspy.metrics.feedback import feedback
from lynx_dspy.metrics.linking import Linking, linking
from lynx_dspy.optimize.asking import Reply
from lynx_dspy.optimize.judge import Judge, Unscored
from lynx_dspy.optimize.records import (
    GOLD_BROKEN,
    UNAVAILABLE,
    AttemptRecord,
    Clip,
    Failure,
    LinkingRecord,
    Record,
    StageUse,
    UsageTotals,
)
from lynx_dspy.values import Attempt, Link, Outcome, Schema, Status

if TYPE_CHECKING:
    import dspy

Made = TypeVar("Made")

_CLIP_ROWS = 5
_CLIP_COLUMNS = 12
_CLIP_CHARS = 60


def blank(example: dspy.Example) -> Record:
    """The record of a question that nothing is known of yet."""
    return Record(
        id=example.id,
        db=example.db,
        dialect=example.dialect,
        difficulty=example.difficulty,
        question=example.question,
        code="",
        status=UNAVAILABLE,
        error="",
        failure_class=None,
        verified=None,
        finish="fault",
        rounds=0,
        extracted=False,
        attempts=[],
        right_by_round=[],
        usage=_totals(()),
        stages=[],
        seconds=0.0,
        scores={},
        linking=None,
        linked=None,
        failure=None,
    )


def not_asked(example: dspy.Example, reason: str) -> Record:
    """The record of a question whose database or documents cannot be reached."""
    record = blank(example)
    record["error"] = reason
    return record


def with_reply(record: Record, reply: Reply) -> Record:
    """`record` with the answer, its attempts and what they cost, not judged yet."""
    record["stages"] = reply.stages
    record["usage"] = _totals(reply.stages)
    record["seconds"] = round(reply.seconds, 4)
    answer = reply.answer
    if answer is None:
        record["status"], record["error"] = str(reply.status), reply.error
        record["finish"] = "deadline" if reply.status == Status.TIMEOUT else "fault"
        return record
    attempts: Sequence[Attempt] = answer.get("attempts") or ()
    outcome: Outcome = answer.outcome
    verdicts = [a.verified for a in attempts if a.outcome is outcome]
    with_outcome(record, answer.code, outcome)
    record["verified"] = verdicts[-1] if verdicts else None
    record["finish"] = _finish(outcome, record["verified"])
    record["rounds"] = max((a.round for a in attempts), default=0)
    record["attempts"] = [_attempt(a) for a in attempts]
    return record


def with_outcome(record: Record, code: str, outcome: Outcome) -> Record:
    """`record` with a program and what running it gave."""
    record["code"] = code
    record["status"] = str(outcome.status)
    record["error"] = outcome.error
    record["failure_class"] = outcome.failure_class
    record["extracted"] = bool(code.strip()) and outcome.status is not Status.NO_PROGRAM
    record["finish"] = "scored"
    return record


def with_scores(
    record: Record, example: dspy.Example, judge: Judge, schema: Schema | None, repeats: int
) -> Record:
    """`record` with scores, names beside the gold's, and for a failure what differs.

    Raises `Unscored` if an engine fails.
    """
    record["scores"] = {k: round(v, 6) for k, v in judge.scores(record["code"], repeats).items()}
    if schema is not None:
        record["linking"] = linked(example.gold_sql, record["code"], schema)
    if not record["scores"]["ex"]:
        record["failure"] = _failure(record, judge, schema)
    return record


def without_scores(record: Record, fault: Unscored) -> Record:
    """`record` of a question that cannot be judged."""
    record["status"], record["error"] = fault.status, str(fault)
    record["scores"], record["failure"] = {}, None
    if fault.status != GOLD_BROKEN:
        record["finish"] = "fault"
    return record


def without_answer(record: Record) -> Record:
    """`record` of a program that gave nothing to judge: 0 by every score."""
    record["scores"] = dict.fromkeys(("ex", "ex_strict", "soft_f1", "soft_f1_cells"), 0.0)
    return record


def judge_attempts(record: Record, attempts: Sequence[Attempt], judge: Judge) -> Record:
    """`record` with the verdict on every attempt and on every number of repairs.

    An attempt that the static check stopped did not run; it is run here, so that a check that
    stops right programs is found out. Raises `Unscored` if an engine fails.
    """
    from lynx_dspy.program import best_of

    rights = [
        judge.right(a.code) if a.outcome.ran or _refused(attempts, i) else False
        for i, a in enumerate(attempts)
    ]
    for attempt, right in zip(record["attempts"], rights, strict=True):
        attempt["right"] = right
    by_identity = {id(a): right for a, right in zip(attempts, rights, strict=True)}
    record["right_by_round"] = [
        by_identity[id(best_of([a for a in attempts if a.round <= most]))]
        for most in range(record["rounds"] + 1)
        if any(a.round <= most for a in attempts)
    ]
    return record


def known_outcomes(attempts: Sequence[Attempt]) -> dict[str, Outcome]:
    """Outcomes by code that the judge need not repeat: whole ones, of programs that really ran."""
    return {
        a.code: a.outcome
        for i, a in enumerate(attempts)
        if not a.outcome.truncated
        and a.outcome.status is not Status.UNAVAILABLE
        and not _refused(attempts, i)
    }


def linked(
    golds: Iterable[str], names: str | Iterable[str], schema: Schema
) -> LinkingRecord | None:
    """Names in a program (or given) beside those of the gold that they fit best."""
    found: list[Linking] = []
    for gold in golds:
        shares = _by_the_way(partial(linking, gold, names, schema))
        found += [shares] if shares is not None else []
    if not found:
        return None
    best = max(found, key=lambda shares: sum(astuple(shares)))
    return LinkingRecord(
        table_precision=round(best.table_precision, 4),
        table_recall=round(best.table_recall, 4),
        column_precision=round(best.column_precision, 4),
        column_recall=round(best.column_recall, 4),
    )


def names_of(links: Iterable[Link]) -> list[str]:
    """`table` and `table.column` of the links.

    >>> names_of([Link("price", "orders", "total")])
    ['orders', 'orders.total']
    """
    tables = {link.table for link in links}
    columns = {f"{link.table}.{link.column}" for link in links if link.column}
    return sorted(tables | columns)


def _refused(attempts: Sequence[Attempt], place: int) -> bool:
    """Whether the static check put the next attempt in the place of this one before it ran."""
    following = attempts[place + 1 : place + 2]
    return any(a.source == "static" and a.round == attempts[place].round for a in following)


def _finish(outcome: Outcome, verified: bool | None) -> str:
    if outcome.status is Status.UNAVAILABLE:
        return "fault"
    if not outcome.ran:
        return "failed"
    return {True: "verified", False: "rejected", None: "unjudged"}[verified]


def _attempt(attempt: Attempt) -> AttemptRecord:
    return AttemptRecord(
        round=attempt.round,
        source=attempt.source,
        code=attempt.code,
        status=str(attempt.outcome.status),
        error=attempt.outcome.error,
        failure_class=attempt.failure_class,
        verified=attempt.verified,
        doubt=attempt.doubt,
        extracted=bool(attempt.code.strip()) and not attempt.parse_failed,
        delta=attempt.delta,
        suggestion=attempt.suggestion,
        right=None,
    )


def _totals(stages: Iterable[StageUse]) -> UsageTotals:
    totals = UsageTotals(
        calls=0, prompt_tokens=0, completion_tokens=0, total_tokens=0, billed_tokens=0
    )
    for use in stages:
        totals["calls"] += use["calls"]
        totals["prompt_tokens"] += use["prompt_tokens"]
        totals["completion_tokens"] += use["completion_tokens"]
        totals["billed_tokens"] += use["billed_tokens"]
    totals["total_tokens"] = totals["prompt_tokens"] + totals["completion_tokens"]
    return totals


def _failure(record: Record, judge: Judge, schema: Schema | None) -> Failure:
    gold, predicted = judge.gold(), judge.outcome(record["code"])
    return Failure(
        kind=_kind(gold, predicted),
        difference=_difference(judge.gold_code, record["code"], schema),
        gold_code=judge.gold_code,
        gold=_clip(gold),
        predicted=_clip(predicted),
    )


def _kind(gold: Outcome, predicted: Outcome) -> str:
    if not predicted.ran:
        return str(predicted.status)
    if len(gold.columns) != len(predicted.columns):
        return "columns"
    return "rows" if gold.row_count != predicted.row_count else "values"


def _difference(gold_code: str, code: str, schema: Schema | None) -> str:
    if schema is None or not gold_code or not code.strip():
        return ""
    return _by_the_way(partial(feedback, gold_code, code, schema)) or ""


def _by_the_way(work: Callable[[], Made]) -> Made | None:
    """What `work` gives, None if it fails.

    Names and differences are by-products, read from whatever text a model wrote; a parser that
    stumbles over it must not end a run of thousands of questions, again at every resume.
    """
    try:
        return work()
    except Exception:  # noqa: BLE001 - the reason stands above
        return None


def _clip(outcome: Outcome) -> Clip:
    return Clip(
        columns=[_short(name) for name in outcome.columns[:_CLIP_COLUMNS]],
        rows=[
            [_short(value) for value in row[:_CLIP_COLUMNS]] for row in outcome.rows[:_CLIP_ROWS]
        ],
        row_count=outcome.row_count,
        error=outcome.error,
    )


def _short(value: Any) -> str:
    plain = cell(value)
    text = "NULL" if plain is None else " ".join(str(plain).split())
    return text if len(text) <= _CLIP_CHARS else text[: _CLIP_CHARS - 1] + "…"

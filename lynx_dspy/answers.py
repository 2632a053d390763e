"""An answer as plain JSON values: the contract of `lynx ask --json`."""

from __future__ import annotations

import datetime
import decimal
import math
from dataclasses import asdict
from typing import Any

import dspy

from lynx_dspy.engines.base import Database
from lynx_dspy.values import Attempt, Usage, UsageReport


def to_json(
    answer: dspy.Prediction, question: str, database: Database, lm: dict[str, Any]
) -> dict[str, Any]:
    """The answer of `Lynx` as one JSON object; cells that JSON lacks become text."""
    outcome = answer.outcome
    return {
        "question": question,
        "database": database.url,
        "dialect": database.dialect,
        "code": answer.code,
        "status": outcome.status,
        "columns": list(outcome.columns),
        "rows": [[cell(v) for v in row] for row in outcome.rows],
        "row_count": outcome.row_count,
        "truncated": outcome.truncated,
        "verified": answer.verified,
        "ended": answer.get("ended"),
        "attempts": [attempt_json(a) for a in answer.attempts],
        "knowledge": {
            "semantic": answer.knowledge.semantic,
            "structural": answer.knowledge.structural,
            "syntax": answer.knowledge.syntax,
            "external": answer.knowledge.external,
            "left_out": list(answer.knowledge.left_out),
        },
        "dropped": [asdict(dropped) for dropped in answer.dropped],
        "usage": usage_json(answer.usage),
        "seconds": round(answer.seconds, 3),
        "lm": lm,
        "artifact": None,
    }


def attempt_json(attempt: Attempt) -> dict[str, Any]:
    """One attempt of the closed loop."""
    return {
        "round": attempt.round,
        "code": attempt.code,
        "status": attempt.outcome.status,
        "error": attempt.outcome.error,
        "failure_class": attempt.failure_class,
        "delta": attempt.delta,
        "suggestion": attempt.suggestion,
        "source": attempt.source,
        "signals": list(attempt.signals),
        "doubt": attempt.doubt,
        "reverted": list(attempt.reverted),
    }


def usage_json(usage: UsageReport) -> dict[str, Any]:
    """Tokens by stage and in all."""
    total = usage.total
    return {
        "stages": {name: _stage_json(stage) for name, stage in usage.stages.items()},
        "prompt_tokens": total.prompt_tokens,
        "completion_tokens": total.completion_tokens,
        "total_tokens": total.total_tokens,
        "billed_tokens": total.billed_tokens,
    }


def _stage_json(usage: Usage) -> dict[str, int]:
    return {
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
    }


def cell(value: Any) -> Any:
    """A cell as a JSON value: bytes as hex, dates as ISO text, other types as their text.

    A decimal is a number where that is exact, as far as a float's digits go, else its text.

    >>> cell(b"\\x01\\xff"), cell(float("nan")), cell(datetime.date(2026, 1, 2))
    ('0x01ff', None, '2026-01-02')
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, decimal.Decimal):
        number = float(value)
        return number if decimal.Decimal(repr(number)) == value else str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"0x{bytes(value).hex()}"
    if isinstance(value, (datetime.date, datetime.time, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(k): cell(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [cell(v) for v in value]
    return str(value)

"""From a program's exception to a status, a failure class and one line (paper, III-C)."""

from __future__ import annotations

import re
import signal

from lynx_dspy.engines.failures import one_line
from lynx_dspy.engines.python.audit import MARK
from lynx_dspy.engines.python.reading import Report
from lynx_dspy.engines.python.sandbox import Ran
from lynx_dspy.values import FailureClass, Limits, Outcome, Status

CLASSES: tuple[tuple[str, str, FailureClass], ...] = (
    (r"SyntaxError|IndentationError|TabError", r"", FailureClass.SYNTAX),
    (r"NoResult|NoTable", r"", FailureClass.SYNTAX),
    (r"NameError|UnboundLocalError|ImportError|ModuleNotFoundError", r"", FailureClass.SYNTAX),
    (r"KeyError|UndefinedVariableError", r"", FailureClass.SCHEMA),
    (r"CatalogException|BinderException", r"", FailureClass.SCHEMA),
    (r"ParserException", r"", FailureClass.SYNTAX),
    (r"ValueError", r"not in index|not found in (axis|columns)|do not exist", FailureClass.SCHEMA),
    (r"AttributeError", r"'(DataFrame|DataFrameGroupBy)' object", FailureClass.SCHEMA),
    (r"AttributeError", r"", FailureClass.SYNTAX),
    (r"", r"", FailureClass.SEMANTIC),
)
"""(exception, what its text holds, class); the first that matches holds."""

_TOO_MUCH = "takes more memory than it may"
_PRINTED_CHARS = 120


def outcome_of(ran: Ran, limits: Limits) -> Outcome:
    """What became of a program, as the value that every engine gives."""
    if ran.expired or ran.code == -signal.SIGXCPU:
        error = f"stopped after {limits.timeout_seconds:g} s: the program takes too long"
        return Outcome(Status.TIMEOUT, error=error, seconds=ran.seconds)
    if ran.table is not None:
        status = Status.OK if ran.table.rows else Status.EMPTY
        return Outcome(
            status, ran.table.columns, ran.table.rows, ran.table.truncated, seconds=ran.seconds
        )
    if ran.report.kind:
        return _failed(ran.report, ran.seconds)
    return _error(_ending(ran), FailureClass.SEMANTIC, ran.seconds)


def _failed(report: Report, seconds: float) -> Outcome:
    if report.kind == "MemoryError":
        return _error(f"the program {_TOO_MUCH}{_place(report)}", FailureClass.SEMANTIC, seconds)
    if MARK in report.error:
        return Outcome(
            Status.BLOCKED,
            error=one_line(f"{report.error}{_place(report)}"),
            failure_class=FailureClass.SYNTAX,
            seconds=seconds,
        )
    found = next(
        failure
        for kinds, text, failure in CLASSES
        if re.fullmatch(kinds or ".*", report.kind) and re.search(text, report.error)
    )
    if report.kind == "NoResult":
        printed = " ".join(report.printed.split())[:_PRINTED_CHARS]
        text = report.error + (f"; it printed: {printed}" if printed else "")
    else:
        text = f"{report.kind}: {report.error}" if report.error else report.kind
    return _error(text + _place(report), found, seconds)


def _place(report: Report) -> str:
    if not report.line:
        return ""
    return f" (line {report.line}{f': {report.source}' if report.source else ''})"


def _ending(ran: Ran) -> str:
    """Why a process that said nothing may have ended."""
    if ran.code < 0:
        return f"the program was ended by {_signal(-ran.code)}: it may take more than it may"
    return ran.fault if ran.fault and not ran.code else "the program ended its own process"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _error(text: str, failure: FailureClass, seconds: float) -> Outcome:
    line = " ".join(text.split())
    line = line if len(line) <= 400 else line[:399] + "…"
    return Outcome(Status.ERROR, error=line, failure_class=failure, seconds=seconds)

"""The pages of a run for people: report.md and errors.md."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lynx_dspy.errors import BadInput
from lynx_dspy.metrics.intervals import Interval
from lynx_dspy.optimize.journal import write_whole
from lynx_dspy.optimize.records import (
    ERRORS_PAGE,
    REPORT,
    REPORT_PAGE,
    UNSCORED,
    Clip,
    Cost,
    Failure,
    Group,
    Record,
    Report,
)

_TITLES = {
    "ex": "EX",
    "ex_strict": "EX strict",
    "soft_f1": "Soft-F1",
    "soft_f1_cells": "Soft-F1 of cells",
    "r_ves": "R-VES",
    "ves": "VES",
}


_IDS = 10
"""Ids listed of the questions that were not scored for one reason."""


def write_pages(out: Path, report: Report, records: Iterable[Record]) -> None:
    """Write report.json, report.md and errors.md; `records` are streamed."""
    write_whole(out / REPORT, json.dumps(report.to_json(), indent=1, ensure_ascii=False) + "\n")
    write_whole(out / REPORT_PAGE, report_page(report))
    part = out / f".{ERRORS_PAGE}.part"
    try:
        with part.open("w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.writelines(error_page(records))
        os.replace(part, out / ERRORS_PAGE)
    except OSError as error:
        raise BadInput(f"Cannot write {out / ERRORS_PAGE}: {error.strerror}.") from None


def report_page(report: Report) -> str:
    """The report as Markdown."""
    sections = (
        _head(report),
        _scores(report),
        *(_by(axis, groups) for axis, groups in report.by.items()),
        _costs(report),
        _quality(report),
        _losses(report),
    )
    filled = (lines for section in sections if (lines := list(section)))
    return "\n\n".join("\n".join(lines) for lines in filled) + "\n"


def percent(score: Interval) -> str:
    """A score with its interval.

    >>> percent(Interval(0.5, 0.25, 0.75, 4))
    '50.00 [25.00, 75.00]'
    """
    return f"{score.value * 100:.2f} [{score.low * 100:.2f}, {score.high * 100:.2f}]"


def _head(report: Report) -> Iterator[str]:
    yield f"# {report.dataset or 'examples'} {report.split}".rstrip()
    yield ""
    unscored = ", ".join(f"{n} {status}" for status, n in report.unscored.items() if n)
    yield f"{report.n} questions, {report.scored} scored" + (f"; {unscored}." if unscored else ".")
    model = report.lm["name"] if report.lm else "none: given predictions"
    parts = [f"Model: {model}", f"questions {report.dataset_hash}", f"lynx {report.version}"]
    parts += [f"without {', '.join(report.without)}"] if report.without else []
    parts += [f"artifact {report.artifact}"] if report.artifact else []
    yield "; ".join(parts) + "."


def _scores(report: Report) -> Iterator[str]:
    yield "## Scores"
    yield ""
    yield "In percent, with 95 % intervals (Wilson for EX, bootstrap for the others)."
    yield ""
    rows = [
        (_TITLES.get(name, name), percent(score), str(score.n))
        for name, score in report.scores.items()
    ]
    yield from table(("score", "value", "n"), rows)
    if report.official:
        yield ""
        shares = (f"{k}/{n} = {k / int(n) * 100:.2f} %" for n, k in report.official.items())
        yield f"EX over all tasks, those not scored counted as wrong: {', '.join(shares)}."


def _by(axis: str, groups: dict[str, Group]) -> Iterator[str]:
    groups = {value: group for value, group in groups.items() if group.scored}
    if len(groups) < 2:
        return
    yield f"## By {axis}"
    yield ""
    names = [name for name in _TITLES if any(name in g.scores for g in groups.values())]
    rows = [
        (
            value,
            f"{group.scored}/{group.n}",
            *(percent(group.scores[n]) if n in group.scores else "" for n in names),
        )
        for value, group in groups.items()
    ]
    yield from table((axis, "scored", *(_TITLES[n] for n in names)), rows)


def _costs(report: Report) -> Iterator[str]:
    if not report.cost.calls:
        return
    yield "## Cost a question"
    yield ""
    rows = [("all", *_cost_cells(report.cost))]
    rows += [(name, *_cost_cells(cost)) for name, cost in report.by_stage.items()]
    rows += [(f"round {number}", *_cost_cells(cost)) for number, cost in report.by_round.items()]
    yield from table(("", "calls", "prompt", "completion", "tokens", "billed", "seconds"), rows)
    yield ""
    yield (
        f"{report.rounds_mean:.2f} repair rounds and {report.seconds_per_question:.2f} s a "
        f"question; {report.cut_replies} replies were cut at the token limit."
    )


def _cost_cells(cost: Cost) -> tuple[str, ...]:
    return (
        f"{cost.calls:.2f}",
        f"{cost.prompt_tokens:,.0f}",
        f"{cost.completion_tokens:,.0f}",
        f"{cost.total_tokens:,.0f}",
        f"{cost.billed_tokens:,.0f}",
        f"{cost.seconds:.2f}",
    )


def _quality(report: Report) -> Iterator[str]:
    yield "## What the parts did"
    yield ""
    rows = [("programs that run", _share(report.executable))]
    rows += [("replies with a program", _share(report.extraction))]
    rows += [("some attempt right", _share(report.any_right))]
    for title, means in (("program", report.linking), ("links found", report.linked)):
        for kind in ("table", "column") if means else ():
            shares = f"{_share(means[f'{kind}_precision'])} / {_share(means[f'{kind}_recall'])}"
            rows.append((f"{kind} linking of the {title}, precision / recall", shares))
    found = report.verifier
    if found.rejected_wrong + found.rejected_right + found.passed_right + found.passed_wrong:
        rows.append(("verifier, precision of rejections", _share(found.precision)))
        rows.append(("verifier, recall of wrong programs", _share(found.recall)))
        rows.append(("verifier rejected right programs", str(found.rejected_right)))
        rows.append(("verifier let wrong programs pass", str(found.passed_wrong)))
    for source, change in report.changes.items():
        if change.repaired or change.broken or source in ("repair", "static", "verify"):
            rows.append((f"{source}: repaired / broken", f"{change.repaired} / {change.broken}"))
    for number, ex in enumerate(report.ex_by_round if len(report.ex_by_round) > 1 else ()):
        rows.append((f"EX if stopped after {number} repairs", _share(ex)))
    yield from table(("", "value"), [row for row in rows if row[1]])


def _losses(report: Report) -> Iterator[str]:
    yield "## How it ended"
    yield ""
    rows = [("status", name, str(n)) for name, n in report.statuses.items()]
    rows += [("loop", name, str(n)) for name, n in report.finishes.items()]
    rows += [("wrong by", name, str(n)) for name, n in report.failures.items()]
    yield from table(("", "", "questions"), rows)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value * 100:.1f} %"


def error_page(records: Iterable[Record]) -> Iterator[str]:
    """A section a failure, then what could not be scored, by reason."""
    unscored: dict[tuple[str, str], list[str]] = defaultdict(list)
    yield "# Failures\n"
    for record in records:
        if record["failure"]:
            yield from _failure(record, record["failure"])
        elif record["status"] in UNSCORED:
            unscored[record["status"], record["error"]].append(record["id"])
        elif not record["scores"].get("ex"):
            yield f"\n## {_line(record['id'])} ({_line(record['db'])}): {record['status']}\n\n"
            yield f"{_line(record['question'])}\n\n{_line(record['error'])}\n"
    if unscored:
        yield "\n# Not scored\n\n"
        for (status, error), ids in unscored.items():
            shown = ", ".join(map(_line, ids[:_IDS])) + (", …" if len(ids) > _IDS else "")
            yield f"- {len(ids)} {status}: {_line(error)} (ids {shown})\n"


def _failure(record: Record, failure: Failure) -> Iterator[str]:
    name = record["failure_class"] or failure["kind"]
    yield f"\n## {_line(record['id'])} ({_line(record['db'])}): {name}\n\n"
    yield f"{_line(record['question'])}\n\n"
    if failure["difference"]:
        yield f"{_line(failure['difference'])}\n\n"
    if failure["gold_code"]:
        yield f"Gold\n\n{_fenced(failure['gold_code'])}\n"
    yield f"Predicted\n\n{_fenced(record['code'] or '-- no program')}\n"
    yield "\n".join(beside(failure["gold"], failure["predicted"])) + "\n"


def beside(gold: Clip, predicted: Clip) -> Iterator[str]:
    """Both results in one table, gold on the left."""
    left, right = (_result_lines(clip) for clip in (gold, predicted))
    height = max(len(left), len(right))
    left += [""] * (height - len(left))
    right += [""] * (height - len(right))
    rows = list(zip(left, right, strict=True))
    yield from table((f"gold, {_rows(gold)}", f"predicted, {_rows(predicted)}"), rows)


def _result_lines(clip: Clip) -> list[str]:
    if clip["error"]:
        return [clip["error"]]
    lines = [" , ".join(clip["columns"])]
    lines += [" , ".join(row) for row in clip["rows"]]
    return lines + (["…"] if clip["row_count"] > len(clip["rows"]) else [])


def _rows(clip: Clip) -> str:
    return f"{clip['row_count']} row{'' if clip['row_count'] == 1 else 's'}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table, cells escaped."""
    yield "| " + " | ".join(map(_cell, head)) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(map(_cell, row)) + " |"


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")


def _line(text: str) -> str:
    """Text from outside on one line, without what Markdown would read as HTML."""
    return " ".join(text.split()).replace("<", "&lt;")


def _fenced(code: str) -> str:
    """The code in a fence that it cannot close."""
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}sql\n{code.strip()}\n{fence}\n"

"""What an answer looks like: rich on a terminal, plain text elsewhere."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import dspy
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from lynx_dspy.answers import cell
from lynx_dspy.cli.plain import one_line, visible
from lynx_dspy.progress import listen
from lynx_dspy.values import Attempt, Ended, Outcome, Status, UsageReport

MAX_ROWS = 20
MAX_CELL = 60


class Progress:
    """Says on stderr what the stages do: one live line on a terminal, a line each elsewhere."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            status = self._stack.enter_context(self._console.status("starting…"))
            self._stack.enter_context(
                listen(lambda stage, text: status.update(f"{stage}: {escape(one_line(text))}…"))
            )
        else:
            self._stack.enter_context(
                listen(lambda stage, text: self._plain(f"{stage}: {one_line(text)}"))
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _plain(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)


def show_answer(answer: dspy.Prediction, *, trace: bool = False) -> None:
    """Print the program, its result, the verdict and the cost to stdout."""
    console = Console(highlight=False)
    if trace:
        show_trace(console, answer)
    # Elsewhere than on a terminal a wrapped literal would be another program.
    shown = program_view(answer.code, console, answer.get("language", "sql"))
    console.print(shown, soft_wrap=not console.is_terminal)
    console.print(result_view(answer.outcome))
    console.print(verdict_line(answer), markup=False)
    console.print(usage_table(answer.usage))
    rounds = max((a.round for a in answer.attempts), default=0)
    console.print(f"{rounds} repair rounds, {answer.seconds:.1f} s", markup=False)
    if said := ended_line(answer):
        console.print(said, markup=False)


def program_view(code: str, console: Console, language: str = "sql") -> RenderableType:
    """The program with syntax colours on a terminal."""
    if not code:
        return Text("(no program)")
    code = visible(code)
    if not console.is_terminal:
        return Text(code)
    return Panel(Syntax(code, language, word_wrap=True, background_color="default"), expand=False)


def result_view(outcome: Outcome) -> RenderableType:
    """The result as a table of at most MAX_ROWS rows, or the reason why there is none."""
    if not outcome.ran:
        return Text(f"{outcome.status}: {one_line(outcome.error)}")
    table = Table(*[escape(one_line(c)) for c in outcome.columns])
    for row in outcome.rows[:MAX_ROWS]:
        table.add_row(*[escape(_clip(v)) for v in row])
    shown = min(outcome.row_count, MAX_ROWS)
    more = f", {shown} shown" if shown < outcome.row_count else ""
    cut = ", cut at the row or size limit" if outcome.truncated else ""
    rows = "row" if outcome.row_count == 1 else "rows"
    return Group(table, Text(f"{outcome.row_count} {rows}{more}{cut}"))


def verdict_line(answer: dspy.Prediction) -> str:
    """What speaks for the answer, in a sentence or two: the rubber duck, then the candidates."""
    votes, written = answer.agreement
    agreed = f" {votes} of {written} programs gave this result." if written > 1 else ""
    return f"{_verdict(answer)}{agreed if answer.outcome.ran else ''}"


def _verdict(answer: dspy.Prediction) -> str:
    if not answer.outcome.ran:
        return "Not verified: the program does not run."
    if answer.verified:
        return f"Verified: {one_line(answer.explanation) or 'it does what was asked.'}"
    if answer.mismatch:
        return f"Not verified: {one_line(answer.mismatch)}"
    if answer.outcome.status is Status.EMPTY:
        return "Not verified: the result is empty."
    return "Not verified: no verdict is asked of this model."


_ENDINGS = {
    Ended.ROUNDS: "The loop ended because no round was left.",
    Ended.TOKENS: "The loop ended because its tokens for one question were spent.",
    Ended.STAGNATION: "The loop ended because repairs no longer changed the failure.",
    Ended.CYCLE: "The loop ended because a program came back that had been tried.",
    Ended.UNAVAILABLE: "The loop broke off because the database or the model failed.",
}


def ended_line(answer: dspy.Prediction) -> str:
    """Why the loop ended, where the verdict does not say it; empty for an answer that stands."""
    fault = answer.get("fault")
    reason = _ENDINGS.get(answer.get("ended"), "")
    return f"{reason} {one_line(str(fault))}" if fault else reason


def usage_table(usage: UsageReport) -> Table:
    """Calls and tokens a stage."""
    table = Table("stage", "calls", "prompt", "completion", title="tokens", title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, stage in usage.stages.items():
        table.add_row(
            name, str(stage.calls), f"{stage.prompt_tokens:,}", f"{stage.completion_tokens:,}"
        )
    total = usage.total
    table.add_row(
        "total", str(total.calls), f"{total.prompt_tokens:,}", f"{total.completion_tokens:,}"
    )
    return table


def show_trace(console: Console, answer: dspy.Prediction) -> None:
    """The shares of knowledge, what was dropped, then each attempt with what became of it."""
    for name in ("semantic", "external", "structural", "syntax"):
        share = getattr(answer.knowledge, name)
        console.print(f"── knowledge: {name}", markup=False)
        console.print(visible(share) or "(none)", markup=False, soft_wrap=True)
    for dropped in answer.dropped:
        line = f"── dropped: {dropped.what} ({dropped.why}, refused at {dropped.stage})"
        console.print(line, markup=False, soft_wrap=True)
    for attempt in answer.attempts:
        for line in attempt_lines(attempt):
            console.print(visible(line), markup=False, soft_wrap=True)
    for judged in answer.get("judged") or ():
        console.print(visible(f"checklist: {judged.text}"), markup=False, soft_wrap=True)
    if ended := answer.get("ended"):
        console.print(f"── ended: {ended}", markup=False)


def attempt_lines(attempt: Attempt) -> list[str]:
    """One attempt as lines of text."""
    outcome = attempt.outcome
    lines = [f"── round {attempt.round} ({attempt.source}): {outcome.status}", attempt.code]
    lines += [f"error: {outcome.error}"] if outcome.error else []
    lines += [f"finding: {finding.message}" for finding in attempt.findings]
    lines += [f"signal: {signal}" for signal in attempt.signals]
    lines += [f"put back: {', '.join(attempt.reverted)}"] if attempt.reverted else []
    lines += [f"delta: {attempt.delta}"] if attempt.delta else []
    if attempt.suggestion and attempt.suggestion != attempt.delta:
        lines.append(f"suggestion: {attempt.suggestion}")
    return lines


def _clip(value: Any) -> str:
    plain = cell(value)
    text = "NULL" if plain is None else one_line(str(plain)[: 2 * MAX_CELL])
    return text if len(text) <= MAX_CELL else text[: MAX_CELL - 1] + "…"

"""What commands with runs share on a terminal: the bar and the summary."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from lynx_dspy.cli.plain import echo_json, visible

if TYPE_CHECKING:
    from lynx_dspy.optimize.records import Report
    from lynx_dspy.optimize.runner import Progress

_EVERY_SECONDS = 10.0
"""Time between two lines where stderr is no terminal."""


class Bar:
    """On stderr: questions done, EX so far, tokens, time left."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._bar = RichProgress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._told = time.monotonic()
        self._name = ""
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def named(self, name: str) -> Self:
        """The bar for the run of this name, from now on."""
        self._name = name
        return self

    def watch(self, progress: Progress) -> None:
        """Show how far the run is."""
        if progress.asked:
            self._bar.update(self._task, completed=progress.done, description=self._line(progress))
        else:  # what an earlier run did says nothing of this one's speed
            self._bar.reset(self._task, completed=progress.done, total=progress.total)
        if self._console.is_terminal:
            return
        now = time.monotonic()
        if progress.done == progress.total or now - self._told >= _EVERY_SECONDS:
            self._told = now
            text = f"{progress.done}/{progress.total} {self._line(progress)}"
            self._console.print(text, markup=False, soft_wrap=True)

    def _line(self, progress: Progress) -> str:
        return f"{self._name}  {line(progress)}" if self._name else line(progress)


def line(progress: Progress) -> str:
    """The figures beside the bar."""
    parts = [f"EX {progress.ex * 100:.1f} %"] if progress.ex is not None else []
    parts += [f"{progress.tokens:,} tokens"] if progress.tokens else []
    parts += [f"{progress.unavailable} unavailable"] if progress.unavailable else []
    return ", ".join(parts)


def show_report(report: Report, out: str | None, as_json: bool) -> int:
    """Print the report to stdout; the exit code: 1 where nothing could be scored."""
    from lynx_dspy.optimize.pages import report_page

    if as_json:
        echo_json(report.to_json())
    else:
        click.echo(visible(report_page(report)).rstrip())
        if out:
            if any(report.unscored.values()):
                click.echo(f"\nWhy some were not scored stands at the end of {out}/errors.md")
            click.echo(f"\nKept in {out}: report.json, report.md, errors.md, predictions.jsonl")
    return 0 if report.scored else 1

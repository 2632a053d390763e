"""The runner: questions in, records appended as they are finished, a report at the end."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar, cast

import dspy
from dspy.clients import base_lm

from lynx_dspy.errors import ModelError
from lynx_dspy.optimize import journal
from lynx_dspy.optimize.asking import Gate
from lynx_dspy.optimize.pages import write_pages
from lynx_dspy.optimize.records import PREDICTIONS, UNAVAILABLE, Record, Report, RunConfig
from lynx_dspy.optimize.tally import report_on

MOST_FAULTS = 5
"""Questions in a row that the service fails on before the run stops; it can go on later."""

_HISTORY_KEPT = 20
"""Calls that DSPy goes on remembering; it would keep 10,000 prompts."""

Item = TypeVar("Item")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: questions in all, done, asked by this call; EX and tokens so far."""

    total: int
    done: int = 0
    asked: int = 0
    scored: int = 0
    right: int = 0
    unavailable: int = 0
    tokens: int = 0

    @property
    def ex(self) -> float | None:
        """EX of what is scored so far."""
        return self.right / self.scored if self.scored else None

    def plus(self, record: Record) -> Progress:
        """With one more record."""
        return Progress(
            total=self.total,
            done=self.done + 1,
            asked=self.asked + 1,
            scored=self.scored + bool(record["scores"]),
            right=self.right + (record["scores"].get("ex") == 1.0),
            unavailable=self.unavailable + (record["status"] == UNAVAILABLE),
            tokens=self.tokens + record["usage"]["total_tokens"],
        )


Watch = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Finished:
    """The record of a question, and whether the service failed on it."""

    record: Record
    service_failed: bool = False


Labour = Callable[[Sequence[dspy.Example]], Iterator[Finished]]
"""Does questions elsewhere; each is finished once, in any order."""


def run(
    examples: Sequence[dspy.Example],
    work: Callable[[dspy.Example], Finished],
    out: Path,
    config: RunConfig,
    *,
    workers: int,
    gate: Gate,
    watch: Watch | None = None,
    labour: Labour | None = None,
) -> Report:
    """Do what is not done yet of `examples` and write the report over all that `out` holds.

    `config` is what `runconfig.settle` gave. With `labour` other processes do the work. Raises
    what `work` raises, and `ModelError` when the service fails again and again; what was finished
    is kept.
    """
    watch = watch or (lambda progress: None)
    path = out / PREDICTIONS
    with journal.Journal(path, durable=config["kind"] == "eval") as book:
        progress, done, faults = _standing(path, examples)
        watch(progress)
        todo = [one for one in examples if one.id not in done]
        in_a_row = 0
        done_now = labour(todo) if labour else each(todo, work, workers, gate)
        for finished in done_now:
            record = finished.record
            if faults.get(record["id"]) != record["error"] or record["status"] != UNAVAILABLE:
                book.append(record)
            progress = progress.plus(record)
            watch(progress)
            del base_lm.GLOBAL_HISTORY[:-_HISTORY_KEPT]
            in_a_row = in_a_row + 1 if finished.service_failed else 0
            if in_a_row == MOST_FAULTS:
                raise ModelError(
                    f"{in_a_row} questions in a row could not be asked ({record['error']}). What "
                    "is done is kept; run again to go on."
                )
    return write_report(out, config)


def write_report(out: Path, config: RunConfig) -> Report:
    """Write report.json, report.md and errors.md over the records in `out`."""
    path = out / PREDICTIONS
    report = report_on((cast(Record, line) for line in journal.lines(path)), config)
    write_pages(out, report, (cast(Record, line) for line in journal.lines(path)))
    return report


def each(
    items: Iterable[Item], work: Callable[[Item], Made], workers: int, gate: Gate
) -> Iterator[Made]:
    """What `work` makes of each item, as it is finished, by `workers` threads.

    Threads carry the caller's context (`dspy.context`, progress). The first exception is raised
    here and stops the others; so does leaving the iteration. One worker works in the caller's
    thread, in order.
    """
    if workers == 1:
        try:
            yield from map(work, items)
        finally:
            gate.stopped.set()
        return
    made: queue.Queue[tuple[Made | None, BaseException | None]] = queue.Queue(workers)
    waiting = iter(items)
    lock = threading.Lock()

    def labour() -> None:
        while not gate.stopped.is_set():
            with lock:
                item = next(waiting, _END)
            if isinstance(item, _End):
                break
            try:
                made.put((work(item), None))
            except BaseException as error:  # noqa: BLE001 - handed on to the thread that waits
                made.put((None, error))
        made.put((None, None))

    for number in range(workers):
        context = copy_context()
        threading.Thread(
            target=context.run, args=(labour,), name=f"lynx-eval-{number}", daemon=True
        ).start()
    try:
        yield from _collected(made, workers)
    finally:
        gate.stopped.set()
        _drain(made)


class _End:
    """No item is left."""


_END = _End()


def _collected(
    made: queue.Queue[tuple[Made | None, BaseException | None]], workers: int
) -> Iterator[Made]:
    while workers:
        result, error = made.get()
        if error is not None:
            raise error
        if result is None:
            workers -= 1
        else:
            yield result


def _drain(made: queue.Queue[tuple[Made | None, BaseException | None]]) -> None:
    """Make room, so that a thread that still wants to hand on a result can end."""
    until = time.monotonic() + 0.2
    while time.monotonic() < until:
        try:
            made.get(timeout=0.05)
        except queue.Empty:
            return


def _standing(
    path: Path, examples: Sequence[dspy.Example]
) -> tuple[Progress, set[str], dict[str, str]]:
    """Progress so far, ids that are done, and why the others could not be asked."""
    asked = {one.id for one in examples}
    progress = Progress(total=len(asked))
    done: set[str] = set()
    faults: dict[str, str] = {}
    for line in journal.lines(path):
        record = cast(Record, line)
        if record["status"] == UNAVAILABLE:
            faults[record["id"]] = record["error"]
        else:
            done.add(record["id"])
            if record["id"] in asked:
                progress = progress.plus(record)
    return replace(progress, asked=0), done, faults

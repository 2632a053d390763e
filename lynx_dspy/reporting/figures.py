"""The figures of the paper's evaluation (Figures 5 to 8) from finished runs, as charts to draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest

from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.metrics.intervals import Interval, bootstrap
from lynx_dspy.optimize.records import Record
from lynx_dspy.reporting.chart import Chart, Series, counted
from lynx_dspy.reporting.measures import attempts_of, score, share
from lynx_dspy.reporting.runs import FinishedRun, asked, by_field, is_right, runs_program, scored

MAX_RUNS = 8
"""Colours that stay apart for colour-blind readers."""

STEPS = ("First program", "Static mends", "Repairs", "Verification")


def attempts(name: str, runs: Sequence[FinishedRun]) -> Chart:
    """Figure 5: the share of questions by the number of attempts until a program ran.

    Questions whose last program does not run stand apart, as do the bars' intervals (Wilson).
    """
    judged = [_answered(run) for run in runs]
    most = max(attempts_of(record) for records in judged for record in records)
    series = tuple(
        Series(f"{run.label} (n = {len(records):,})", _distribution(records, most), position)
        for position, (run, records) in enumerate(zip(runs, judged, strict=True))
    )
    ticks = (*map(str, range(1, most + 1)), "does\nnot run")
    return Chart(name, "Attempts until a program runs", "Attempts", "Questions (%)", ticks, series)


def _distribution(records: Sequence[Record], most: int) -> tuple[Interval | None, ...]:
    ran = [
        share(runs_program(r) and attempts_of(r) == count for r in records)
        for count in range(1, most + 1)
    ]
    return (*ran, share(not runs_program(r) for r in records))


def dialects(name: str, runs: Sequence[FinishedRun]) -> Chart:
    """Figure 6: EX by dialect, with Wilson's intervals."""
    split = by_field("dialect")
    found = [{dialect: score(part, "ex") for dialect, part in split(r.records)} for r in runs]
    names = sorted({dialect for run in found for dialect in run})
    series = tuple(
        Series(run.label, tuple(scores.get(dialect) for dialect in names), position)
        for position, (run, scores) in enumerate(zip(runs, found, strict=True))
    )
    return _over_questions(Chart(name, "EX by dialect", "Dialect", "EX (%)", tuple(names), series))


def history(name: str, runs: Sequence[FinishedRun]) -> Chart:
    """Figure 7: how long the failure history is by round, condensed and append-only.

    Both are computed from the recorded attempts by the code of the Critic, in estimated tokens, as
    the mean over the questions that failed in that round (bootstrap intervals). Condensing is done
    by rule, without a model, in the run's own budget: a model's summaries are at most as long.
    """
    from lynx_dspy.reporting.histories import lengths

    series: list[Series] = []
    for position, run in enumerate(runs):
        pairs = [lengths(record["attempts"], run.history_tokens) for record in _answered(run)]
        for label, side in (("append-only", 0), ("condensed", 1)):
            points = _by_round([[length[side] for length in pair] for pair in pairs])
            series.append(Series(f"{run.label}, {label}", points, position, dashed=side == 0))
    rounds = max(len(one.points) for one in series)
    if rounds == 0:
        raise BadInput("No question of these runs has a failed attempt, so none has a history.")
    ticks = tuple(str(round_) for round_ in range(1, rounds + 1))
    padded = tuple(_padded(one, rounds) for one in series)
    title = "Length of the failure history"
    chart = Chart(name, title, "Failed attempts", "Tokens (estimated)", ticks, padded, "lines")
    return _over_questions(chart)


def _by_round(questions: Sequence[Sequence[float]]) -> tuple[Interval | None, ...]:
    columns = zip_longest(*questions)
    return tuple(bootstrap([v for v in column if v is not None]) for column in columns)


def _padded(series: Series, length: int) -> Series:
    missing = (None,) * (length - len(series.points))
    return Series(series.label, series.points + missing, series.run, series.dashed)


def stages(name: str, runs: Sequence[FinishedRun]) -> Chart:
    """Figure 8: EX if the loop had stopped after each of its parts.

    After the first program as the model wrote it; after the static mends (and where the profile
    has several candidates, the choice among them); after the repairs up to the first program that
    runs, which is what stands without verification; after verification and its corrections.
    """
    series: list[Series] = []
    for position, run in enumerate(runs):
        verdicts = [verdicts_by_step(record) for record in _answered(run)]
        points = tuple(share(column) for column in zip(*verdicts, strict=True))
        label = f"{run.label} (n = {len(verdicts):,})"
        series.append(Series(label, points, position))
    return Chart(name, "EX after each part of the loop", "", "EX (%)", STEPS, tuple(series))


def verdicts_by_step(record: Record) -> tuple[bool, bool, bool, bool]:
    """Whether a judged record was right after each of STEPS; never, if its time ran out."""
    tried = record["attempts"]
    if not tried:
        return False, False, False, False
    written = next((a for a in tried if a["source"] == "formulate"), tried[0])
    mended = [a for a in tried if a["round"] == tried[0]["round"]][-1]
    after = tried[tried.index(mended) :]
    ran = next((a for a in after if a["status"] in ("ok", "empty")), after[-1])
    return bool(written["right"]), bool(mended["right"]), bool(ran["right"]), is_right(record)


def ablations(name: str, runs: Sequence[FinishedRun]) -> Chart:
    """Table VI as a picture: EX and executability without each part, with Wilson's intervals."""
    ticks = tuple(run.variant.replace(" ", "\n", 1).replace("-", "-\n") for run in runs)
    judged = [scored(run.records) for run in runs]
    series = (
        Series("EX", tuple(score(records, "ex") for records in judged), 0),
        Series("programs that run", tuple(share(map(runs_program, r)) for r in judged), 1),
    )
    return _over_questions(Chart(name, "Without a part", "", "Questions (%)", ticks, series))


def _answered(run: FinishedRun) -> tuple[Record, ...]:
    """The judged records of a run with attempts. Raises `BadInput` if it has none."""
    found = asked(scored(run.records))
    if not any(record["attempts"] for record in found):
        raise BadInput(
            f"{run.label} holds no attempts, so this figure cannot be drawn of it: runs of lynx "
            "eval have them, runs of lynx score do not."
        )
    return found


def _over_questions(chart: Chart) -> Chart:
    """The chart with the number of questions under each tick."""
    columns = zip(*(one.points for one in chart.series), strict=True)
    ticks = tuple(counted(t, column) for t, column in zip(chart.ticks, columns, strict=True))
    return Chart(
        chart.name, chart.title, chart.x_title, chart.y_title, ticks, chart.series, chart.kind
    )


FIGURES: dict[str, Callable[[str, Sequence[FinishedRun]], Chart]] = {
    "attempts": attempts,
    "dialects": dialects,
    "history": history,
    "stages": stages,
    "ablations": ablations,
}
"""Values of `--figure`."""


def make_chart(name: str, runs: Sequence[FinishedRun]) -> Chart:
    """The named figure. Raises `UnknownName`, and `BadInput` for runs that it cannot show."""
    if name not in FIGURES:
        raise UnknownName("figure", name, FIGURES)
    if len(runs) > MAX_RUNS and name != "ablations":  # there a run is a tick, no colour
        raise BadInput(f"Got {len(runs)} runs; a figure shows at most {MAX_RUNS}.")
    return FIGURES[name](name, runs)

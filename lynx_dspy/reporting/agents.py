"""Table VII: what the Generator, the Critic, the Reviser and the verifier cost a question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from lynx_dspy.config import STAGES
from lynx_dspy.optimize.records import StageUse
from lynx_dspy.reporting.runs import FinishedRun, asked
from lynx_dspy.reporting.table import RUN, Cell, Column, Table


def agents(name: str, runs: Sequence[FinishedRun]) -> Table:
    """Table VII: what each agent costs a question, with its stages below it.

    Means over all answered questions, also those that a stage was not asked for. The last row of a
    run holds its wall time; what it has over the agents is spent outside the model.
    """
    columns = (
        RUN,
        Column("Agent", "agent"),
        Column("Stage", "stage"),
        Column("Calls", "calls", "mean"),
        Column("Prompt tokens", "prompt_tokens", "count"),
        Column("Completion tokens", "completion_tokens", "count"),
        Column("Share of tokens %", "share_of_tokens", "percent"),
        Column("Seconds", "seconds", "seconds"),
    )
    rows = tuple(row for run in runs for row in _agent_rows(run))
    notes = (
        "Means a question; cache hits count in full. The last row of a run has its wall time, also "
        "that outside the model.",
    )
    return Table(
        name, "Tokens and seconds by agent and stage (paper, Table VII)", columns, rows, notes
    )


def _agent_rows(run: FinishedRun) -> Iterator[tuple[Cell, ...]]:
    records = asked(run.records)
    uses = [use for record in records for use in record["stages"]]
    total = sum(map(_tokens, uses))
    names = sorted({use["stage"] for use in uses}, key=_stage_order)
    for agent in dict.fromkeys(map(agent_of, names)):
        stages = [stage for stage in names if agent_of(stage) == agent]
        of_agent = [use for use in uses if use["stage"] in stages]
        yield (run.label, agent, "all", *_costs(of_agent, len(records), total))
        for stage in stages:
            of_stage = [use for use in of_agent if use["stage"] == stage]
            yield (run.label, agent, stage, *_costs(of_stage, len(records), total))
    if records:
        wall = fmean(record["seconds"] for record in records)
        yield (run.label, "all", "all", *_costs(uses, len(records), total)[:-1], wall)


def agent_of(stage: str) -> str:
    """The agent of a stage's dotted name: generator, critic, reviser or verifier.

    >>> agent_of("critic.reflect")
    'critic'
    """
    return stage.partition(".")[0]


def _stage_order(stage: str) -> tuple[int, str]:
    return (STAGES.index(stage) if stage in STAGES else len(STAGES), stage)


def _tokens(use: StageUse) -> int:
    return use["prompt_tokens"] + use["completion_tokens"]


def _costs(uses: Sequence[StageUse], questions: int, total: int) -> tuple[Cell, ...]:
    return (
        sum(use["calls"] for use in uses) / questions,
        sum(use["prompt_tokens"] for use in uses) / questions,
        sum(use["completion_tokens"] for use in uses) / questions,
        sum(map(_tokens, uses)) / total if total else None,
        sum(use["seconds"] for use in uses) / questions,
    )

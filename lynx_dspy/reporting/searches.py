"""The figure of a compile: its candidates, EX against tokens, with the Pareto front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lynx_dspy.metrics.intervals import Interval, wilson
from lynx_dspy.reporting.chart import Chart, Series

Standing = Mapping[str, Any]
"""A line of `search.json` (`optimize.outcome`)."""

_MOST_NAMES = 24
"""Of more candidates only those on the front and the first, the baseline, are named."""


def chart_of_search(standings: Sequence[Standing], variant: str) -> Chart | None:
    """The candidates that were asked every question; None where there are not two of them."""
    most = max((one["asked"] for one in standings if one["scores"]), default=0)
    whole = [one for one in standings if one["scores"] and one["asked"] == most]
    if len(whole) < 2:
        return None
    groups = {"before": whole[:1], "candidates": whole[1:]}
    series = tuple(
        Series(
            label,
            tuple(_score(one) for one in group),
            position,
            at=tuple(one["scores"]["tokens"] for one in group),
            names=tuple(_name(one, len(whole), label == "before") for one in group),
        )
        for position, (label, group) in enumerate(groups.items())
    )
    front = sorted(
        (one["scores"]["tokens"], one["scores"]["ex"]) for one in whole if one.get("front")
    )
    title = f"Candidates of {variant} (n = {most:,})"
    return Chart(
        "search", title, "Tokens a question", "EX (%)", (), series, kind="scatter",
        front=tuple(front),
    )  # fmt: skip


def _score(one: Standing) -> Interval:
    n = int(one.get("scored", one["asked"]))
    return wilson(round(one["scores"]["ex"] * n), n)


def _name(one: Standing, among: int, is_first: bool) -> str:
    return str(one["name"]) if among <= _MOST_NAMES or one.get("front") or is_first else ""

"""Variants side by side: what is compared with what, who is on the front, what is drawn."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.metrics.intervals import Interval, mcnemar
from lynx_dspy.reporting.plots import draw, image
from lynx_dspy.reporting.variants import Tracked, chart_of, chosen, pareto, table_of


def tracked(variant: str, right: int, tokens: float | None = 100.0, **changes: object) -> Tracked:
    """A program that has the first `right` of ten questions right."""
    found = Tracked(
        run_id=variant,
        dataset="shop",
        split="val",
        hash="h1",
        backbone="small",
        variant=variant,
        seed=0,
        artifact="",
        ex={f"q{n}": float(n < right) for n in range(10)},
        soft_f1=[0.5] * 10,
        tokens=tokens,
    )
    return replace(found, **changes)


def cells(found: list[Tracked], column: str, baseline: str = "") -> list[object]:
    table = table_of(chosen(found), baseline)
    place = [c.key for c in table.columns].index(column)
    return [row[place] for row in table.rows]


def test_each_backbone_is_set_against_its_own_baseline() -> None:
    found = [
        tracked("un-compiled", 2), tracked("demos", 9),
        tracked("un-compiled", 8, backbone="large"), tracked("demos", 9, backbone="large"),
        tracked("demos", 1, backbone="third"),
    ]  # fmt: skip
    assert cells(found, "backbone") == ["large", "large", "small", "small", "third"]
    changes = cells(found, "difference")
    assert [c.value if isinstance(c, Interval) else c for c in changes] == pytest.approx(
        [0.1, None, 0.7, None, None]
    )
    expected = mcnemar([n < 2 for n in range(10)], [n < 9 for n in range(10)])
    assert cells(found, "p") == [1.0, None, expected, None, None]


def test_any_variant_can_be_the_baseline_and_an_unknown_one_is_named() -> None:
    found = [tracked("demos", 9), tracked("nearest", 5)]
    assert cells(found, "p", "demos") == [None, mcnemar([True] * 9, [True] * 5 + [False] * 4)]
    assert cells(found, "p") == [None, None]
    with pytest.raises(UnknownName, match="Did you mean 'demos'"):
        table_of(found, "demo")


def test_other_questions_are_another_comparison() -> None:
    found = [tracked("un-compiled", 2, hash="h2"), tracked("demos", 9)]
    assert cells(found, "p") == [None, None]
    assert cells(found, "front") == ["yes", "yes"]
    with pytest.raises(BadInput, match="choose --dataset and --split"):
        chart_of(found)


def test_the_newest_run_of_a_program_counts_unless_it_tells_less() -> None:
    old, new = tracked("demos", 2, run_id="old"), tracked("demos", 3, run_id="new")
    assert [one.run_id for one in chosen([new, old])] == ["new"]
    assert [one.run_id for one in chosen([replace(new, soft_f1=[]), old])] == ["old"]


def test_names_tell_seeds_and_artifacts_apart_only_where_needed() -> None:
    found = [
        tracked("demos", 5, artifact="demos@aa"), tracked("demos", 4, artifact="demos@bb", seed=1),
        tracked("nearest", 3, artifact="nearest@cc"),
    ]  # fmt: skip
    assert cells(found, "variant") == ["demos seed 0 @aa", "demos seed 1 @bb", "nearest"]


def test_filters_name_what_there_is() -> None:
    found = [tracked("demos", 5), tracked("demos", 5, backbone="large")]
    assert [one.backbone for one in chosen(found, backbone="large")] == ["large"]
    with pytest.raises(UnknownName, match="Unknown tracked backbone 'huge'"):
        chosen(found, backbone="huge")
    with pytest.raises(BadInput, match="no answers to compare"):
        chosen([])


@given(st.lists(st.tuples(st.integers(0, 10), st.floats(0, 1e6)), min_size=1, max_size=12))
def test_who_is_not_on_the_front_is_beaten(points: list[tuple[int, float]]) -> None:
    found = [tracked(f"v{n}", right, tokens) for n, (right, tokens) in enumerate(points)]
    front = [(one.score.value, one.tokens or 0.0) for one in pareto(found)]
    for one in found:
        value, tokens = one.score.value, one.tokens or 0.0
        assert any(v >= value and t <= tokens for v, t in front)
    assert all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(front))


def test_the_figure_has_a_point_a_variant_and_the_front() -> None:
    found = [tracked("_hidden", 9, 300.0), tracked("demos", 5, 100.0, backbone="large")]
    chart = chart_of([*found, tracked("unknown cost", 9, None)])
    assert chart.front == ((100.0, 0.5), (300.0, 0.9))
    (axes,) = draw(chart).axes
    assert sorted(text.get_text() for text in axes.texts) == ["_hidden", "demos"]
    assert axes.get_xlabel() == "Tokens a question"
    assert image(chart, "svg") == image(chart, "svg")


VARIANTS = ("un-compiled", "demos", "nearest", "bootstrap-rs", "mipro", "gepa", "optuna+nearest")


@pytest.mark.parametrize("spread", [1, 40, 400])
def test_names_in_the_figure_cover_neither_each_other_nor_points(spread: int) -> None:
    chance = random.Random(spread)
    found = [
        tracked(
            variant, chance.randint(2, 7), 2_000.0 + spread * chance.random(), backbone=backbone
        )
        for backbone in ("local/qwen2.5-coder-0.5b-instruct", "local/smollm2-135m-instruct")
        for variant in VARIANTS
    ]
    chart = chart_of(chosen(found))
    figure = draw(chart)
    (axes,) = figure.axes
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
    assert len(boxes) == 2 * len(VARIANTS)
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    points = [
        axes.transData.transform((x, 100 * point.value))
        for series in chart.series
        for x, point in zip(series.at, series.points, strict=True)
        if point
    ]
    assert not any(box.contains(*point) for box in boxes for point in points)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "Pareto front", "local/qwen2.5-coder-0.5b-instruct", "local/smollm2-135m-instruct"
    ]  # fmt: skip

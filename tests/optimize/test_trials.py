"""A study proposes the same after every interruption, and knows what was tried before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import optuna
import pytest

from lynx_dspy.errors import BadInput
from lynx_dspy.optimize.trials import SAMPLERS, Trials

SPACE = {"top_k": (2, 4, 6), "style": ("ddl", "compact"), "align": (True, False), "held": (3,)}
N = 7


def opened(folder: Path, key: str = "k", sampler: str = "tpe", **space: Any) -> Trials:
    return Trials(
        folder / "study.db", key, {**SPACE, **space}, sampler=sampler, startup=3, seed=7
    )  # fmt: skip


def values(choice: Mapping[str, Any]) -> tuple[float, float]:
    return choice["top_k"] / 10 + 0.1 * choice["align"], 100.0 * choice["top_k"]


def told(trials: Trials, numbers: Iterator[int] | range) -> list[dict[str, Any]]:
    """What is tried, every fourth trial being ended early."""
    found = []
    for number in numbers:
        choice = trials.choice(number)
        trials.tell(number, None if number % 4 == 3 else values(choice))
        found.append(dict(choice))
    return found


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_study_goes_on_as_if_it_had_not_been_stopped(sampler: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    calm = told(opened(tmp_path / "a", sampler=sampler), range(N))
    broken = opened(tmp_path / "b", sampler=sampler)
    told(broken, range(4))
    broken.choice(4)  # as after a kill: asked for, never told of
    again = opened(tmp_path / "b", sampler=sampler)
    told(again, range(6))
    again.choice(6)
    again.break_off()
    assert told(again, range(N)) == calm
    assert told(opened(tmp_path / "b", sampler=sampler), range(N)) == calm
    assert all(set(one) == set(SPACE) and one["held"] == 3 for one in calm)
    assert len({str(one) for one in calm}) > 1


def test_what_is_known_is_no_trial_and_is_known_once(tmp_path: Path) -> None:
    start = {"top_k": 4, "style": "ddl", "align": True, "held": 3}
    for _ in range(2):
        trials = opened(tmp_path)
        trials.know(start, (0.4, 100.0))
        trials.know({**start, "top_k": 5}, (0.9, 1.0))  # no point of the space
    told(trials, range(2))
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    (name,) = optuna.get_all_study_names(storage)
    study = optuna.load_study(study_name=name, storage=storage)
    kinds = [(trial.values, "known" in trial.user_attrs) for trial in study.trials]
    assert kinds[0] == ([0.4, 100.0], True)
    assert [known for _, known in kinds] == [True, False, False]
    assert study.trials[0].user_attrs["choice"] == start


def test_another_space_is_another_study(tmp_path: Path) -> None:
    told(opened(tmp_path), range(2))
    narrowed = opened(tmp_path, top_k=(2,))
    assert {one["top_k"] for one in told(narrowed, range(4))} == {2}
    assert len(optuna.get_all_study_names(f"sqlite:///{tmp_path / 'study.db'}")) == 2


def test_a_file_that_is_no_database_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "study.db").write_text("no database " * 100)
    with pytest.raises(BadInput, match=r"Cannot use .*study\.db"):
        opened(tmp_path)

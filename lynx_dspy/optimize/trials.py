"""Optuna: which point of a space is tried next. The only file that imports optuna.

A study is kept in an SQLite file. Each trial is drawn by a sampler of its own, seeded by its
number, from the trials before it: a study that was stopped proposes what it would have proposed.
Trials that were under way are marked as failed and drawn again.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lynx_dspy.errors import BadInput
from lynx_dspy.optimize.plainjson import digest_of

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial, Trial

Choice = Mapping[str, Any]
"""A point of a space: a value for each of its names."""

Space = Mapping[str, Sequence[Any]]

_KNOWN = "known"
_SEED_BITS = 32


def _tpe(startup: int, seed: int) -> BaseSampler:
    from optuna.samplers import TPESampler

    return TPESampler(n_startup_trials=startup, seed=seed)


def _nsga2(startup: int, seed: int) -> BaseSampler:
    from optuna.samplers import NSGAIISampler

    return NSGAIISampler(population_size=max(2, startup), seed=seed)


SAMPLERS: dict[str, Callable[[int, int], BaseSampler]] = {"tpe": _tpe, "nsga2": _nsga2}
"""By the name in a recipe; each takes the number of random trials and a seed."""


class Trials:
    """A study of two objectives, the first up and the second down, in the file `place`.

    Another space or another `key` (what the study begins with) is another study of that file.
    Raises `BadInput` where the file cannot be read or written.
    """

    def __init__(
        self, place: Path, key: str, space: Space, *, sampler: str, startup: int, seed: int
    ) -> None:
        self._space, self._sampler = dict(space), SAMPLERS[sampler]
        self._startup, self._seed, self._place = startup, seed, place
        about = [key, {k: list(v) for k, v in space.items()}, sampler, startup, seed]
        with self._readable():
            self._study = _opened(place, digest_of(about))
            for trial in self._study.get_trials(deepcopy=False):
                if not trial.state.is_finished():
                    self._forget(trial.number)
        self._open: dict[int, Trial] = {}

    def know(self, choice: Choice, values: tuple[float, float] | None) -> None:
        """Tell of a point that was tried before the study; it is no trial, and is told once."""
        from optuna.trial import create_trial

        inside = all(choice.get(name) in values_ for name, values_ in self._space.items())
        if values is None or not inside or self._of(known=True):
            return
        trial = create_trial(
            params={name: self._stored(name, choice[name]) for name in self._space},
            distributions=self._distributions(),
            values=list(values),
            user_attrs={_KNOWN: True, "choice": dict(choice)},
        )
        with self._readable():
            self._study.add_trial(trial)

    def choice(self, number: int) -> Choice:
        """The point that trial `number` tries, drawn if it is new; numbers count up from 0."""
        done = self._of(known=False)
        if number < len(done):
            return self._shown(done[number].params)
        seed = random.Random(f"{self._seed}/{number}").getrandbits(_SEED_BITS)
        with self._readable():
            self._study.sampler = self._sampler(self._startup, seed)
            trial = self._study.ask(self._distributions())
            choice = self._shown(trial.params)
            trial.set_user_attr("choice", dict(choice))
        self._open[number] = trial
        return choice

    def tell(self, number: int, values: tuple[float, float] | None) -> None:
        """What a trial came to; None where it was ended early. Told before: nothing happens."""
        from optuna.trial import TrialState

        trial = self._open.pop(number, None)
        if trial is not None:
            state = TrialState.PRUNED if values is None else TrialState.COMPLETE
            with self._readable():
                self._study.tell(trial, values, state)

    def break_off(self) -> None:
        """Forget the trials that were not told of; they are drawn again."""
        with self._readable():
            for trial in self._open.values():
                self._forget(trial.number)
        self._open.clear()

    def _of(self, known: bool) -> list[FrozenTrial]:
        from optuna.trial import TrialState

        with self._readable():
            ended = self._study.get_trials(
                deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED)
            )
        return [one for one in ended if (_KNOWN in one.user_attrs) == known]

    def _forget(self, number: int) -> None:
        from optuna.trial import TrialState

        self._study.tell(number, state=TrialState.FAIL)

    def _distributions(self) -> dict[str, BaseDistribution]:
        """Numbers by their place, so that the sampler knows what lies near; else by name."""
        from optuna.distributions import CategoricalDistribution, IntDistribution

        return {
            name: IntDistribution(0, len(values) - 1)
            if _ordered(values)
            else CategoricalDistribution(list(values))
            for name, values in self._space.items()
        }

    def _stored(self, name: str, value: Any) -> Any:
        values = self._space[name]
        return list(values).index(value) if _ordered(values) else value

    def _shown(self, params: Mapping[str, Any]) -> Choice:
        return {
            name: values[params[name]] if _ordered(values) else params[name]
            for name, values in self._space.items()
        }

    @contextmanager
    def _readable(self) -> Iterator[None]:
        from optuna.exceptions import StorageInternalError
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except (StorageInternalError, SQLAlchemyError) as error:
            reason = str(error.__cause__ or error).splitlines()[0]
            raise BadInput(
                f"Cannot use {self._place}: {reason}. Delete it to begin the study anew; what was "
                "asked is kept elsewhere."
            ) from None


def _opened(place: Path, name: str) -> Study:
    import optuna
    from sqlalchemy import URL

    for noisy in ("optuna", "alembic"):  # its notes on each trial are not for a user's terminal
        logging.getLogger(noisy).setLevel(logging.ERROR)
    url = URL.create("sqlite", database=str(place)).render_as_string(hide_password=False)
    return optuna.create_study(
        storage=url, study_name=name, directions=["maximize", "minimize"], load_if_exists=True
    )


def _ordered(values: Sequence[Any]) -> bool:
    return not any(isinstance(value, bool | str) for value in values)

"""Which questions a compile learns from, chooses by, and is measured on; what leaks is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import dspy

from lynx_dspy import datasets
from lynx_dspy.datasets.splits import leaks, split
from lynx_dspy.errors import BadInput
from lynx_dspy.optimize.questions import Questions, from_dataset, from_examples

_VAL = "val"
_SHARES = (0.7, 0.3)
"""Of training questions where there is no validation split: to learn from, to choose by."""


@dataclass(frozen=True, slots=True)
class Splits:
    """The questions of each part. `left_out` are ids that would have given away later parts."""

    train: Questions
    val: Questions
    test: Questions | None = None
    left_out: tuple[str, ...] = ()


def splits_of(
    dataset: str | Sequence[dspy.Example] | Questions,
    data: str | Path = "",
    *,
    train_split: str = "",
    val_split: str = "",
    test_split: str = "",
    limit: int | None = None,
    seed: int = 0,
) -> Splits:
    """The splits of a dataset, at most `limit` questions of each.

    Without a validation split the training questions are shared out, by database where there are
    several. Questions of an earlier part that nearly repeat one of a later part, or have its gold,
    are left out. Raises `BadInput` where too few are left, and as `from_dataset`.
    """
    test = None
    if isinstance(dataset, str):
        entry = datasets.dataset(dataset)
        named = train_split or entry.train
        if not named:
            raise BadInput(f"{dataset} has no split to compile on. Name one with --train-split.")
        train = from_dataset(dataset, data, named)
        val = _named_val(dataset, data, val_split)
        if val is None:
            train, val = _dealt(train, seed)
        test = from_dataset(dataset, data, test_split) if test_split else None
    else:
        given = dataset if isinstance(dataset, Questions) else from_examples(dataset)
        train, val = _dealt(given, seed)
    held_out = _first(test, limit) if test else None
    return _without_leaks(_first(train, limit), _first(val, limit), held_out)


def _named_val(dataset: str, data: str | Path, val_split: str) -> Questions | None:
    """The validation split that was named, else the usual one; None if there is none."""
    if val_split:
        return from_dataset(dataset, data, val_split)
    if _VAL not in datasets.dataset(dataset).splits or (str(data) and Path(data).is_file()):
        return None
    try:
        return from_dataset(dataset, data, _VAL)
    except BadInput:
        return None


def _dealt(questions: Questions, seed: int) -> tuple[Questions, Questions]:
    if len(questions.examples) < 2:
        raise BadInput(
            "One question cannot be shared out to learn from and to choose by. Give more, or name "
            "a validation split."
        )
    parts = split(questions.examples, _SHARES, seed)
    train, val = (replace(questions, examples=tuple(part)) for part in parts)
    return train, replace(val, split=f"{questions.split}-{_VAL}")


def _first(questions: Questions, limit: int | None) -> Questions:
    return replace(questions, examples=questions.examples[:limit])


def _without_leaks(train: Questions, val: Questions, test: Questions | None) -> Splits:
    held_out = test.examples if test else ()
    bad_val = {leak.train_id for leak in leaks(val.examples, held_out)}
    val = _without(val, bad_val)
    bad_train = {leak.train_id for leak in leaks(train.examples, (*val.examples, *held_out))}
    train = _without(train, bad_train)
    for name, part in (("training", train), ("validation", val)):
        if not part.examples:
            raise BadInput(f"No {name} question is left: all of them are in a later split too.")
    return Splits(train, val, test, (*sorted(bad_val), *sorted(bad_train)))


def _without(questions: Questions, ids: set[str]) -> Questions:
    kept = tuple(one for one in questions.examples if one.id not in ids)
    return replace(questions, examples=kept)

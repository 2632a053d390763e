"""Which questions a run asks: a dataset's split, or examples given in Python."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import dspy

from lynx_dspy import datasets
from lynx_dspy.errors import BadInput

_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Questions:
    """The chosen examples in the dataset's order; `hash` is that of the whole split."""

    dataset: str
    split: str
    hash: str
    examples: tuple[dspy.Example, ...]
    data: Path | None = None


def from_dataset(
    name: str,
    data: str | Path,
    split: str = "",
    *,
    limit: int | None = None,
    ids: Collection[str] | None = None,
    run_dir: Path | None = None,
) -> Questions:
    """Questions of a split: those of `ids`, at most `limit`.

    Raises `UnknownName` and `BadInput` for what the dataset does not have.
    """
    examples = datasets.load(name, data, split, run_dir)
    return Questions(
        dataset=name,
        split=split or datasets.dataset(name).default_split,
        hash=datasets.fingerprint(name, data, split),
        examples=_chosen(examples, limit, ids),
        data=Path(data),
    )


def from_examples(
    examples: Sequence[dspy.Example],
    *,
    limit: int | None = None,
    ids: Collection[str] | None = None,
) -> Questions:
    """Questions that were made in Python, chosen as in `from_dataset`.

    Raises `BadInput` if there is none, or for unknown ids.
    """
    digest = hashlib.sha256()
    for one in examples:
        fields = (one.id, one.question, one.db, *one.gold_sql, *one.gold_csv)
        digest.update("\0".join(fields).encode("utf-8", errors="replace"))
    return Questions("", "", digest.hexdigest()[:_DIGITS], _chosen(examples, limit, ids))


def read_ids(path: str | Path) -> list[str]:
    """Ids from a text file, one a line. Raises `BadInput` if it cannot be read or holds none."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"Cannot read ids from {path}: {error}.") from None
    ids = [line.strip() for line in text.splitlines() if line.strip()]
    if not ids:
        raise BadInput(f"{path} holds no ids. Write one a line.")
    return ids


def _unique(examples: Sequence[dspy.Example]) -> list[dspy.Example]:
    """The examples with an id each: `137` for the first, `137#2` for the second that has it.

    BIRD Mini-Dev of 2024 uses the id 137 twice.
    """
    seen: Counter[str] = Counter()
    unique = []
    for one in examples:
        seen[one.id] += 1
        unique.append(one if seen[one.id] == 1 else one.copy(id=f"{one.id}#{seen[one.id]}"))
    return unique


def _chosen(
    examples: Sequence[dspy.Example], limit: int | None, ids: Collection[str] | None
) -> tuple[dspy.Example, ...]:
    examples = _unique(examples)
    if ids is not None:
        known = {one.id for one in examples}
        unknown = [id for id in ids if id not in known]
        if unknown:
            raise BadInput(
                f"{len(unknown)} of {len(ids)} ids are not in the split, the first is "
                f"{unknown[0]!r}. It has ids such as {examples[0].id!r}."
            )
        examples = [one for one in examples if one.id in set(ids)]
    chosen = tuple(examples[:limit])
    if not chosen:
        raise BadInput("No question is left to ask. Choose another split, limit or ids.")
    return chosen

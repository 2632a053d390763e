"""Which questions are asked."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from lynx_dspy.datasets.examples import example
from lynx_dspy.errors import BadInput
from lynx_dspy.optimize.questions import from_dataset, from_examples, read_ids

BIRD = Path(__file__).parents[2] / "../shared/data/bird_mini_dev"


def test_the_sample_can_be_chosen_from(tmp_path: Path) -> None:
    every = from_dataset("sample", "", "val", run_dir=tmp_path)
    assert len(every.examples) == 20
    first = every.examples[0].id
    some = from_dataset("sample", "", "val", ids=[first], run_dir=tmp_path)
    assert [one.id for one in some.examples] == [first]
    assert some.hash == every.hash
    assert len(from_dataset("sample", "", "val", limit=3, run_dir=tmp_path).examples) == 3
    with pytest.raises(BadInput, match=r"1 of 2 ids are not in the split, the first is 'nope'"):
        from_dataset("sample", "", "val", ids=[first, "nope"], run_dir=tmp_path)


def test_an_id_that_is_used_twice_is_told_apart() -> None:
    twice = [
        example(id="137", question=q, db="", database="", dialect="sqlite", rule="bird")
        for q in ("a", "b")
    ]
    assert [one.id for one in from_examples(twice).examples] == ["137", "137#2"]


@pytest.mark.skipif(not BIRD.is_dir(), reason="BIRD Mini-Dev is not here")
def test_bird_has_500_questions_with_an_id_each() -> None:
    found = from_dataset("bird", BIRD)
    assert len({one.id for one in found.examples}) == 500


def test_other_questions_have_another_hash(counting: ModuleType, tmp_path: Path) -> None:
    hashes = [from_examples(counting.questions(tmp_path, n)).hash for n in (2, 2, 3)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_files_of_ids(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("a\n\n  b \n")
    assert read_ids(tmp_path / "ids.txt") == ["a", "b"]
    (tmp_path / "none.txt").write_text("\n")
    for name, said in (("none.txt", "holds no ids"), ("missing.txt", "Cannot read ids")):
        with pytest.raises(BadInput, match=said):
            read_ids(tmp_path / name)
    with pytest.raises(BadInput, match="No question is left"):
        from_examples([])

from pathlib import Path

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.datasets.hashing import file_hash, files_hash
from lynx_dspy.datasets.splits import leaks, split

QUESTIONS = st.lists(st.sampled_from(["how", "many", "red", "cars", "are", "there"]), max_size=6)


def question(id: str, text: str, db: str = "d", gold: str = "") -> dspy.Example:
    return dspy.Example(id=id, question=text, db=db, gold_sql=(gold,) if gold else ())


@given(st.lists(st.sampled_from("abcde"), min_size=1), st.integers(0, 3))
def test_a_split_loses_nothing_and_keeps_databases_whole(dbs: list[str], seed: int) -> None:
    examples = [question(str(i), "q", db) for i, db in enumerate(dbs)]
    parts = split(examples, (0.8, 0.2), seed)
    assert sorted(one.id for part in parts for one in part) == sorted(one.id for one in examples)
    if len(set(dbs)) > 1:
        assert not {one.db for one in parts[0]} & {one.db for one in parts[1]}
    assert parts == split(examples, (0.8, 0.2), seed)


def test_one_database_is_split_by_question() -> None:
    parts = split([question(str(i), "q") for i in range(10)], (0.7, 0.3))
    assert [len(part) for part in parts] == [7, 3]


@given(st.lists(QUESTIONS, max_size=6), st.lists(QUESTIONS, max_size=6), st.integers(1, 20))
def test_the_index_finds_what_comparing_all_pairs_finds(
    train: list[list[str]], test: list[list[str]], twentieths: int
) -> None:
    threshold = twentieths / 20
    left = [question(f"a{i}", " ".join(words)) for i, words in enumerate(train)]
    right = [question(f"b{i}", " ".join(words)) for i, words in enumerate(test)]
    found = {(leak.train_id, leak.test_id) for leak in leaks(left, right, threshold)}
    for one in left:
        for other in right:
            a, b = sorted(one.question.split()), sorted(other.question.split())
            both = sum(min(a.count(w), b.count(w)) for w in set(a))
            either = len(a) + len(b) - both
            alike = bool(either) and both / either >= threshold
            assert ((one.id, other.id) in found) == alike


def test_equal_golds_on_one_database_are_a_leak() -> None:
    train = [
        question("1", "cars?", "x", "SELECT count(*)  FROM t;"),
        question("2", "a", "y", "SELECT 1"),
    ]
    test = [
        question("3", "how much?", "x", "select COUNT(*) from t"),
        question("4", "b", "x", "SELECT 1"),
    ]
    (leak,) = leaks(train, test)
    assert (leak.kind, leak.train_id, leak.test_id) == ("gold", "1", "3")


def test_a_hash_changes_with_content_and_not_with_order(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("one")
    b.write_text("two")
    before = files_hash([a, b])
    assert before == files_hash([b, a])
    assert len(file_hash(a)) == 16
    b.write_text("three")
    assert files_hash([a, b]) != before
    with pytest.raises(FileNotFoundError):
        file_hash(tmp_path / "none")

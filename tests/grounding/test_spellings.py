from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from lynx_dspy.grounding.spellings import distance, key, pieces, probes, slips

LETTERS = st.characters(min_codepoint=97, max_codepoint=122)
WORDS = st.text(LETTERS, min_size=5, max_size=20)


def edited(text: str, kind: str, at: int, letter: str) -> str:
    """`text` with one edit."""
    i = at % len(text)
    if kind == "drop":
        return text[:i] + text[i + 1 :]
    if kind == "add":
        return text[:i] + letter + text[i:]
    if kind == "swap":
        return text[:i] + text[i + 1 : i + 2] + text[i] + text[i + 2 :]
    return text[:i] + letter + text[i + 1 :]


EDITS = st.tuples(st.sampled_from(["drop", "add", "swap", "change"]), st.integers(0, 40), LETTERS)


@given(WORDS, EDITS)
def test_one_edit_leaves_a_piece_that_is_looked_for(
    stored: str, edit: tuple[str, int, str]
) -> None:
    asked = edited(stored, *edit)
    assume(slips(asked))
    assert set(pieces(stored)) & probes(asked)


@given(st.text(LETTERS, min_size=9, max_size=20), EDITS, EDITS)
def test_two_edits_of_a_long_text_leave_one_too(
    stored: str, one: tuple[str, int, str], two: tuple[str, int, str]
) -> None:
    assume("swap" not in (one[0], two[0]))
    asked = edited(edited(stored, *one), *two)
    assume(slips(asked) == 2)
    assert set(pieces(stored)) & probes(asked)


@given(st.text(max_size=12), st.text(max_size=12), st.text(max_size=12))
def test_distance_is_one(one: str, other: str, third: str) -> None:
    assert distance(one, other, 30) == distance(other, one, 30)
    assert (distance(one, other, 30) == 0) == (one == other)
    assert distance(one, other, 30) <= max(len(one), len(other))
    assert distance(one, other, 2) == min(distance(one, other, 30), 3)


@given(st.text(st.characters(max_codepoint=127), max_size=30))
def test_a_key_is_the_same_for_other_case_and_blanks(text: str) -> None:
    assert key(text) == key(text.upper()) == key(f"  {text} ")


@given(st.integers(0, 10**9))
def test_a_number_has_one_key_however_it_is_written(number: int) -> None:
    assert key(f"{number:,}") == key(str(number)) == key(f"{number:,}.00") == key(f"${number}")


def test_what_differs_in_more_than_spelling_has_another_key() -> None:
    for one, other in (("1.5", "15"), ("1-5", "15"), ("5%", "5"), ("-3", "3"), ("Jane", "Jan")):
        assert key(one) != key(other), (one, other)
    assert slips("c12") == slips("555123") == 0

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.grounding.chunking import CHUNK_TOKENS, passages
from lynx_dspy.tokens import estimate


@given(st.text(st.sampled_from("ab .\n#`é_1"), max_size=1_500))
def test_passages_are_short_and_lose_no_word(text: str) -> None:
    found = list(passages(text, "x.md"))
    assert all(0 < estimate(p.text) <= CHUNK_TOKENS + 1 for p in found)
    letters = "".join(c for c in text if c in "abé_1")
    kept = "".join(c for p in found for c in p.text if c in "abé_1")
    headed = any(line.lstrip().startswith("#") for line in text.splitlines())
    assert kept == letters or headed


def test_headings_make_a_path() -> None:
    text = "Start.\n# One\n## Two\nInside.\n### Three\nDeep.\n# Four ##\nLast."
    assert [(p.heading, p.text) for p in passages(text, "x.md")] == [
        ("", "Start."),
        ("One > Two", "Inside."),
        ("One > Two > Three", "Deep."),
        ("Four", "Last."),
    ]


def test_a_sign_in_a_code_fence_is_no_heading() -> None:
    text = "# SQL\n```sql\n# not a heading\nSELECT 1\n```\n"
    (only,) = passages(text, "x.md")
    assert only.heading == "SQL" and "# not a heading" in only.text


def test_small_paragraphs_share_a_passage_and_long_ones_are_cut_at_sentences() -> None:
    assert len(list(passages("One.\n\nTwo.\n\nThree.", "x"))) == 1
    long = " ".join(f"Sentence number {i} says something about orders." for i in range(60))
    found = list(passages(long, "x"))
    assert len(found) > 2
    assert all(p.text.endswith(".") for p in found)


def test_a_text_without_blanks_is_cut_anyway() -> None:
    assert all(estimate(p.text) <= CHUNK_TOKENS + 1 for p in passages("x1" * 3_000, "x"))

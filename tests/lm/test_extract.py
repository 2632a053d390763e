"""The program is found whatever a model puts round it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynx_dspy.lm.extract import extract_program, parses, without_reasoning

QUERIES = [
    "SELECT name FROM customer",
    "SELECT c.name, COUNT(*) AS n\nFROM customer AS c\nJOIN orders AS o ON o.cid = c.id\n"
    "WHERE c.city = 'St. John''s; \"x\"'\nGROUP BY c.name\nORDER BY n DESC\nLIMIT 5",
    "WITH a AS (\n  SELECT 1 AS x\n\n  UNION ALL\n  SELECT 2\n),\n\nb AS (SELECT x FROM a)\n\n"
    "SELECT MAX(x)\nFROM b",
    "SELECT a FROM t\nUNION\nSELECT b FROM u",
    "SELECT `odd name`, \"q\" -- a note; with 'signs'\nFROM t\n\nWHERE x IN (1, 2)",
    "SELECT CASE WHEN a > 1 THEN 'x' ELSE 'y' END\n  AS k,\n  b\nFROM\n  t\nWHERE\n  a = 1",
    "(SELECT 1) UNION ALL (SELECT 2)",
]
FORMS = {
    "bare": "{}",
    "semicolon": "{};",
    "fence": "```sql\n{}\n```",
    "fence, untagged": "```\n{};\n```",
    "fence in prose": "Here's the query:\n\n```sql\n{}\n```\n\nIt returns what you asked for.",
    "inline fence": "```sql {}```",
    "tildes": "~~~sqlite\n{}\n~~~",
    "unclosed": "Sure.\n```sql\n{}",
    "unclosed, then prose": "```sql\n{};\n\nThis query does it.",
    "two fences": "```sql\nSELECT 0\n```\nNo, better:\n```sql\n{}\n```",
    "unclosed, then closed": "```sql\nSELECT 0\n\nBetter:\n```sql\n{}\n```",
    "fence, then output": "```sql\n{}\n```\nOutput:\n```text\n1 | 2\n```\n```\nname\nAnn\n```",
    "label": "SQL: {}",
    "bold label": "**SQL Query:**\n{}",
    "answer label": "Answer:\n{};",
    "tag line": "sql\n{}",
    "prose before": "To answer this we count rows.\n\n{}",
    "prose after": "{}\n\nThis query counts the rows of each group. It's simple.",
    "explanation after": "{};\nExplanation: the rows are counted",
    "explanation next line": "{}\nThis counts the rows.",
    "thinking": "<think>Maybe SELECT x FROM y? Or ```sql\nSELECT 9\n```</think>\n{}",
    "orphan end": "I should use SELECT 3.</think>```sql\n{}\n```",
    "unclosed thinking, fenced": "<think>so it is\n```sql\n{}\n```",
    "chat end": "{}<|im_end|>\n<|im_start|>user\nSELECT 7",
    "chat start": "<|im_start|>{}",
    "several statements": "```sql\nSELECT 0;\n{};\n```",
    "broken last": "```sql\n{};\nSELECT FROM WHERE (;\n```",
}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("form", FORMS)
def test_a_query_comes_back_equal(form: str, query: str) -> None:
    found = extract_program(FORMS[form].format(query), "sqlite", "stop")
    assert found.code == query
    assert found.complete


@pytest.mark.parametrize("reply", ["", "I cannot answer that.", "```text\nno\n```", "<think>SEL"])
def test_no_program(reply: str) -> None:
    found = extract_program(reply, "sqlite")
    assert (found.code, found.complete, found.how) == ("", False, "none")


def test_a_cut_reply_is_not_complete() -> None:
    assert not extract_program("```sql\nSELECT a FROM t\n```", "sqlite", "length").complete
    cut = extract_program("```sql\nSELECT a FROM t WHERE x IN (1,", "sqlite")
    assert cut.code.startswith("SELECT a FROM t WHERE") and not cut.complete
    assert cut.how == "open fence"


def test_a_writing_statement_is_handed_on_for_the_guard_to_block() -> None:
    assert extract_program("```sql\nDROP TABLE t;\n```", "sqlite").code == "DROP TABLE t"
    assert extract_program("DELETE FROM t", "sqlite").code == "DELETE FROM t"


def test_prose_that_looks_like_sql_is_passed_over() -> None:
    reply = "With this in mind, select the best rows:\n\nSELECT a FROM t"
    assert extract_program(reply, "sqlite").code == "SELECT a FROM t"


def test_an_unknown_dialect_is_judged_as_plain_sql() -> None:
    assert extract_program("SELECT 1", "klingon").complete
    assert not parses("SELECT FROM WHERE (", "klingon")


@pytest.mark.parametrize(
    "unit",
    ["```", "'", "/*", "<think>", "SELECT ", "(", "\n", "-- x\n", "sql\n", "WITH a AS (", ";"],
)
def test_a_hundred_kilobytes_are_fast(unit: str) -> None:
    begun = time.process_time()
    for size in (19_000, 100_000):
        extract_program(unit * (size // len(unit)), "sqlite")
    assert time.process_time() - begun < 10


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["```", "sql\n", "SELECT ", "1", "'", ";", "\n", "(", ")", "<think>", "x", "--"]
        )
        | st.text(max_size=8),
        max_size=30,
    ).map("".join),
    st.sampled_from(["sqlite", "bigquery", "", "?"]),
)
def test_it_never_raises_and_invents_nothing(reply: str, dialect: str) -> None:
    found = extract_program(reply, dialect)
    assert found.code in reply or found.code in without_reasoning(reply)
    assert found.code or not found.complete


@given(st.text(alphabet=st.characters(exclude_characters="<"), max_size=60))
def test_text_without_tags_is_kept(text: str) -> None:
    assert without_reasoning(text) == text.strip()

"""What the guard adds for warehouses: nothing reaches outside, and no gold program is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance.bypasses import all_of
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.engines.cloud_guard import bare, check, refusal

GOLDS = Path(__file__).parents[2] / "../shared/data/spider2-lite/evaluation_suite/gold/sql"
DIALECTS = ("bigquery", "snowflake", "spark")
ALLOWED = {
    "bigquery": """
        SELECT NET.HOST(url), NET.REG_DOMAIN(url), SAFE.SUBSTR(a, 1), HLL_COUNT.MERGE(s) FROM t
        SELECT device.web, SUM(p.value.n) FROM `p.d.t_*`, UNNEST(params) AS p GROUP BY 1
        SELECT * FROM t FOR SYSTEM_TIME AS OF TIMESTAMP '2020-01-01'
        FROM t |> WHERE a > 1 |> SELECT a
        SELECT 'a@b.c', "x->>y" FROM t WHERE note = 'CALL p(); NEXTVAL'
    """,
    "snowflake": """
        SELECT f.value:name::TEXT FROM t, LATERAL FLATTEN(input => t.items) f
        SELECT * FROM TABLE(FLATTEN(PARSE_JSON('[1]')))
        SELECT a FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) = 1
        SELECT 'reader@acme.com', 'x ->> y', "procedure" FROM t
    """,
    "spark": """
        SELECT * FROM web.events LATERAL VIEW EXPLODE(tags) x AS tag
        SELECT csv.a, `text`.`b` FROM csv JOIN `text` ON csv.id = `text`.id
        SELECT t.`a b`, t.`n/a`, s.`text` FROM t
        SELECT 'csv.`/etc/passwd`', FROM_CSV('1', 'a INT') FROM t
        SELECT TRANSFORM(list, x -> x + 1) FROM t
    """,
}
BLOCKED = {
    "bigquery": """
        SELECT KEYS.NEW_KEYSET('AEAD_AES_GCM_256')
        SELECT dataset.remote_function(1)
        SELECT `project.dataset.function`(1)
        SELECT * FROM APPENDS(TABLE t, NULL, NULL)
        SELECT SESSION_USER()
    """,
    "snowflake": """
        SELECT my_db.my_schema.my_function(1)
        SELECT * FROM TABLE(INFORMATION_SCHEMA.QUERY_HISTORY())
        SELECT 1 ->> DROP TABLE t
        SELECT TO_FILE('@s/f')
        SELECT * FROM '@stage/f'
        SELECT LAST_QUERY_ID()
    """,
    "spark": """
        SELECT * FROM delta.`s3://bucket/x`
        SELECT * FROM `parquet`.`/x`
        SELECT * FROM parquet.x
        SELECT * FROM `/etc/passwd`
        SELECT * FROM jdbc.`jdbc:h2:mem:x`
        SELECT * FROM t JOIN avro.`x.avro` a ON a.id = t.id
        SELECT INPUT_FILE_NAME() FROM t
        SELECT XPATH_STRING(a, 'b') FROM t
    """,
}


def _lines(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(d, line.strip()) for d, text in table.items() for line in text.strip().splitlines()]


@pytest.mark.parametrize(("dialect", "code"), _lines(ALLOWED))
def test_allows(dialect: str, code: str) -> None:
    assert refusal(code, dialect) is None


@pytest.mark.parametrize(("dialect", "code"), _lines(BLOCKED))
def test_blocks(dialect: str, code: str) -> None:
    assert refusal(code, dialect) is not None


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_known_bypass_passes(dialect: str) -> None:
    assert [code for code in all_of(dialect) if refusal(code, dialect) is None] == []


PIECES = ["SELECT", "FROM", "(", ")", ".", "`", "@", "'x'", "csv", "t", "--", ";"]


@given(st.text() | st.lists(st.sampled_from(PIECES)).map(" ".join))
def test_never_raises_and_a_bare_program_is_a_beginning(code: str) -> None:
    for dialect in DIALECTS:
        reason = check(code, dialect)
        assert reason is None or reason
        assert code.startswith(bare(code, dialect))


@pytest.mark.skipif(not GOLDS.exists(), reason="needs the shared data")
def test_gold_programs_of_spider2_are_refused_only_if_they_are_scripts() -> None:
    refused, seen = [], 0
    for path in sorted(GOLDS.glob("*.sql")):
        dialect = {"b": "bigquery", "g": "bigquery", "s": "snowflake"}.get(path.name[0])
        if dialect:
            seen += 1
            outcome = refusal(path.read_text(), dialect)
            refused += [outcome.error] if outcome else []
    assert seen > 200
    assert len(refused) <= 5
    assert all("exactly one statement" in error for error in refused)

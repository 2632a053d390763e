"""What the guard lets through, and every way around it that we know."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lynx_dspy.engines.guard import check, refusal
from lynx_dspy.values import FailureClass, Status

DATA = Path(__file__).parents[2] / "../shared/data"

ALLOWED = {
    "sqlite": """
        SELECT ';' AS a
        SELECT 1;
        SELECT 1 ; -- bye; x
        /* a; b */ SELECT 1 /* c */;;
        (SELECT 1) UNION SELECT 2
        VALUES (1)
        WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT 1 FROM r) SELECT * FROM r
        SELECT sql FROM sqlite_master
        SELECT replace(a,'x','y'), glob('a*', b), json_extract(c,'$.x'), iif(1,2,3) FROM t
        SELECT * FROM json_each('[1]')
        SELECT count(*) FILTER (WHERE a>1) OVER (PARTITION BY b ORDER BY c ROWS 1 PRECEDING) FROM t
        SELECT a COLLATE NOCASE FROM t INDEXED BY i ORDER BY a DESC NULLS LAST LIMIT 3 OFFSET 2
        SELECT CAST(a AS REAL)/b, a->>'$.x', x'ab', a IS NOT b, a GLOB 'x*', a MATCH 'b' FROM t
        SELECT * FROM t WHERE (a,b) IN (VALUES (1,2)) AND NOT EXISTS (SELECT 1)
        SELECT * FROM t NATURAL JOIN u CROSS JOIN v LEFT OUTER JOIN w USING (a)
        SELECT edit, "readfile", [read_csv] FROM t
        SELECT 1 EXCEPT SELECT 2 INTERSECT SELECT 3
        SELECT * FROM "weird.csv"
        SELECT printf('%.2f%%', a), printf('%05d* in 2020', b), format('%s-%,d', c, d) FROM t
        SELECT 'DROP TABLE t', 'PRAGMA x' -- DELETE FROM t
    """,
    "duckdb": """
        FROM t
        SELECT * EXCLUDE (a) REPLACE (b+1 AS b) FROM t
        PIVOT t ON a USING sum(b)
        UNPIVOT t ON a, b INTO NAME n VALUE v
        SELECT * FROM t PIVOT (sum(b) FOR a IN (1,2))
        SELECT list_transform([1,2], x -> x+1), [x for x in [1,2] if x>1], {'a':1}.a, a[1:2]
        SELECT * FROM range(3), generate_series(1,2), unnest([1])
        SELECT a FROM t QUALIFY row_number() OVER (PARTITION BY b)=1
        SELECT * FROM t ASOF JOIN u ON t.a>=u.a USING SAMPLE 10%
        SELECT DATE '2020-01-01' + INTERVAL 3 DAY, a::INT, d AT TIME ZONE 'UTC' FROM t
        SELECT table_name FROM information_schema.tables
        SELECT sum(a) FILTER (b), mode() WITHIN GROUP (ORDER BY a) FROM t GROUP BY CUBE (a, b)
        SELECT a FROM t GROUP BY ALL ORDER BY ALL LIMIT 10%
        WITH a AS MATERIALIZED (SELECT 1) SELECT * FROM a
        SELECT MAP {'a':1}, struct_pack(a := 1), row(1,2), a SIMILAR TO 'x', 5 // 2 FROM t
    """,
}
BLOCKED = {
    "sqlite": """
        ATTACH 'x' AS y
        /* a */ PRAGMA writable_schema=1
        -- c /* DROP TABLE t
        WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a
        WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a
        SELECT 1; DROP TABLE t
        SELECT 1;;DROP TABLE t
        SELECT 1 /* ; */ ; DELETE FROM t
        SELECT readfile('/etc/passwd')
        SELECT 1 UNION SELECT load_extension('x')
        SELECT "load_extension"('x')
        SELECT [load_extension]('x')
        SELECT LOAD_EXTENSION /* */ ('x')
        SELECT weird syntax here readfile('x') from from
        REPLACE INTO t VALUES (1)
        VACUUM INTO 'x'
        EXPLAIN QUERY PLAN SELECT 1
        SELECT * FROM pragma_table_info('t')
        SELECT * FROM pragma_database_list
        SELECT fts3_tokenizer('simple')
        CREATE TABLE x AS SELECT 1
        SELECT * FROM (SELECT writefile('x','y'))
        SELECT CASE WHEN edit('x') THEN 1 END
        ( DELETE FROM t )
        SELECT * FROM sqlite_dbpage
        SELECT 1 INTO x
        SELECT printf('%.*c', 1000000000, 'x')
        SELECT format('%.2000000000c', 'x')
        SELECT printf('%' || a, b) FROM t
        \ufeffDROP TABLE t
    """,
    "duckdb": """
        SELECT * FROM 'x.csv'
        FROM "x.parquet"
        SELECT * FROM t JOIN 'a.parquet' USING (i)
        SELECT * FROM 'https://x/y'
        SELECT * FROM read_csv('x')
        SELECT * FROM main.read_csv('x')
        SELECT (SELECT content FROM read_text('x'))
        SELECT * FROM t, LATERAL read_csv(t.a)
        PIVOT 'x.csv' ON a
        VALUES ((SELECT 1 FROM 'x.csv'))
        SELECT * FROM glob('*')
        SELECT * FROM parquet_metadata('x')
        SELECT * FROM duckdb_secrets()
        FROM query('select 1')
        SELECT getenv('HOME')
        SELECT current_setting('x')
        SELECT sleep_ms(1)
        SELECT pg_sleep(1)
        COPY (SELECT 1) TO 'x'
        INSTALL httpfs
        LOAD httpfs
        SET x = 1
        CALL pragma_version()
        EXPORT DATABASE 'x'
        DESCRIBE t
        EXPLAIN ANALYZE SELECT 1
        SELECT * FROM (DESCRIBE t)
        WITH a AS (INSERT INTO t VALUES (1) RETURNING *) FROM a
        SELECT * FROM json_execute_serialized_sql('x')
        PREPARE a AS SELECT 1
    """,
}


def programs(table: dict[str, str]) -> list[tuple[str, str]]:
    return [
        (dialect, line.strip())
        for dialect, text in table.items()
        for line in text.strip().splitlines()
    ]


@pytest.mark.parametrize(("dialect", "code"), programs(ALLOWED))
def test_allows(dialect: str, code: str) -> None:
    assert check(code, dialect) is None


@pytest.mark.parametrize(("dialect", "code"), programs(BLOCKED))
def test_blocks(dialect: str, code: str) -> None:
    reason = check(code, dialect)
    assert reason
    assert "\n" not in reason


def test_a_comment_that_hides_a_line_end_does_not_hide_the_statement() -> None:
    assert check("-- SELECT\nDROP TABLE t", "sqlite")
    assert check("/* SELECT */ DROP TABLE t", "sqlite")
    assert check("/* /* */ SELECT */ DROP TABLE t", "duckdb")


@pytest.mark.parametrize("code", ["", "  \n", ";", "-- only a comment", "/* a */ -- b\n", ";;\n;"])
def test_no_program(code: str) -> None:
    outcome = refusal(code, "sqlite")
    assert outcome is not None
    assert outcome.status is Status.NO_PROGRAM


@pytest.mark.parametrize(
    "code", ["SELECT * FRO t WHERE", "SELECT 'open", "WITH a AS (", "SELECT ("]
)
def test_syntax_errors_are_left_to_the_engine(code: str) -> None:
    assert check(code, "sqlite") is None


def test_depth_and_length_are_bounded() -> None:
    assert check("SELECT " + "(" * 5000 + "1" + ")" * 5000, "sqlite")
    assert check("SELECT 1" + " " * 200_000, "sqlite")


def test_a_lone_surrogate_is_a_syntax_error() -> None:
    outcome = refusal("SELECT '\ud800'", "duckdb")
    assert outcome is not None
    assert outcome.failure_class is FailureClass.SYNTAX


WORDS = (
    "SELECT FROM WITH t AS ( ) , ; * 'x' \" [ ] -- /* */ $$ e' 1 DROP PRAGMA COPY x.csv readfile"
)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS.split())).map(" ".join)))
@example("SELECT \x00")
@example("\ud800")
def test_never_raises(code: str) -> None:
    for dialect in ("sqlite", "duckdb"):
        reason = check(code, dialect)
        assert reason is None or reason


@pytest.mark.skipif(not DATA.exists(), reason="needs the shared data")
def test_no_gold_program_of_the_benchmarks_is_blocked() -> None:
    golds = [line.split("\t")[0] for line in (DATA / "spider/dev_gold.sql").open()]
    golds += [
        line.split("\t")[0] for line in (DATA / "bird_mini_dev/mini_dev_sqlite_gold.sql").open()
    ]
    for line in (DATA / "sql_eval/val.jsonl").open():
        golds += json.loads(line)["gold"]
    assert len(golds) > 1000
    assert [gold for gold in golds if check(gold, "sqlite")] == []

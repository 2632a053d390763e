"""DuckDB on real files: reading, failing, limits, and files that nothing may change."""

import datetime
import gc
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lynx_dspy.engines import Database, connect
from lynx_dspy.engines.duckdb_worker import Setup, execute, open_locked
from lynx_dspy.errors import DatabaseError
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.values import FailureClass, Limits, Status

FAST = Limits(timeout_seconds=0.5)
SCRIPT = """
    CREATE TABLE team (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL);
    CREATE SCHEMA hr;
    CREATE TABLE hr.person (id INT, year INT, "e-mail" VARCHAR, PRIMARY KEY (id, year));
    CREATE TABLE game (home INT REFERENCES team (id));
    COMMENT ON TABLE team IS 'a group';
    COMMENT ON COLUMN team.name IS 'as printed';
    CREATE VIEW staff AS SELECT name FROM team;
    INSERT INTO team VALUES (1, 'red'), (2, 'blue');
    CREATE TABLE "order ""x"".🦊" ("a b.c" INT);
"""


def build(path: Path, script: str = SCRIPT) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.execute(script)
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("duck") / "club.duckdb")


@pytest.fixture(scope="module")
def db(path: Path) -> Iterator[Database]:
    with connect(path) as database:
        yield database


def digest(path: Path) -> tuple[str, list[str]]:
    return sha256(path.read_bytes()).hexdigest(), sorted(os.listdir(path.parent))


def test_rows_columns_and_status(db: Database) -> None:
    outcome = db.execute("FROM team SELECT name, name, id ORDER BY id; -- all")
    assert outcome.columns[2] == "id"
    assert outcome.rows == (("red", "red", 1), ("blue", "blue", 2))
    assert db.execute("SELECT 1 WHERE false").status is Status.EMPTY


def test_values_are_plain_and_hashable(db: Database) -> None:
    code = "SELECT 1.5, DATE '2020-01-02', [1, 2], {'a': [1]}, MAP {'k': 2}, NULL, 'a'::BLOB, true"
    (row,) = db.execute(code).rows
    assert row == (
        *(Decimal("1.5"), datetime.date(2020, 1, 2), (1, 2), (("a", (1,)),), (("k", 2),)),
        *(None, b"a", True),
    )
    assert isinstance(hash(row), int)
    assert isinstance(db.execute("SELECT uuid()").rows[0][0], str)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("SELECT * FRO team", FailureClass.SYNTAX),
        ("SELECT 'open", FailureClass.SYNTAX),
        ("SELECT strftim(name) FROM team", FailureClass.SYNTAX),
        ("SELECT '\ud800'", FailureClass.SYNTAX),
        ("SELECT nam FROM team", FailureClass.SCHEMA),
        ("SELECT t.nam FROM team t", FailureClass.SCHEMA),
        ("SELECT x.name FROM team t", FailureClass.SCHEMA),
        ("SELECT * FROM teams", FailureClass.SCHEMA),
        ("SELECT id FROM team, hr.person", FailureClass.SCHEMA),
        ("SELECT name, count(*) FROM team", FailureClass.SEMANTIC),
        ("SELECT name::INT FROM team", FailureClass.SEMANTIC),
        ("SELECT sum(name) FROM team", FailureClass.SEMANTIC),
        ("SELECT 1 UNION SELECT 1, 2", FailureClass.SEMANTIC),
    ],
)
def test_failure_classes(db: Database, code: str, expected: FailureClass) -> None:
    outcome = db.execute(code)
    assert (outcome.status, outcome.failure_class) == (Status.ERROR, expected)
    assert outcome.error
    assert "\n" not in outcome.error
    assert "LINE 1" not in outcome.error


@pytest.mark.parametrize(
    "code",
    [
        "WITH RECURSIVE r AS (SELECT 1 i UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r",
        "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b",
        "SELECT range(1000000000)",
        "SELECT length(repeat('x', 1000000000))",
        "SELECT lpad('x', 2000000000, 'y')",
        "SELECT string_agg(repeat('x', 1000000), ',') FROM range(10000)",
        "SELECT list_reduce(range(100000000), lambda a, b: a + b)",
        "SELECT * FROM range(10000000000) ORDER BY random()",
    ],
)
def test_greedy_programs_end_in_time_and_the_next_one_runs(db: Database, code: str) -> None:
    started = time.perf_counter()
    outcome = db.execute(code, FAST)
    assert time.perf_counter() - started < FAST.timeout_seconds + 10
    assert outcome.status in (Status.TIMEOUT, Status.ERROR)
    assert db.execute("SELECT 1").rows == ((1,),)


def test_caps(db: Database) -> None:
    outcome = db.execute("SELECT range, 'abc' FROM range(100000000)", Limits(10, 5, 2))
    assert (outcome.row_count, outcome.truncated, outcome.rows[4]) == (5, True, (4, "ab"))


ATTACKS = [
    "DELETE FROM team",
    "WITH x AS (SELECT 1) INSERT INTO team SELECT 3, 'x'",
    "COPY team TO 'leak.csv'",
    "EXPORT DATABASE 'leak'",
    "ATTACH 'other.duckdb'",
    "CREATE TEMP TABLE x AS SELECT 1",
    "SET enable_external_access = true",
    "SET threads = 1",
    "INSTALL httpfs",
    "LOAD httpfs",
    "CALL enable_logging()",
    "SELECT 1; DROP TABLE team",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM e'/etc/passwd'",
    "SELECT * FROM ['/etc/passwd']",
    "SELECT * FROM (COPY team TO 'x')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM query('FROM ''/etc/passwd''')",
    "SELECT * FROM 'https://example.org/x.csv'",
    "SELECT getenv('HOME')",
    "SELECT * FROM frame",
]


@pytest.mark.parametrize("code", ATTACKS)
def test_the_engine_alone_stops_what_the_guard_would(
    db: Database, path: Path, tmp_path: Path, code: str
) -> None:
    frame = {"a": [1]}
    before = digest(path)
    with open_locked(Setup(str(path), (), str(tmp_path / "spill"))) as connection:
        assert not execute(connection, code, FAST).ran, frame
    assert not db.execute(code, FAST).ran
    assert digest(path) == before
    assert os.listdir(tmp_path) == []


def test_programs_cannot_read_our_environment(
    db: Database, monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    monkeypatch.setenv("LYNX_TEST_KEY", "secret")
    with connect(path) as fresh:
        process = fresh._pool.idle[0].process.pid
        assert b"LYNX_TEST_KEY" not in Path(f"/proc/{process}/environ").read_bytes()


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.one_of(
        st.text(),
        st.text().map("SELECT ".__add__),
        st.lists(st.sampled_from([*" ".join(ATTACKS).split(), "SELECT", "FROM", ";", "--"])).map(
            " ".join
        ),
    )
)
def test_any_text_gives_an_outcome_and_leaves_the_file_alone(
    db: Database, path: Path, code: str
) -> None:
    before = digest(path)
    assert isinstance(db.execute(code, FAST).status, Status)
    assert digest(path) == before


def test_introspection(db: Database) -> None:
    schema = db.introspect()
    assert {t.name for t in schema.tables} == {"team", "person", "game", "staff", 'order "x".🦊'}
    team, person, staff = (schema.table(n) for n in ("team", "person", "staff"))
    assert team and person and staff
    assert (team.description, team.primary_key, team.row_count) == ("a group", ("id",), 2)
    assert [(c.type, c.nullable, c.description) for c in team.columns] == [
        ("INTEGER", False, ""),
        ("VARCHAR", False, "as printed"),
    ]
    assert (person.namespace, person.primary_key) == ("hr", ("id", "year"))
    assert (staff.is_view, staff.row_count) == (True, None)
    (key,) = schema.foreign_keys
    assert (key.table, key.columns, key.ref_table, key.ref_columns) == (
        *("game", ("home",)),
        *("team", ("id",)),
    )


def test_two_thousand_tables_are_fast(tmp_path: Path) -> None:
    script = "BEGIN;" + "".join(f"CREATE TABLE t{i} (a INT, b TEXT);" for i in range(2000))
    with connect(build(tmp_path / "big.duckdb", script + "COMMIT;")) as db:
        started = time.perf_counter()
        assert len(db.introspect().tables) == 2000
        assert time.perf_counter() - started < 30, "a query a table would take a minute"


def test_one_file_twice_and_many_threads(db: Database, path: Path) -> None:
    with connect(f"duckdb:///{path}") as second, ThreadPoolExecutor(8) as pool:
        outcomes = pool.map(lambda n: second.execute(f"SELECT {n}"), range(40))
        assert [o.rows[0][0] for o in outcomes] == list(range(40))
        assert db.execute("SELECT count(*) FROM team").rows == ((2,),)


def test_a_file_that_another_program_writes_is_locked(tmp_path: Path) -> None:
    path = build(tmp_path / "x.duckdb")
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(1, flush=True); input()"
    writer = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert writer.stdout
    writer.stdout.readline()
    with pytest.raises(DatabaseError, match="locked by another program"):
        connect(path)
    writer.communicate(b"\n")
    connect(path).close()


def test_a_damaged_block_is_not_taken_for_a_lock(tmp_path: Path) -> None:
    path = build(tmp_path / "x.duckdb")
    whole = path.read_bytes()
    path.write_bytes(whole[:9_000] + b"\xff" * (len(whole) - 9_000))
    with pytest.raises(DatabaseError, match="cannot be read as DuckDB"):
        connect(path)


def test_closing_ends_the_process_and_forgetting_does_too(path: Path) -> None:
    db = connect(path)
    process = db._pool.idle[0].process
    db.close()
    db.close()
    assert process.poll() is not None
    assert db.execute("SELECT 1").status is Status.UNAVAILABLE
    forgotten = connect(path)
    process = forgotten._pool.idle[0].process
    del forgotten
    gc.collect()
    assert process.poll() is not None


def test_a_killed_process_is_replaced(db: Database) -> None:
    (worker,) = db._pool.idle[:1]
    worker.process.kill()
    worker.process.wait()
    assert db.execute("SELECT 1").rows == ((1,),)


def test_vanished_file_and_our_own_queries(tmp_path: Path) -> None:
    path = build(tmp_path / "x.duckdb")
    with connect(path) as db:
        assert db.query("SELECT name FROM team WHERE id = ?", (2,)) == [("blue",)]
        with pytest.raises(DatabaseError, match="nope"):
            db.query("SELECT * FROM nope")
        before = db.fingerprint()
        path.unlink()
        assert db.execute("SELECT 1").status is Status.UNAVAILABLE
        assert db.fingerprint() != before


def test_tables_of_one_name_in_two_schemas_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "two.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            'CREATE SCHEMA "a.b"; CREATE TABLE t (x INT); INSERT INTO t VALUES (1);'
            'CREATE TABLE "a.b".t (y VARCHAR PRIMARY KEY); INSERT INTO "a.b".t VALUES (\'z\');'
            'CREATE TABLE "a.b".u (y VARCHAR REFERENCES "a.b".t (y));'
        )
    with connect(path) as db:
        schema = abstract(db)
    columns = {t.name: (t.parts, t.columns[0].name, t.columns[0].samples) for t in schema.tables}
    assert columns == {
        "t": (("t",), "x", ("1",)),
        "a.b.t": (("a.b", "t"), "y", ("'z'",)),
        "u": (("a.b", "u"), "y", ()),
    }
    assert [(k.table, k.ref_table) for k in schema.foreign_keys] == [("u", "a.b.t")]

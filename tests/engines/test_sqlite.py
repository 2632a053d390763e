"""SQLite on real files: reading, failing, limits, and a file that nothing may change."""

import copy
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lynx_dspy.engines import Database, connect
from lynx_dspy.engines.sqlite_file import open_file
from lynx_dspy.engines.sqlite_worker import run
from lynx_dspy.errors import DatabaseError
from lynx_dspy.values import FailureClass, Limits, Status

DATA = Path(__file__).parents[2] / "../shared/data"
FAST = Limits(timeout_seconds=0.5)
SCRIPT = """
    CREATE TABLE team ( -- a group of people
        id INTEGER PRIMARY KEY, -- number
        name TEXT NOT NULL /* as printed */
    );
    CREATE TABLE person (
        -- given by the office
        id INTEGER,
        year INT,
        team INT REFERENCES team,
        "e-mail" VARCHAR(20),
        double INT GENERATED ALWAYS AS (id * 2) VIRTUAL,
        PRIMARY KEY (id, year)
    );
    CREATE TABLE badge (
        person INT, year INT,
        FOREIGN KEY (person, year) REFERENCES Person (id, year)
    );
    CREATE VIEW staff AS SELECT name, "e-mail" FROM person JOIN team ON team = team.id;
    CREATE VIEW broken AS SELECT lost FROM nowhere;
    CREATE VIRTUAL TABLE notes USING fts5(body);
    CREATE TABLE "select ""x"".🦊 [y]" ("a b.c" INT, "order" TEXT);
    INSERT INTO team VALUES (1, 'red'), (2, 'blue');
    INSERT INTO person (id, year, team) VALUES (1, 2020, 1), (2, 2020, 2), (3, 2021, 2);
    INSERT INTO notes VALUES ('hello world');
"""


def build(path: Path, script: str = SCRIPT) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sqlite") / "club.sqlite")


@pytest.fixture(scope="module")
def db(path: Path) -> Iterator[Database]:
    with connect(path) as database:
        yield database


@pytest.fixture
def own_path(tmp_path: Path) -> Path:
    """A database that a test may change."""
    return build(tmp_path / "own.sqlite")


@pytest.fixture
def own(own_path: Path) -> Iterator[Database]:
    with connect(own_path) as database:
        yield database


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def test_rows_columns_and_status(db: Database) -> None:
    outcome = db.execute("SELECT name, name, id FROM team ORDER BY id; -- all")
    assert outcome.columns == ("name", "name", "id")
    assert outcome.rows == (("red", "red", 1), ("blue", "blue", 2))
    assert outcome.status is Status.OK
    assert db.execute("SELECT 1 WHERE 0").status is Status.EMPTY


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("SELECT * FRO team", FailureClass.SYNTAX),
        ("SELECT 'open", FailureClass.SYNTAX),
        ("SELECT YEAR(name) FROM team", FailureClass.SYNTAX),
        ("SELECT (", FailureClass.SYNTAX),
        ("SELECT 'a\0b'", FailureClass.SYNTAX),
        ("SELECT nam FROM team", FailureClass.SCHEMA),
        ("SELECT * FROM teams", FailureClass.SCHEMA),
        ("SELECT id FROM team, person", FailureClass.SCHEMA),
        ("SELECT name FROM team WHERE count(*) > 1", FailureClass.SEMANTIC),
        ("SELECT 1 UNION SELECT 1, 2", FailureClass.SEMANTIC),
        ("SELECT abs(-9223372036854775808)", FailureClass.SEMANTIC),
        ("SELECT json_extract('{', '$')", FailureClass.SEMANTIC),
    ],
)
def test_failure_classes(db: Database, code: str, expected: FailureClass) -> None:
    outcome = db.execute(code)
    assert (outcome.status, outcome.failure_class) == (Status.ERROR, expected)
    assert outcome.error
    assert "\n" not in outcome.error


@pytest.mark.parametrize(
    "code",
    [
        "WITH RECURSIVE r AS (SELECT 1 i UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r",
        "WITH RECURSIVE r AS (SELECT 1 i UNION ALL SELECT i + 1 FROM r LIMIT 3000) "
        "SELECT count(*) FROM r a, r b, r c",
        "WITH RECURSIVE r AS (SELECT 'xxxxxxxxxx' s UNION ALL SELECT s FROM r) "
        "SELECT length(group_concat(s)) FROM r",
        "SELECT instr(hex(zeroblob(7000000)), hex(zeroblob(3500000)) || '1')",
        "SELECT " + ", ".join(["hex(zeroblob(7000000))"] * 400),
        "SELECT length(randomblob(1e9))",
        "SELECT length(hex(zeroblob(9e8)))",
        "SELECT replace(hex(zeroblob(7000000)), '0', hex(zeroblob(7000000)))",
    ],
)
def test_greedy_programs_end_in_time(db: Database, code: str) -> None:
    started = time.perf_counter()
    outcome = db.execute(code, FAST)
    assert time.perf_counter() - started < FAST.timeout_seconds + 10
    assert outcome.status in (Status.TIMEOUT, Status.ERROR)
    assert outcome.error


def test_caps_on_rows_cells_and_bytes(db: Database) -> None:
    endless = "WITH RECURSIVE r AS (SELECT 1 i UNION ALL SELECT i + 1 FROM r) SELECT i{} FROM r"
    rows = db.execute(endless.format(""), Limits(max_rows=7))
    assert (rows.row_count, rows.truncated) == (7, True)
    cells = db.execute("SELECT 'abcdef', x'010203'", Limits(max_cell_chars=2))
    assert (cells.rows, cells.truncated) == ((("ab", b"\1\2"),), True)
    data = db.execute(endless.format(", hex(zeroblob(900))"), Limits(max_bytes=100_000))
    assert data.truncated
    assert 40 < data.row_count < 100
    assert not db.execute("SELECT 1, 2").truncated


def test_text_that_is_not_utf8_does_not_raise(db: Database) -> None:
    assert db.execute("SELECT CAST(x'e9' AS TEXT)").rows == (("\ufffd",),)


ATTACKS = [
    "DELETE FROM team",
    "WITH x AS (SELECT 1) DELETE FROM team",
    "UPDATE team SET name = 'x'",
    "PRAGMA user_version = 7",
    "PRAGMA journal_mode = WAL",
    "PRAGMA writable_schema = 1",
    "ATTACH 'other.db' AS other",
    "VACUUM INTO 'copy.db'",
    "CREATE TEMP TABLE x AS SELECT 1",
    "SELECT load_extension('libm')",
    "SELECT * FROM pragma_table_info('team')",
    "INSERT INTO notes(notes) VALUES ('rebuild')",
    "BEGIN IMMEDIATE",
    "DROP VIEW staff",
    "REINDEX",
    "ANALYZE",
    "UPDATE sqlite_master SET sql = ''",
]


@pytest.mark.parametrize("code", ATTACKS)
def test_the_engine_alone_stops_what_the_guard_would(path: Path, code: str) -> None:
    before, names = digest(path), sorted(os.listdir(path.parent))
    connection = open_file(path)
    outcome = run(connection, code, FAST, time.perf_counter())
    connection.close()
    assert outcome.status in (Status.BLOCKED, Status.ERROR)
    assert (digest(path), sorted(os.listdir(path.parent))) == (before, names)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.one_of(
        st.text(),
        st.text().map("SELECT ".__add__),
        st.lists(st.sampled_from([*" ".join(ATTACKS).split(), "SELECT", ";", "--", "/*"])).map(
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
    assert [t.name for t in schema.tables] == [
        *("team", "person", "badge", "staff", "notes"),
        'select "x".🦊 [y]',
    ]
    team, person, badge, staff, notes, odd = schema.tables
    assert team.description == "a group of people"
    assert [(c.description, c.nullable) for c in team.columns] == [
        ("number", False),
        ("as printed", False),
    ]
    assert person.primary_key == ("id", "year")
    assert person.row_count == 3
    assert [c.name for c in person.columns] == ["id", "year", "team", "e-mail", "double"]
    assert person.columns[0].description == "given by the office"
    assert person.columns[3].type == "VARCHAR(20)"
    assert (staff.is_view, staff.row_count) == (True, None)
    assert [c.name for c in notes.columns] == ["body"]
    assert [c.name for c in odd.columns] == ["a b.c", "order"]
    keys = {(k.table, k.columns, k.ref_table, k.ref_columns) for k in schema.foreign_keys}
    assert keys == {
        ("person", ("team",), "team", ("id",)),
        ("badge", ("person", "year"), "person", ("id", "year")),
    }
    assert badge.row_count == 0


def test_fts_tables_can_be_searched(db: Database) -> None:
    assert db.execute("SELECT body FROM notes WHERE notes MATCH 'hello'").rows == (
        ("hello world",),
    )


def test_rtree_tables_can_be_read_and_not_written(tmp_path: Path) -> None:
    script = """
        CREATE VIRTUAL TABLE boxes USING rtree(id, low, high);
        INSERT INTO boxes VALUES (7, 0, 1);
    """
    path = build(tmp_path / "boxes.db", script)
    with connect(path) as db:
        assert db.execute("SELECT id FROM boxes WHERE low < 1").rows == ((7,),)
        assert db.execute("WITH x AS (SELECT 1) DELETE FROM boxes").status is Status.BLOCKED
    with closing(open_file(path)) as connection:
        outcome = run(connection, "DELETE FROM boxes_node", Limits(), 0.0)
    assert outcome.status is Status.BLOCKED


def test_two_thousand_tables_are_fast(tmp_path: Path) -> None:
    columns = ", ".join(f"c{i} INT" for i in range(12))
    script = "BEGIN;" + "".join(f"CREATE TABLE t{i} ({columns});" for i in range(2000)) + "COMMIT;"
    with connect(build(tmp_path / "big.db", script)) as db:
        started = time.perf_counter()
        schema = db.introspect()
        assert time.perf_counter() - started < 30
        assert len(schema.tables) == 2000
        assert schema.tables[1999].row_count == 0


def test_a_query_of_ours_takes_parameters_and_names_the_file(db: Database) -> None:
    assert db.query("SELECT name FROM team WHERE id = ?", (2,)) == [("blue",)]
    with pytest.raises(DatabaseError, match=r"club\.sqlite.*no such table"):
        db.query("SELECT * FROM nope")


def test_a_wal_database_is_read_and_leaves_no_files(tmp_path: Path) -> None:
    path = build(tmp_path / "wal.db", "PRAGMA journal_mode = WAL; " + SCRIPT)
    with connect(path) as db:
        assert db.execute("SELECT count(*) FROM team").rows == ((2,),)
        db.introspect()
    assert os.listdir(tmp_path) == ["wal.db"]


def test_a_wal_database_in_use_shows_what_is_only_in_the_log(tmp_path: Path) -> None:
    path = build(tmp_path / "wal.db", "PRAGMA journal_mode = WAL; " + SCRIPT)
    writer = sqlite3.connect(path, isolation_level=None)
    with connect(path) as db:
        before = db.fingerprint()
        writer.execute("INSERT INTO team VALUES (3, 'green')")
        assert db.execute("SELECT count(*) FROM team").rows == ((3,),)
        assert db.fingerprint() != before
    writer.close()


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs POSIX permissions")
def test_a_wal_database_in_a_read_only_folder() -> None:
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from lynx_dspy.engines.sqlite_worker import execute\n"
        "from lynx_dspy.values import Limits\n"
        "os.geteuid() or os.seteuid(65534)\n"  # root may write anywhere
        "outcome = execute(Path(sys.argv[1]), 'SELECT count(*) FROM team', Limits())\n"
        "sys.exit(outcome.rows != ((2,),))"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = build(Path(folder) / "wal.db", "PRAGMA journal_mode = WAL; " + SCRIPT)
        Path(folder).chmod(0o555)
        done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
        Path(folder).chmod(0o755)
        assert done.returncode == 0
        assert os.listdir(folder) == ["wal.db"]


@pytest.mark.parametrize(
    "name", ["a?b#c%20d.sqlite", "it's “q”.db", "ünï 🦊.sqlite3", "a&mode=rwc"]
)
def test_signs_in_the_path(tmp_path: Path, name: str) -> None:
    with connect(build(tmp_path / name)) as db:
        assert db.execute("SELECT count(*) FROM team").rows == ((2,),)
    assert os.listdir(tmp_path) == [name]


def test_threads_share_one_database(db: Database) -> None:
    with ThreadPoolExecutor(8) as pool:
        outcomes = pool.map(lambda n: db.execute(f"SELECT {n}, name FROM team"), range(64))
        assert [o.rows[0][0] for o in outcomes] == list(range(64))


def test_a_program_in_one_thread_is_not_stopped_by_the_clock_of_another(db: Database) -> None:
    endless = "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT 1 FROM r) SELECT count(*) FROM r"
    thread = threading.Thread(target=db.execute, args=(endless, Limits(timeout_seconds=0.1)))
    thread.start()
    longer = db.execute(endless, Limits(timeout_seconds=0.6))
    thread.join()
    assert longer.seconds > 0.5


def test_nothing_leaks(db: Database) -> None:
    db.execute("SELECT 1")
    before = (threading.active_count(), len(os.listdir("/proc/self/fd")))
    for _ in range(50):
        db.execute("SELECT 1")
        db.execute("SELECT nope")
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == before


def test_close_twice_copy_and_vanish(own_path: Path) -> None:
    db = connect(own_path)
    assert copy.deepcopy(db) is db
    own_path.unlink()
    assert db.execute("SELECT 1").status is Status.UNAVAILABLE
    db.close()
    db.close()
    assert db.execute("SELECT 1").status is Status.UNAVAILABLE
    with pytest.raises(DatabaseError):
        db.query("SELECT 1")


def test_a_locked_database_is_unavailable_not_wrong(own: Database, own_path: Path) -> None:
    writer = sqlite3.connect(own_path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    assert own.execute("SELECT * FROM team").status is Status.UNAVAILABLE
    with pytest.raises(DatabaseError, match="locked by another program"):
        connect(own_path)
    writer.close()


def test_a_half_written_database_is_not_read(tmp_path: Path, own_path: Path) -> None:
    writer = sqlite3.connect(own_path, isolation_level=None)
    writer.executescript("PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN;")
    writer.execute(
        "INSERT INTO team SELECT value + 9, hex(randomblob(900)) FROM json_each(?)",
        (str(list(range(2000))),),
    )
    crashed = tmp_path / "crashed.db"
    for source, target in ((own_path, crashed), (f"{own_path}-journal", f"{crashed}-journal")):
        Path(target).write_bytes(Path(source).read_bytes())
    writer.close()
    with pytest.raises(DatabaseError, match="in the middle of a write"):
        connect(crashed)


def test_damage_is_unavailable_not_wrong(tmp_path: Path) -> None:
    rows = "WITH RECURSIVE r AS (SELECT 1 i UNION ALL SELECT i+1 FROM r LIMIT 9000) "
    path = build(tmp_path / "x.db", f"CREATE TABLE t (a); INSERT INTO t {rows} SELECT i FROM r;")
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with connect(path) as db:
        assert db.execute("SELECT sum(a) FROM t").status is Status.UNAVAILABLE


def test_fingerprint_follows_the_file(own: Database, own_path: Path) -> None:
    before = own.fingerprint()
    assert before == own.fingerprint()
    build(own_path, "INSERT INTO team VALUES (9, 'x')")
    assert own.fingerprint() != before


@pytest.mark.skipif(not DATA.exists(), reason="needs the shared data")
def test_all_databases_at_hand_open_and_answer() -> None:
    paths = sorted(DATA.glob("**/*.sqlite"))
    assert len(paths) >= 10
    for path in paths:
        with connect(path) as db:
            schema = db.introspect()
            assert schema.foreign_keys
            for table in schema.tables:
                outcome = db.execute(f'SELECT count(*) FROM "{table.name}"')
                assert outcome.rows == ((table.row_count,),)


@pytest.mark.skipif(not DATA.exists(), reason="needs the shared data")
def test_the_spider_golds_run() -> None:
    failures = []
    lines = (DATA / "spider/dev_gold.sql").read_text().splitlines()
    databases = {path.stem: connect(path) for path in DATA.glob("spider/database/*/*.sqlite")}
    for line in lines:
        code, name = line.split("\t")
        if name in databases and not databases[name].execute(code).ran:
            failures.append(line)
    for db in databases.values():
        db.close()
    assert failures == []

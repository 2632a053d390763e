"""Spark for real: a session of this machine over a folder, and Spark Connect on the loopback."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import lynx_dspy as lynx
from lynx_dspy.engines.spark import SparkDatabase
from lynx_dspy.engines.spark_schema import _Described, _foreign, _table, type_text
from lynx_dspy.engines.static import check, has_errors
from lynx_dspy.errors import DatabaseError, LynxError
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.values import FailureClass, ForeignKey, Limits, Status

SLOW = Limits(timeout_seconds=120)
ENDLESS = (
    "SELECT COUNT(*) FROM RANGE(100000000) a CROSS JOIN RANGE(100000000) b WHERE a.id + b.id = -7"
)
DESCRIBED = [
    ("id", "bigint", "the key"),
    ("params", "array<struct<key:string,n:int>>", None),
    ("day", "date", None),
    ("# Partition Information", "", ""),
    ("# col_name", "data_type", "comment"),
    ("day", "date", None),
    ("", "", ""),
    ("# Detailed Table Information", "", ""),
    ("Type", "MANAGED", ""),
    ("Comment", "clicks", ""),
    ("Statistics", "1234 bytes, 20 rows", ""),
    ("# Constraints", "", ""),
    ("events_pk", "PRIMARY KEY (`id`)", ""),
    ("events_fk", "FOREIGN KEY (`id`) REFERENCES `main`.`web`.`users` (`user_id`)", ""),
]


def test_a_description_gives_columns_partitions_counts_and_keys() -> None:
    told = _Described.of(DESCRIBED)
    table = _table(("web", "events"), told, "default")
    assert [(c.name, c.type) for c in table.columns] == [
        *(("id", "BIGINT"), ("params", "ARRAY<STRUCT<key STRING, n INT>>"), ("day", "DATE")),
    ]
    assert table.columns[0].description == "the key"
    assert (table.parts, table.primary_key, table.row_count) == (("web", "events"), ("id",), 20)
    assert table.description == "clicks. Partitioned by day."
    named = {"events": "events", "users": "users"}
    (key,) = _foreign("events", told.constraints, named)
    assert key == ForeignKey("events", ("id",), "users", ("user_id",))


def test_a_type_that_cannot_be_read_stays() -> None:
    assert type_text("no such <type") == "NO SUCH <TYPE"
    assert type_text("map<string,decimal(10,2)>") == "MAP<STRING, DECIMAL(10, 2)>"


def test_a_missing_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    for url in ("spark:.", "spark://h:7077", "sc://h"):
        with pytest.raises(DatabaseError, match=r"pip install 'lynx-dspy\[spark\]'"):
            lynx.connect(url)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("lake")
    (made / "orders.csv").write_text("id,customer_id,amount\n1,1,12.5\n2,1,7.25\n3,2,9\n")
    (made / "days").mkdir()
    for day in (1, 2):
        (made / "days" / f"{day}.jsonl").write_text(f'{{"day": {day}, "tags": ["x"]}}\n')
    (made / "notes.txt").write_text("not a table")
    duckdb.sql(
        "SELECT 1 AS id, 'Ada' AS name, {'a': 1, 'b': ['x']} AS s, TIMESTAMPTZ "
        "'2024-03-31 03:30:00+02' AS at UNION ALL SELECT 2, 'Bo', NULL, NULL"
    ).write_parquet(str(made / "customers.parquet"))
    return made


@pytest.fixture(scope="module")
def db(folder: Path) -> Iterator[SparkDatabase]:
    pytest.importorskip("pyspark", reason="needs lynx-dspy[spark]")
    with lynx.connect(f"spark:{folder}") as database:
        assert isinstance(database, SparkDatabase)
        yield database


@pytest.mark.slow
def test_files_are_tables_and_values_are_python_values(db: SparkDatabase) -> None:
    outcome = db.execute("SELECT * FROM customers ORDER BY id; -- all", SLOW)
    at = dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC)
    assert outcome.rows == ((1, "Ada", (("a", 1), ("b", ("x",))), at), (2, "Bo", None, None))
    twice = db.execute("SELECT a.id, b.id FROM orders a JOIN orders b ON b.id = a.id + 1", SLOW)
    assert twice.columns == ("id", "id")
    assert sorted(twice.rows) == [(1, 2), (2, 3)]
    months = db.execute("SELECT INTERVAL '1-2' YEAR TO MONTH AS m, 1 AS m", SLOW)
    assert months.rows == (("INTERVAL '1-2' YEAR TO MONTH", 1),)
    assert db.execute("SELECT SUM(day) AS n FROM days", SLOW).rows == ((3,),)


@pytest.mark.slow
def test_rows_are_capped(db: SparkDatabase) -> None:
    outcome = db.execute("SELECT id FROM RANGE(50000)", Limits(120, max_rows=7))
    assert (len(outcome.rows), outcome.truncated) == (7, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("SELECT nope FROM orders", FailureClass.SCHEMA),
        ("SELECT * FROM nope", FailureClass.SCHEMA),
        ("SELECT no_such_function(1)", FailureClass.SYNTAX),
        ("SELECT 1 / 0", FailureClass.SEMANTIC),
        ("SELECT amount, COUNT(*) FROM orders", FailureClass.SEMANTIC),
    ],
)
def test_errors_are_classified(db: SparkDatabase, code: str, expected: FailureClass) -> None:
    outcome = db.execute(code, SLOW)
    assert outcome.failure_class is expected, outcome
    assert "\n" not in outcome.error
    assert "SQLSTATE" not in outcome.error


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "DROP VIEW orders",
        "CREATE TABLE stolen AS SELECT 1 AS a",
        "WITH a AS (SELECT 1) INSERT INTO orders SELECT * FROM a",
        "FROM orders INSERT INTO stolen SELECT *",
        "SELECT TRANSFORM(id) USING 'cat' FROM orders",
        "SELECT * FROM text.`/etc/passwd`",
        "SET spark.sql.runSQLOnFiles = true",
    ],
)
def test_past_the_guard_spark_itself_stops_what_is_no_query(db: SparkDatabase, code: str) -> None:
    assert db._execute(code, SLOW).status in (Status.BLOCKED, Status.ERROR)
    assert db.execute(code, SLOW).status in (Status.BLOCKED, Status.ERROR)
    assert db.execute("SELECT COUNT(*) FROM orders", SLOW).rows == ((3,),)


@pytest.mark.slow
def test_a_runaway_program_is_stopped_with_its_jobs(db: SparkDatabase) -> None:
    assert db.dry_run(ENDLESS) == ()
    started = time.perf_counter()
    assert db.execute(ENDLESS, Limits(timeout_seconds=3)).status is Status.TIMEOUT
    assert time.perf_counter() - started < 5
    end = time.monotonic() + 10
    tracker = db._session.sparkContext.statusTracker()
    while tracker.getActiveJobsIds() and time.monotonic() < end:
        time.sleep(0.05)
    assert not tracker.getActiveJobsIds()


@pytest.mark.slow
def test_the_schema_is_sampled_and_checks_programs(db: SparkDatabase) -> None:
    found = abstract(db)
    assert [table.name for table in found.tables] == ["customers", "days", "orders"]
    customers = found.table("customers")
    assert customers is not None
    assert customers.columns[1].samples == ("'Ada'", "'Bo'")
    assert customers.columns[2].type == "STRUCT<a INT, b ARRAY<STRING>>"
    assert not has_errors(check("SELECT c.s.a FROM customers AS c", found))
    assert check("SELECT c.s.x FROM customers AS c", found)


@pytest.mark.slow
def test_the_fingerprint_is_of_the_files(db: SparkDatabase, folder: Path) -> None:
    first = db._stamp()
    (folder / "late.csv").write_text("a\n1\n")
    assert db._stamp() != first
    (folder / "late.csv").unlink()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("spark:no/such/folder", "No folder"),
        ("spark:?databse=x", "Did you mean 'database'"),
        ("sc://localhost/;token=abc", "SPARK_CONNECT_AUTHENTICATE_TOKEN"),
    ],
)
def test_a_wrong_address_says_what_is_wrong(db: SparkDatabase, url: str, says: str) -> None:
    with pytest.raises(LynxError, match=says) as error:
        lynx.connect(url)
    assert "\n" not in str(error.value)


SERVER = """
from pyspark.sql import SparkSession
session = SparkSession.builder.remote("local[1]").getOrCreate()
session.sql("CREATE TABLE orders USING parquet AS SELECT id, id * 2 AS n FROM range(5)").collect()
print("ready", flush=True)
import sys; sys.stdin.read()
"""
CLIENT = """
import lynx_dspy as lynx
from lynx_dspy.values import Limits
with lynx.connect("sc://localhost:15002") as db:
    slow = Limits(timeout_seconds=120)
    print(db.execute("SELECT n FROM orders ORDER BY n", slow).rows)
    print(db._execute("DROP TABLE orders", slow).status)
    print(db._execute("SELECT * FROM text.`/etc/hosts`", slow).failure_class)
    print(db.execute("SELECT COUNT(*) FROM RANGE(100000000) a CROSS JOIN RANGE(100000000) b "
                     "WHERE a.id + b.id = -7", Limits(timeout_seconds=5)).status)
    print([c.name for c in db.introspect().tables[0].columns])
"""


@pytest.mark.slow
def test_spark_connect(tmp_path: Path) -> None:
    """In processes of their own: PySpark holds one kind of session at a time."""
    pytest.importorskip("pyspark", reason="needs lynx-dspy[spark]")
    environment = os.environ | {
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": "tested", "SPARK_LOCAL_IP": "127.0.0.1"
    }  # fmt: skip
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline().endswith("ready\n")
        told = subprocess.run(
            [sys.executable, "-c", CLIENT],
            env=environment | {"PYTHONPATH": str(Path(lynx.__file__).parents[1])},
            capture_output=True,
            text=True,
            timeout=300,
        )
    finally:
        server.kill()
        server.communicate()
    assert told.stdout.splitlines() == [
        *("((0,), (2,), (4,), (6,), (8,))", "blocked", "schema", "timeout", "['id', 'n']"),
    ], told.stderr[-2000:]

"""BigQuery: Google's own client against a server on the loopback that runs programs in DuckDB."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Iterator
from decimal import Decimal

import pytest

pytest.importorskip("google.cloud.bigquery", reason="needs lynx-dspy[bigquery]")

from fakes.bigquery_server import BigQueryServer, Refused, settle
from google.cloud import bigquery

from lynx_dspy.engines import connect
from lynx_dspy.engines.bigquery import BigQueryDatabase
from lynx_dspy.engines.bigquery_schema import columns, schema
from lynx_dspy.engines.static import check, has_errors
from lynx_dspy.errors import DatabaseError, LynxError
from lynx_dspy.grounding.folding import folded
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.values import FailureClass, ForeignKey, Limits, Status

GIGABYTE = 10**9
ENDLESS = (
    "SELECT COUNT(*) FROM UNNEST(GENERATE_ARRAY(1, 100000)) AS a, "
    "UNNEST(GENERATE_ARRAY(1, 100000)) AS b, UNNEST(GENERATE_ARRAY(1, 1000)) AS c "
    "WHERE a * b + c = -1"
)
TABLES = """
    CREATE TABLE users (id BIGINT NOT NULL, name VARCHAR, paid DECIMAL(10, 2), seen TIMESTAMPTZ);
    CREATE TABLE events (
      day DATE, device STRUCT(category VARCHAR, web STRUCT(browser VARCHAR)),
      params STRUCT(key VARCHAR, n BIGINT)[], tags VARCHAR[], raw BLOB);
    CREATE VIEW named AS SELECT name FROM users;
    INSERT INTO users VALUES (1, 'Ada', 1.50, '2024-03-31 03:30:00+02'), (2, 'Bo', NULL, NULL);
    INSERT INTO events SELECT DATE '2024-01-05', {'category': 'phone', 'web': {'browser': 'ff'}},
      [{'key': 'page', 'n': 1}, {'key': 'ref', 'n': 2}], ['x', 'y'], 'ab'::BLOB FROM range(30);
"""


@pytest.fixture(scope="module")
def server() -> Iterator[BigQueryServer]:
    made = BigQueryServer()
    made.duckdb.execute(TABLES)
    before = os.environ.get("BIGQUERY_EMULATOR_HOST")
    os.environ["BIGQUERY_EMULATOR_HOST"] = made.url
    yield made
    made.close()
    if before is None:
        del os.environ["BIGQUERY_EMULATOR_HOST"]
    else:
        os.environ["BIGQUERY_EMULATOR_HOST"] = before


@pytest.fixture
def db(server: BigQueryServer) -> Iterator[BigQueryDatabase]:
    server.sizes.clear()
    with connect("bigquery://shop-project/shop?max_scan=10GB") as database:
        assert isinstance(database, BigQueryDatabase)
        yield database


def test_values_come_as_python_values(db: BigQueryDatabase) -> None:
    outcome = db.execute("SELECT * FROM `shop-project.shop.users` WHERE id = 1")
    seen = dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC)
    assert outcome.rows == ((1, "Ada", Decimal("1.50"), seen),), outcome.error
    (row,) = db.execute("SELECT * FROM events LIMIT 1").rows
    assert row == (
        dt.date(2024, 1, 5),
        (("category", "phone"), ("web", (("browser", "ff"),))),
        ((("key", "page"), ("n", 1)), (("key", "ref"), ("n", 2))),
        ("x", "y"),
        b"ab",
    )
    hash(row)


def test_a_dry_run_comes_first_and_the_job_is_capped_and_labelled(
    db: BigQueryDatabase, server: BigQueryServer
) -> None:
    server.sizes["users"] = 2 * GIGABYTE
    before = len(server.configurations)
    assert db.execute("SELECT name FROM users").status is Status.OK
    dry, job = server.configurations[before:]
    assert dry["dryRun"] is True
    assert "dryRun" not in job
    for configuration in (dry, job):
        assert configuration["query"]["useLegacySql"] is False
        assert configuration["labels"]["app"] == "lynx"
        assert "queryParameters" not in configuration["query"]
    assert job["query"]["maximumBytesBilled"] == str(10 * GIGABYTE)
    assert 0 < int(job["jobTimeoutMs"]) <= 30_000
    assert db.scanned == 2 * GIGABYTE


def test_above_the_cap_nothing_runs_and_both_figures_are_told(
    db: BigQueryDatabase, server: BigQueryServer
) -> None:
    server.sizes["users"] = 20 * GIGABYTE
    jobs = len(server.jobs)
    outcome = db.execute("SELECT name FROM users WHERE id > 0")
    assert outcome.status is Status.BLOCKED
    assert "20 GB (about $0.11)" in outcome.error
    assert "may scan 10 GB" in outcome.error
    assert "max_scan" in outcome.error
    assert len(server.jobs) == jobs
    (finding,) = db.dry_run("SELECT name FROM users WHERE id > 0")
    assert "20 GB" in finding.message


def test_a_table_that_grew_after_the_dry_run_is_still_capped(
    db: BigQueryDatabase, server: BigQueryServer
) -> None:
    code = "SELECT name FROM users WHERE id > 1"
    assert db.dry_run(code) == ()
    server.sizes["users"] = 20 * GIGABYTE
    assert db.execute(code).status is Status.BLOCKED


@pytest.mark.parametrize(
    "code",
    ["DROP TABLE users", "DELETE FROM users WHERE TRUE", "CREATE TABLE x AS SELECT 1 AS a"],
)
def test_past_the_guard_the_dry_run_still_stops_what_is_no_select(
    db: BigQueryDatabase, server: BigQueryServer, code: str
) -> None:
    jobs = len(server.jobs)
    outcome = db._execute(code, Limits())
    assert outcome.status is Status.BLOCKED
    assert "only a SELECT may run" in outcome.error
    assert len(server.jobs) == jobs


def test_a_runaway_job_is_cancelled_on_the_server(
    db: BigQueryDatabase, server: BigQueryServer
) -> None:
    started = time.perf_counter()
    outcome = db.execute(ENDLESS, Limits(timeout_seconds=1.0))
    assert outcome.status is Status.TIMEOUT
    assert time.perf_counter() - started < 3
    assert settle(server) == 0
    assert db.execute("SELECT 1 AS a").rows == ((1,),)


def test_rows_come_page_by_page_up_to_the_cap(db: BigQueryDatabase) -> None:
    outcome = db.execute("SELECT n FROM UNNEST(GENERATE_ARRAY(1, 5000)) AS n ORDER BY n")
    assert len(outcome.rows) == 5000
    assert not outcome.truncated
    few = db.execute("SELECT n FROM UNNEST(GENERATE_ARRAY(1, 50)) AS n", Limits(max_rows=7))
    assert (len(few.rows), few.truncated) == (7, True)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("SELECT nope FROM users", FailureClass.SCHEMA),
        ("SELECT * FROM nope", FailureClass.SCHEMA),
        ("SELECT no_such_function(1)", FailureClass.SYNTAX),
        ("SELECT id, id FROM users", FailureClass.SYNTAX),
        ("SELECT CAST(name AS INT64) FROM users", FailureClass.SEMANTIC),
    ],
)
def test_errors_are_classified(db: BigQueryDatabase, code: str, expected: FailureClass) -> None:
    outcome = db.execute(code)
    assert outcome.failure_class is expected, outcome
    assert "http" not in outcome.error


@pytest.mark.parametrize(
    ("status", "reason", "message", "expected"),
    [
        (403, "accessDenied", "Access Denied: Project p: no bigquery.jobs.create", "unavailable"),
        (403, "accessDenied", "Access Denied: Table p:d.t: or perhaps it does not exist", "error"),
        (403, "quotaExceeded", "Quota exceeded: too many bytes", "unavailable"),
        (401, "authError", "Invalid Credentials", "unavailable"),
        (400, "bytesBilledLimitExceeded", "Query exceeded limit for bytes billed: 1", "blocked"),
        (400, "resourcesExceeded", "Resources exceeded during query execution", "error"),
    ],
)
def test_what_is_not_the_programs_fault_is_unavailable(
    db: BigQueryDatabase,
    server: BigQueryServer,
    status: int,
    reason: str,
    message: str,
    expected: str,
) -> None:
    server.fault = Refused(status, reason, message)
    try:
        assert db.execute(f"SELECT '{reason}{status}' AS a").status == expected
    finally:
        server.fault = None
    assert db.execute(f"SELECT '{reason}{status}' AS a").status is Status.OK


def test_the_schema_has_nested_fields_full_names_and_samples_that_cost_nothing(
    db: BigQueryDatabase, server: BigQueryServer
) -> None:
    server.sizes |= {"users": 10**15, "events": 10**15, "named": 10**15}
    before, listings = len(server.jobs), server.listings
    found = abstract(db)
    assert len(server.jobs) == before
    assert server.listings == listings + 2
    events = found.table("events")
    assert events is not None
    assert events.parts == ("shop-project", "shop", "events")
    types = {column.name: column.type for column in events.columns}
    assert types["device"] == "STRUCT"
    assert types["device.web.browser"] == "STRING"
    assert (types["params"], types["params.n"], types["tags"]) == (
        *("ARRAY<STRUCT>", "INT64", "ARRAY<STRING>"),
    )
    samples = {column.name: column.samples for column in events.columns}
    assert set(samples["params.key"]) == {"'page'", "'ref'"}
    assert samples["device.web.browser"] == ("'ff'",)
    assert samples["device"] == ()
    named = found.table("named")
    assert named is not None and named.is_view
    program = "SELECT e.device.web.browser, p.key FROM `shop-project.shop.events` AS e, "
    assert not has_errors(check(f"{program} UNNEST(e.params) AS p", found))
    assert check("SELECT device.brand FROM `shop-project.shop.events`", found)


def test_other_queries_of_this_package_are_capped(
    db: BigQueryDatabase, server: BigQueryServer
) -> None:
    sql = "SELECT COUNT(DISTINCT `id`) FROM `shop-project`.`shop`.`users` WHERE `id` IN (?, ?)"
    assert db.query(sql, (1, 5)) == [(1,)]
    server.sizes["users"] = GIGABYTE
    with pytest.raises(DatabaseError, match="sample_scan is 100 MB"):
        db.query(sql, (1, 5))


def _record(name: str, **more: object) -> bigquery.Table:
    reference = {"projectId": "p", "datasetId": "d", "tableId": name}
    fields = [
        {"name": "id", "type": "INTEGER", "mode": "REQUIRED"},
        {"name": "o", "type": "STRING"},
    ]
    record = {"tableReference": reference, "schema": {"fields": fields}, "type": "TABLE", **more}
    return bigquery.Table.from_api_repr(record)


def test_keys_partitions_and_clustering_are_read() -> None:
    key = {
        "name": "k",
        "referencedTable": {"projectId": "p", "datasetId": "d", "tableId": "owner"},
        "columnReferences": [{"referencingColumn": "o", "referencedColumn": "id"}],
    }
    owner = _record("owner", tableConstraints={"primaryKey": {"columns": ["id"]}}, numRows="5")
    events = _record(
        "events",
        description="clicks",
        tableConstraints={"foreignKeys": [key]},
        timePartitioning={"type": "DAY", "field": "day"},
        clustering={"fields": ["o"]},
        requirePartitionFilter=True,
    )
    found = schema([owner, events], "d")
    assert found.tables[0].primary_key == ("id",)
    assert found.tables[0].row_count == 5
    assert found.foreign_keys == (ForeignKey("events", ("o",), "owner", ("id",)),)
    assert found.tables[1].description == (
        "clicks. Partitioned by day (DAY); a filter on it is required. Clustered by o."
    )


def test_tables_of_days_fold_into_one_unit() -> None:
    found = schema([_record(f"events_202401{day:02}") for day in range(1, 29)], "d")
    assert len(found.tables) == 28
    assert len(folded(found).schema.tables) == 1


def test_types_are_spelled_as_programs_spell_them() -> None:
    kinds = [
        *(bigquery.SchemaField("a", "NUMERIC", precision=10, scale=2),),
        *(bigquery.SchemaField("b", "STRING", max_length=9), bigquery.SchemaField("c", "FLOAT")),
        bigquery.SchemaField("d", "RANGE", range_element_type="DATE"),
    ]
    types = [column.type for kind in kinds for column in columns(kind)]
    assert types == ["NUMERIC(10, 2)", "STRING(9)", "FLOAT64", "RANGE<DATE>"]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("bigquery://", "names no project"),
        ("bigquery://p/d/t", "names no project"),
        ("bigquery://p?password=x", "environment"),
        ("bigquery://p?max_scan=much", "not a size"),
        ("bigquery://p?price=-1", "not a number"),
        ("bigquery://p?locaton=EU", "Did you mean 'location'"),
        ("bigquery://me:secret@p/d", "No user or password"),
    ],
)
def test_a_wrong_address_says_what_is_wrong(server: BigQueryServer, url: str, says: str) -> None:
    with pytest.raises(LynxError, match=says) as error:
        connect(url)
    assert "secret" not in str(error.value)


def test_a_dataset_that_is_not_there_is_an_error_of_one_line(server: BigQueryServer) -> None:
    with connect("bigquery://shop-project/other") as database:
        with pytest.raises(DatabaseError, match="Not found: Dataset") as error:
            database.introspect()
        assert "\n" not in str(error.value)
        with pytest.raises(DatabaseError):
            database.fingerprint()


def test_the_fingerprint_is_of_the_tables(server: BigQueryServer) -> None:
    with connect("bigquery://shop-project") as first:
        told = first.fingerprint()
    server.duckdb.execute("CREATE TABLE late AS SELECT 1 AS a")
    with connect("bigquery://shop-project") as second:
        assert second.fingerprint() != told
    server.duckdb.execute("DROP TABLE late")

"""Runs that hang are left in time, told to stop, and their errors reach the caller."""

from __future__ import annotations

import threading
import time

import pytest

from lynx_dspy.engines.bounded import Run, bounded
from lynx_dspy.engines.bounded_reads import bounded_read
from lynx_dspy.engines.cloud_address import client, parse, parse_size
from lynx_dspy.errors import DatabaseError, LynxError, UnknownName
from lynx_dspy.progress import listen, report
from lynx_dspy.values import Outcome, Status


def test_a_client_that_hangs_is_left_and_cancelled() -> None:
    cancelled, end = threading.Event(), threading.Event()

    def work(run: Run) -> Outcome:
        run.cancel = cancelled.set
        end.wait(10)
        return Outcome(Status.OK)

    started = time.perf_counter()
    outcome = bounded(work, 0.1)
    end.set()
    assert outcome.status is Status.TIMEOUT
    assert cancelled.wait(1)
    assert time.perf_counter() - started < 2


def test_what_is_done_in_time_is_given_with_the_callers_listener() -> None:
    heard: list[str] = []

    def work(run: Run) -> Outcome:
        report("engine", f"{run.remaining > 0}")
        return Outcome(Status.OK, rows=((1,),))

    with listen(lambda stage, text: heard.append(text)):
        assert bounded(work, 5).rows == ((1,),)
    assert heard == ["True"]


def test_an_error_of_the_client_is_raised_here() -> None:
    def work(run: Run) -> Outcome:
        raise ConnectionResetError("gone")

    with pytest.raises(ConnectionResetError, match="gone"):
        bounded(work, 5)


def test_rows_stop_when_time_is_over() -> None:
    run = Run(1.0)
    rows = run.watched(iter(range(10)))
    assert next(rows) == 0
    run.expired.set()
    assert list(rows) == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM t LIMIT 5",
        "SELECT a FROM t",
        "SELECT a FROM t WHERE b = 1 LIMIT 5",
        "SELECT a FROM t JOIN u LIMIT 5",
        "SELECT DISTINCT a FROM t LIMIT 5",
        "SELECT a FROM t ORDER BY a LIMIT 5",
        "SELECT SUBSTR(a, 2, 5) FROM t LIMIT 5",
        "SELECT FROM",
    ],
)
def test_only_the_first_rows_of_one_table_are_a_bounded_read(sql: str) -> None:
    assert bounded_read(sql, "bigquery") is None


def test_a_bounded_read_is_done_as_the_query_would_be() -> None:
    records = [
        {"a": "long text", "b": [{"k": 1}, {"k": 2}]},
        {"a": None, "b": [{"k": 1}, {"k": 2}]},
    ]
    read = bounded_read("SELECT SUBSTR(`a`, 1, 4), `b.k`, `b` FROM `p`.`d`.`t` LIMIT 2", "bigquery")
    assert read is not None
    assert (read.table, read.tops, read.rows) == (("p", "d", "t"), ("a", "b"), 2)
    assert read.of(records) == [("long", 1, None), (None, 2, None)]
    inner = "(SELECT `a` AS v FROM `p`.`d`.`t` LIMIT 100) AS s"
    codes = bounded_read(f"SELECT DISTINCT v FROM {inner} LIMIT 3", "bigquery")
    assert codes is not None
    assert codes.of([{"a": n % 5} for n in range(20)]) == [(0,), (1,), (2,)]


def test_sizes_and_secrets_of_addresses() -> None:
    assert parse_size("2TiB") == 2 * 2**40
    assert parse_size("750 mb") == 750_000_000
    with pytest.raises(DatabaseError, match="not a size"):
        parse_size("-1GB")
    for secret in ("?pwd=hidden", "?api_token=hidden", "?privateKey=hidden"):
        with pytest.raises(DatabaseError, match="environment") as error:
            parse(f"//a/b{secret}", ("x",), "a://B")
        assert "hidden" not in str(error.value)
    with pytest.raises(UnknownName):
        parse("//a/b?y=1", ("x",), "a://B")


def test_a_missing_client_names_its_extra() -> None:
    with pytest.raises(LynxError, match=r"pip install 'lynx-dspy\[thing\]'"):
        client("no_such_module_of_lynx", "thing")

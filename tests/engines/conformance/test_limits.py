"""Limits hold: time, rows, cells, bytes; and the connection works afterwards."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conformance.kit import Adapter

from lynx_dspy.engines.base import Database
from lynx_dspy.values import Limits, Status

_SLACK_SECONDS = 2.0
"""A stopped program answers within this; a busy machine may take most of it."""


def _works(database: Database) -> bool:
    return database.execute("SELECT COUNT(*) FROM orders").rows == ((3,),)


@pytest.mark.capability("timeouts")
def test_a_runaway_program_is_stopped(adapter: Adapter, database: Database) -> None:
    assert _works(database)
    started = time.perf_counter()
    outcome = database.execute(adapter.endless, Limits(timeout_seconds=0.5))
    assert outcome.status is Status.TIMEOUT, outcome.error
    assert "0.5 s" in outcome.error
    assert time.perf_counter() - started < 0.5 + _SLACK_SECONDS
    assert _works(database)


@pytest.mark.capability("server cancel")
def test_the_server_stops_working_on_it_too(adapter: Adapter, database: Database) -> None:
    runner = threading.Thread(
        target=database.execute, args=(adapter.endless, Limits(timeout_seconds=1.5))
    )
    runner.start()
    end = time.monotonic() + 5
    while not adapter.busy() and time.monotonic() < end:
        time.sleep(0.05)
    assert adapter.busy() == 1
    runner.join()
    end = time.monotonic() + _SLACK_SECONDS
    while adapter.busy() and time.monotonic() < end:
        time.sleep(0.05)
    assert adapter.busy() == 0


@pytest.mark.capability("row cap")
def test_rows_are_capped(adapter: Adapter, database: Database) -> None:
    outcome = database.execute(adapter.thousands, Limits(max_rows=7))
    assert [row[0] for row in outcome.rows] == [1, 2, 3, 4, 5, 6, 7]
    assert outcome.truncated
    assert _works(database)


@pytest.mark.capability("row cap")
def test_as_many_rows_as_are_allowed_are_not_truncated(
    adapter: Adapter, database: Database
) -> None:
    outcome = database.execute("SELECT id FROM orders", Limits(max_rows=3))
    assert (len(outcome.rows), outcome.truncated) == (3, False)


@pytest.mark.capability("cell cap")
def test_cells_are_clipped(adapter: Adapter, database: Database) -> None:
    outcome = database.execute(adapter.long_text, Limits(max_cell_chars=10))
    assert outcome.rows == (("x" * 10,),), outcome.error
    assert outcome.truncated


@pytest.mark.capability("byte cap")
def test_bytes_are_capped(adapter: Adapter, database: Database) -> None:
    outcome = database.execute(adapter.thousands, Limits(max_rows=50_000, max_bytes=3_200))
    assert 10 <= len(outcome.rows) <= 200
    assert outcome.truncated
    assert _works(database)


@pytest.mark.capability("threads")
def test_threads_share_a_connection(adapter: Adapter, database: Database) -> None:
    def ask(number: int) -> tuple[tuple[object, ...], ...]:
        return database.execute(f"SELECT {number} + COUNT(*) FROM orders").rows

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(ask, range(12))) == [((n + 3,),) for n in range(12)]

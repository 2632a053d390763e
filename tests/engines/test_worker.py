"""Worker processes that fail to start, die, or are asked from many threads."""

import sqlite3
import sys
import threading
from pathlib import Path

import pytest

from lynx_dspy.engines.sqlite_file import open_file
from lynx_dspy.engines.worker import Pool, WorkerDied, WorkerError
from lynx_dspy.values import Limits, Status

MODULE = "lynx_dspy.engines.sqlite_worker"
ENDLESS = "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT 1 FROM r) SELECT count(*) FROM r"


@pytest.fixture
def path(tmp_path: Path) -> Path:

    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()
    open_file(tmp_path / "a.db").close()
    return tmp_path / "a.db"


def test_a_module_that_does_not_run_is_an_error() -> None:
    with pytest.raises(WorkerError, match="ended while it opened"):
        Pool("lynx_dspy.engines.no_such_module", None).ask(("execute",), 1)


def test_a_missing_python_is_an_error(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(WorkerError, match="cannot start"):
        Pool(MODULE, path).ask(("execute", "SELECT 1", Limits()), 1)


def test_a_silent_worker_is_killed_and_replaced(path: Path) -> None:
    pool = Pool(MODULE, path)
    with pytest.raises(WorkerDied) as death:
        pool.ask(("execute", ENDLESS, Limits(timeout_seconds=60)), 0.3)
    assert death.value.expired
    assert pool.idle == ()
    assert pool.ask(("execute", "SELECT 1", Limits()), 5).rows == ((1,),)
    pool.close()


def test_a_request_of_an_unknown_name_ends_the_worker_only(path: Path) -> None:
    pool = Pool(MODULE, path)
    with pytest.raises(WorkerDied):
        pool.ask(("no_such_service",), 5)
    assert pool.ask(("execute", "SELECT 1", Limits()), 5).status is Status.OK
    pool.close()


def test_a_slow_program_does_not_hold_up_another_thread(path: Path) -> None:
    pool = Pool(MODULE, path)
    pool.ask(("execute", "SELECT 1", Limits()), 5)
    slow = threading.Thread(
        target=pool.ask, args=(("execute", ENDLESS, Limits(timeout_seconds=1.5)), 3)
    )
    slow.start()
    assert pool.ask(("execute", "SELECT 1", Limits()), 5).status is Status.OK
    assert slow.is_alive()
    slow.join()
    assert len(pool.idle) == 2
    pool.close()
    pool.close()
    assert pool.idle == ()
    with pytest.raises(WorkerError, match="closed"):
        pool.ask(("execute", "SELECT 1", Limits()), 5)

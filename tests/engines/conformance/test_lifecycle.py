"""Servers restart, stop, and never tell a password; connections come back by themselves."""

from __future__ import annotations

import copy
import time
import traceback

import pytest
from conformance.kit import Adapter

import lynx_dspy as lynx
from lynx_dspy.engines.base import Database
from lynx_dspy.errors import DatabaseError
from lynx_dspy.values import Status

_COUNT = "SELECT COUNT(*) FROM orders"


def _fingerprint(adapter: Adapter) -> str:
    """As a new connection sees it; servers note what changed up to a second later."""
    with adapter.connect() as database:
        return database.fingerprint()


@pytest.mark.capability("fingerprint")
def test_the_fingerprint_changes_with_the_data(adapter: Adapter) -> None:
    with adapter.connect() as before:
        first = before.fingerprint()
    with adapter.connect() as same:
        assert same.fingerprint() == first
    adapter.load(["INSERT INTO customers VALUES (50, 'Cy')"])
    try:
        end = time.monotonic() + 5
        while _fingerprint(adapter) == first and time.monotonic() < end:
            time.sleep(0.2)
        assert _fingerprint(adapter) != first
    finally:
        adapter.load(["DELETE FROM customers WHERE id = 50"])


@pytest.mark.capability("copies")
def test_a_copy_is_the_same_database(adapter: Adapter, database: Database) -> None:
    assert copy.deepcopy(database) is database


@pytest.mark.capability("reconnect")
def test_it_reconnects_after_a_restart(adapter: Adapter) -> None:
    with adapter.connect() as database:
        assert database.execute(_COUNT).rows == ((3,),)
        adapter.restart()
        assert database.execute(_COUNT).rows == ((3,),)
        assert database.query(_COUNT) == [(3,)]


@pytest.mark.capability("unavailable")
def test_a_stopped_server_is_unavailable_and_not_the_programs_fault(adapter: Adapter) -> None:
    with adapter.connect() as database:
        assert database.execute(_COUNT).rows == ((3,),)
        adapter.halt()
        try:
            outcome = database.execute(_COUNT)
            assert outcome.status is Status.UNAVAILABLE
            assert outcome.error and outcome.failure_class is None
            with pytest.raises(DatabaseError):
                database.query(_COUNT)
            with pytest.raises(DatabaseError, match=r"127\.0\.0\.1"):
                adapter.connect()
        finally:
            adapter.resume()
        assert database.execute(_COUNT).rows == ((3,),)


@pytest.mark.capability("secrets")
def test_no_password_is_ever_shown(adapter: Adapter, database: Database) -> None:
    url, secret = adapter.url(), adapter.secret()
    wrong = [
        url.replace("lynx_reader", "nobody_known"),
        url.rsplit("/", 1)[0] + "/no_such_database",
        url.replace("127.0.0.1", "no-such-host.invalid"),
    ]
    told = [database.url, repr(database), str(vars(database)), database.name]
    for address in wrong:
        with pytest.raises(DatabaseError) as error:
            lynx.connect(address)
        told += [str(error.value), "".join(traceback.format_exception(error.value))]
        assert "\n" not in str(error.value)
    told.append(database.execute(f"SELECT '{secret}' FROM no_such_table").error)
    with pytest.raises(DatabaseError) as error:
        database.query(f"SELECT '{secret}' FROM no_such_table")
    told.append(str(error.value))
    for text in told:
        assert secret not in text
        assert url.split("@")[0].rsplit(":", 1)[1] not in text

"""What is particular to a kind of server: how to read only, to stop, and to read its catalogue.

Each kind is one `Vendor` in a file of its own; what SQLAlchemy alone knows is `vendor_generic`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import SQLAlchemyError

from lynx_dspy.engines.server_address import Address
from lynx_dspy.values import Finding, Limits, Row, Schema

Query = Callable[[str], list[Row]]
Result = tuple[tuple[str, ...], Iterator[Row]]
Run = Callable[[Connection, str], AbstractContextManager[Result]]

BATCH = 64
"""Rows that travel at a time."""

_MODULES = {
    "postgresql": "lynx_dspy.engines.postgres",
    "mysql": "lynx_dspy.engines.mariadb",
    "mariadb": "lynx_dspy.engines.mariadb",
}
_GENERIC = "lynx_dspy.engines.server_generic"


class NoRows(Exception):
    """The statement gives no table, so it was no query."""


@contextmanager
def streamed(connection: Connection, code: str) -> Iterator[Result]:
    """Column names and rows of a query, read from the server as they are asked for."""
    options = {"stream_results": True, "max_row_buffer": BATCH, "no_parameters": True}
    result = connection.exec_driver_sql(code, execution_options=options)
    if not result.returns_rows or result.cursor is None:
        raise NoRows
    columns = tuple(str(column[0]) for column in result.cursor.description)
    yield columns, (tuple(row) for row in result)


@dataclass(frozen=True, slots=True)
class Vendor:
    """One kind of server.

    `opening` runs on each new connection, `begin(limits)` before each program: a transaction that
    reads only, with the time limit on the server. `identify` asks for a connection's number, with
    which `cancel` stops its statement from another connection. With `cursors` a result may be left
    before its end; else the rest would have to be read. `message(error)` is a driver's error
    as `failures` classes it. `explain(run, code)` is what the planner holds against a program.
    """

    name: str
    begin: Callable[[Limits], tuple[str, ...]]
    message: Callable[[BaseException], str]
    introspect: Callable[[Engine, Query, str], Schema]
    opening: tuple[str, ...] = ()
    identify: str = ""
    cancel: str = ""
    stamp: str = ""
    run: Run = streamed
    cursors: bool = False
    explain: Callable[[Run, Connection, str], tuple[Finding, ...]] | None = None
    autocommit: bool = True


def vendor(address: Address) -> Vendor:
    """The vendor of an address."""
    return cast(Vendor, import_module(_MODULES.get(address.kind, _GENERIC)).VENDOR)


def engine(address: Address, size: int) -> Engine:
    """A pool of at most `size` prepared connections; nothing is connected yet."""
    kind = vendor(address)
    url, given = address.options()
    level: dict[str, Any] = {"isolation_level": "AUTOCOMMIT"} if kind.autocommit else {}
    made = create_engine(
        url, connect_args=given, pool_size=size, max_overflow=0, hide_parameters=True, **level
    )

    @event.listens_for(made, "connect")
    def prepare(connection: Any, record: object) -> None:
        if made.driver == "pg8000":  # its time limit to connect would hold for each answer too
            connection._usock.settimeout(None)
        cursor = connection.cursor()
        for statement in kind.opening:
            cursor.execute(statement)
        cursor.close()

    return made


def failures(made: Engine) -> tuple[type[Exception], ...]:
    """What may go wrong while a server is spoken to."""
    driver = cast(type[Exception], made.dialect.loaded_dbapi.Error)
    return SQLAlchemyError, driver, OSError, MemoryError, ValueError, OverflowError, struct.error


def begun(made: Engine, kind: Vendor, limits: Limits) -> Connection:
    """A connection in a new read-only transaction; old connections that broke are replaced.

    Raises one of `failures` if the server cannot be reached.
    """
    try:
        return _begun(made, kind, limits)
    except failures(made):
        made.dispose()
        return _begun(made, kind, limits)


def _begun(made: Engine, kind: Vendor, limits: Limits) -> Connection:
    connection = made.connect()
    try:
        for statement in kind.begin(limits):
            connection.exec_driver_sql(statement)
    except BaseException:  # whatever ends it, Ctrl-C too: no half-begun session stays open
        connection.invalidate()
        connection.close()
        raise
    return connection


def ended(connection: Connection, kind: Vendor) -> None:
    """Give the connection back, its transaction undone."""
    if not connection.invalidated:
        if kind.autocommit:
            connection.exec_driver_sql("ROLLBACK")
        else:
            connection.rollback()
    connection.close()

"""The process in which a server's driver runs programs; `sqlalchemy.py` starts it and talks to it.

Why a process: the server does the work, but the driver unpacks what it sends. One cell of
PostgreSQL may hold 1 GB, and a driver that hangs cannot be stopped from within. A program is
stopped three times over: by the server's own time limit, by a cancel from a second connection, and
by a kill of this process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from lynx_dspy.engines.failures import failed, timed_out
from lynx_dspy.engines.limits import collect, deadline
from lynx_dspy.engines.serve import Services, serve
from lynx_dspy.engines.server_address import Address
from lynx_dspy.engines.vendors import NoRows, begun, ended, engine, failures, vendor
from lynx_dspy.values import Finding, Limits, Outcome, Status

_NUMBER = "lynx-connection-number"


@dataclass(frozen=True, slots=True)
class Setup:
    """Which server to connect to."""

    address: Address = field(repr=False)


class Session:
    """One connection that runs programs, and one beside it that stops them."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._vendor = vendor(address)
        self._engine = engine(address, 1)
        self._beside = engine(address, 1)
        self._failures = failures(self._engine)
        ended(begun(self._engine, self._vendor, Limits()), self._vendor)

    def execute(self, code: str, limits: Limits) -> Outcome:
        """Run one untrusted query."""
        run = partial(self._run, code, limits)
        return self._within(limits, run)

    def explain(self, code: str, limits: Limits) -> tuple[Finding, ...]:
        """What the planner holds against a query; nothing where it cannot be asked."""
        ask = self._vendor.explain
        if ask is None:
            return ()
        found: list[Finding] = []

        def run(connection: Connection) -> Outcome:
            found.extend(ask(self._vendor.run, connection, code))
            return Outcome(Status.OK)

        outcome = self._within(limits, run)
        if outcome.status is Status.ERROR and outcome.failure_class is not None:
            return (Finding(outcome.failure_class, outcome.error),)
        return tuple(found)

    def _within(self, limits: Limits, run: Callable[[Connection], Outcome]) -> Outcome:
        started = time.perf_counter()
        try:
            connection = begun(self._engine, self._vendor, limits)
            stop = self._stopper(connection)
        except self._failures as error:
            return self._failed(error, started, lost=True)
        with deadline(limits.timeout_seconds, stop) as expired:
            try:
                outcome = run(connection)
            except NoRows:
                outcome = Outcome(Status.BLOCKED, error="only a query may run; this gives no table")
            except self._failures as error:
                outcome = self._failed(error, started)
        if expired.is_set() or outcome.status is Status.TIMEOUT:
            outcome = timed_out(limits.timeout_seconds, time.perf_counter() - started)
        self._give_back(connection, spoiled=outcome.status not in _CLEAN or expired.is_set())
        return outcome

    def _run(self, code: str, limits: Limits, connection: Connection) -> Outcome:
        started = time.perf_counter()
        with self._vendor.run(connection, code) as (columns, rows):
            kept, truncated = collect(rows, limits)
            if truncated and not self._vendor.cursors and next(rows, None) is not None:
                self._stopper(connection)()
                connection.invalidate()
        status = Status.OK if kept else Status.EMPTY
        seconds = time.perf_counter() - started
        return Outcome(status, columns, kept, truncated, seconds=seconds)

    def _stopper(self, connection: Connection) -> Callable[[], None]:
        """Stops what `connection` does, from the second connection; does nothing if it cannot."""
        kind = self._vendor
        if not kind.cancel:
            return lambda: None
        known = connection.info
        if _NUMBER not in known:
            known[_NUMBER] = int(connection.exec_driver_sql(kind.identify).scalar_one())
        number = known[_NUMBER]

        def stop() -> None:
            with suppress(*self._failures), self._beside.connect() as beside:
                beside.exec_driver_sql(kind.cancel.format(number))

        return stop

    def _give_back(self, connection: Connection, spoiled: bool) -> None:
        """A connection that was stopped is not used again: the stop may still be on its way."""
        if spoiled and not connection.invalidated:
            connection.invalidate()
        with suppress(*self._failures):
            ended(connection, self._vendor)

    def _failed(self, error: Exception, started: float, lost: bool = False) -> Outcome:
        message = self._address.clean(self._vendor.message(error)) or type(error).__name__
        seconds = time.perf_counter() - started
        outcome = failed(self._vendor.name, message, seconds)
        gone = isinstance(error, OSError) or getattr(error, "connection_invalidated", False)
        if (lost or gone) and outcome.status is not Status.TIMEOUT:
            return Outcome(Status.UNAVAILABLE, error=outcome.error, seconds=seconds)
        return outcome


_CLEAN = (Status.OK, Status.EMPTY, Status.ERROR, Status.BLOCKED)


def _prepare(setup: Setup) -> Services:
    try:
        session = Session(setup.address)
    except (SQLAlchemyError, OSError) as error:
        kind = vendor(setup.address)
        raise ConnectionError(setup.address.clean(kind.message(error))) from None
    return {"execute": session.execute, "explain": session.explain}


if __name__ == "__main__":
    serve(_prepare, (SQLAlchemyError, OSError, MemoryError, ValueError))

"""Database servers through SQLAlchemy, read-only on four levels.

The account's own rights (`docs/how-to/servers.md`), a transaction that reads only, a cursor that
takes queries only, and the guard. Programs run in processes of their own (`server_worker`), the
package's own queries in this one. Arrays come as tuples, JSON as text.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import text

from lynx_dspy.engines.failures import one_line
from lynx_dspy.engines.guard import refusal
from lynx_dspy.engines.pooled import PooledDatabase
from lynx_dspy.engines.server_address import address
from lynx_dspy.engines.server_worker import Setup
from lynx_dspy.engines.vendors import begun, ended, engine, failures, vendor
from lynx_dspy.engines.worker import Pool, WorkerDied, WorkerError
from lynx_dspy.errors import DatabaseError
from lynx_dspy.values import Finding, Limits, Outcome, Row, Schema, Status

_MODULE = "lynx_dspy.engines.server_worker"
_CONNECTIONS = 4
_OWN_QUERIES = Limits(timeout_seconds=60.0, max_rows=1_000_000)
_EXPLAIN_SECONDS = 5.0
_FRESH_SECONDS = 60.0
_MARKS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\?|:""")


class ServerDatabase(PooledDatabase):
    """One database of a server. Raises `DatabaseError` if it cannot be reached.

    What is stored is taken as unchanged for `fresh_seconds` after it was looked at: on a server
    that is written to all day, each question would else read the catalogue and samples anew.
    """

    def __init__(self, url: str, fresh_seconds: float = _FRESH_SECONDS) -> None:
        self._address = address(url)
        self.url, self.name = self._address.shown, self._address.name
        self.dialect = self._address.dialect
        self._vendor = vendor(self._address)
        self._engine = engine(self._address, _CONNECTIONS)
        self._failures = failures(self._engine)
        self._files = ()
        self._pool = Pool(_MODULE, Setup(self._address))
        self._fresh_seconds = fresh_seconds
        self._stamp, self._stamped = "", float("-inf")
        self.query("SELECT 1" + (" FROM dual" if self._address.kind == "oracle" else ""))

    def introspect(self) -> Schema:
        try:
            return self._vendor.introspect(self._engine, self.query, self.name)
        except self._failures as error:
            raise self._error(error, "its catalogue") from None

    def execute(self, code: str, limits: Limits | None = None) -> Outcome:
        """As the base says; a program that takes too long is told from a server that is gone."""
        outcome = super().execute(code, limits)
        if outcome.status is Status.TIMEOUT and not self._answers():
            return Outcome(Status.UNAVAILABLE, error=f"{self.url} does not answer")
        return outcome

    def dry_run(self, code: str) -> tuple[Finding, ...]:
        """The planner's own word (EXPLAIN): errors, and plans that would pass too many rows."""
        if self._vendor.explain is None or refusal(code, self.dialect):
            return ()
        limits = Limits(timeout_seconds=_EXPLAIN_SECONDS)
        try:
            found: tuple[Finding, ...] = self._pool.ask(
                ("explain", code, limits), 2 * _EXPLAIN_SECONDS
            )
        except (WorkerDied, WorkerError):
            return ()
        return found

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        try:
            connection = begun(self._engine, self._vendor, _OWN_QUERIES)
            try:
                if parameters:
                    named = {f"p{i}": value for i, value in enumerate(parameters)}
                    result = connection.execute(text(_named(sql)), named)
                else:
                    options = {"no_parameters": True}
                    result = connection.exec_driver_sql(sql, execution_options=options)
                return [tuple(row) for row in result]
            finally:
                ended(connection, self._vendor)
        except self._failures as error:
            raise self._error(error, one_line(sql)) from None

    def fingerprint(self) -> str:
        now = time.monotonic()
        if now - self._stamped > self._fresh_seconds:
            told = self.query(self._vendor.stamp) if self._vendor.stamp else now
            self._stamp = hashlib.sha256(repr(told).encode()).hexdigest()[:32]
            self._stamped = now
        return self._stamp

    def close(self) -> None:
        self._pool.close()
        self._engine.dispose()

    def _answers(self) -> bool:
        try:
            self.query("SELECT 1")
        except DatabaseError:
            return False
        return True

    def _error(self, error: Exception, asked: str) -> DatabaseError:
        message = one_line(self._address.clean(self._vendor.message(error)))
        return DatabaseError(f"{self.url}: {message} (in {self._address.clean(asked)})")


def _named(sql: str) -> str:
    r"""`?` as SQLAlchemy's named parameters; signs in quotes stay, colons are escaped.

    >>> _named("SELECT \"a?:b\" FROM t WHERE a IN (?, ?)")
    'SELECT "a?\\:b" FROM t WHERE a IN (:p0, :p1)'
    """
    numbers = iter(range(len(sql)))

    def replaced(match: re.Match[str]) -> str:
        if match[0] == "?":
            return f":p{next(numbers)}"
        return match[0].replace(":", "\\:")

    return _MARKS.sub(replaced, sql)

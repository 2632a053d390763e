"""Spark SQL, in this process, on a cluster or through Spark Connect.

    spark:FOLDER            a session of this machine; each file or folder of files is a table
    spark://HOST:7077       a standalone cluster, with the catalogue that it is configured for
    sc://HOST:15002         Spark Connect; its token is SPARK_CONNECT_AUTHENTICATE_TOKEN

Options: `database=NAME` (else all of the catalogue), `catalog=NAME`. Spark has no read-only mode,
so a program is parsed and planned as a sub-query before it runs: only a query can stand there.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lynx_dspy.engines import cloud_failures
from lynx_dspy.engines.bounded import Run, bounded
from lynx_dspy.engines.cloud import CloudDatabase
from lynx_dspy.engines.cloud_address import client, parse
from lynx_dspy.engines.cloud_guard import bare
from lynx_dspy.engines.failures import one_line
from lynx_dspy.engines.limits import collect
from lynx_dspy.engines.spark_files import register, stamp
from lynx_dspy.engines.spark_schema import schema, table_names
from lynx_dspy.engines.spark_values import plain_rows
from lynx_dspy.errors import DatabaseError
from lynx_dspy.paths import expanded
from lynx_dspy.values import Limits, Outcome, Row, Schema, Status

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OPTIONS = ("database", "catalog")
SHAPE = "spark:FOLDER, spark://HOST:7077 or sc://HOST:15002"
QUERY_SECONDS = 60.0
"""What a query of this package may take: samples and names."""

_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
}
_EVERYWHERE = {"spark.ui.showConsoleProgress": "false", "spark.app.name": "lynx"}
_OF_A_SESSION = {"spark.sql.session.timeZone": "UTC", "spark.sql.runSQLOnFiles": "false"}
"""Times are in UTC, and `csv.`path`` is no table."""

_OPEN_SECONDS = 30.0
_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
_SCRIPT = re.compile(r"^[\s:+\-!*()\d]*\w*ScriptTransformation\b", re.M)
_PROBLEM = re.compile(r"\[[A-Z][A-Z_]+(?:\.[A-Z_]+)?\] .*", re.S)
_users: Counter[str] = Counter()
"""Open databases by master: the last one that closes stops the session."""


class SparkDatabase(CloudDatabase):
    """The tables of a Spark catalogue, or the files of a folder. Raises `DatabaseError`.

    `session` is one that is open already; it stays open when the database is closed.
    """

    dialect = "spark"

    def __init__(self, address: str, session: SparkSession | None = None) -> None:
        super().__init__()
        client("pyspark.sql", "spark")
        place, _, options = address.partition("?")
        asked = parse(f"?{options}", OPTIONS, SHAPE).options if options else {}
        self._only = asked.get("database", "")
        self._folder = None if place.startswith("//") or not place else expanded(place).absolute()
        self._master = f"spark:{place}" if place.startswith("//") else "local[*]"
        self.url = f"spark:{self._folder or place}"
        self.name = self._only or (
            self._folder.name if self._folder else place.strip("/") or "spark"
        )
        self._owned = False
        with _Raised(self.url):
            self._session = session or _classic(self._master)
        if session is None:
            self.owns(self._master)
        self._prepare(asked.get("catalog", ""))

    def owns(self, master: str) -> None:
        """Stop the session when the last database of `master` is closed."""
        self._owned, self._master = True, master
        _users[master] += 1

    def introspect(self) -> Schema:
        with _Raised(self.url):
            return schema(self._session, self.name, self._only)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        found: list[Row] = []

        def work(run: Run) -> Outcome:
            self._begin(run)
            frame = self._session.sql(sql, list(parameters)) if parameters else None
            found.extend(plain_rows(frame or self._session.sql(sql)))
            return Outcome(Status.OK)

        with _Raised(f"{self.url}: {one_line(sql)[:60]}"):
            outcome = bounded(work, QUERY_SECONDS)
        if outcome.status is Status.TIMEOUT:
            raise DatabaseError(f"{self.url}: {one_line(sql)[:60]}: {outcome.error}")
        return found

    def close(self) -> None:
        if not self._owned:
            return
        self._owned = False
        _users[self._master] -= 1
        if _users[self._master] <= 0:
            self._session.stop()

    def _ask(self, code: str) -> Outcome | None:
        code = bare(code, self.dialect)
        try:
            plan = self._plan(f"SELECT * FROM (\n{code}\n) AS lynx_program")
        except _errors() as error:
            return self._why(code, error)
        if _SCRIPT.search(plan):
            return Outcome(Status.BLOCKED, error="TRANSFORM runs a script, so it is not allowed")
        problem = _PROBLEM.search(plan) if "== Physical Plan ==" not in plan else None
        return _failed_with(problem[0]) if problem else None

    def _why(self, code: str, error: Exception) -> Outcome:
        """A program that cannot stand as a sub-query is broken, or it is no query."""
        outcome = _failed(error)
        if outcome.status is not Status.ERROR:
            return outcome
        try:
            self._plan(code)
        except _errors() as own:
            return _failed(own)
        return Outcome(Status.BLOCKED, error="only a query may run; Spark reads a command")

    def _plan(self, code: str) -> str:
        return "\n".join(str(row[0]) for row in self._session.sql(f"EXPLAIN {code}").collect())

    def _run(self, code: str, limits: Limits, run: Run) -> Outcome:
        try:
            self._begin(run)
            frame: DataFrame = self._session.sql(bare(code, self.dialect))
            rows = plain_rows(frame.limit(limits.max_rows + 1))
            kept, cut = collect(run.watched(rows), limits)
        except _errors() as error:
            return _failed(error)
        status = Status.OK if kept else Status.EMPTY
        return Outcome(status, tuple(frame.columns), kept, cut)

    def _begin(self, run: Run) -> None:
        """Name what this thread starts, so that it can be stopped by its name."""
        name = f"lynx-{uuid.uuid4().hex}"
        run.cancel = _group(self._session, name)

    def _prepare(self, catalog: str) -> None:
        with _Raised(self.url):
            for name, value in _OF_A_SESSION.items():
                self._session.conf.set(name, value)
            if catalog:
                self._session.catalog.setCurrentCatalog(catalog)
            if self._folder is not None:
                register(self._session, self._folder)

    def _stamp(self) -> str:
        if self._folder is not None:
            return stamp(self._folder)
        with _Raised(self.url):
            return repr(sorted(table_names(self._session, self._only)))


def connect_remote(address: str) -> SparkDatabase:
    """The database behind `sc:` and `address`. Raises `DatabaseError`."""
    client("pyspark.sql", "spark")
    place, _, options = address.partition("?")
    if re.search(r"[;&]token=", address):
        raise DatabaseError(f"A token may not stand in the address: set {_TOKEN}.")
    opened: list[SparkDatabase] = []

    def work(run: Run) -> Outcome:
        opened.append(SparkDatabase(f"?{options}", _remote(f"sc:{place}")))
        return Outcome(Status.OK)

    with _Raised(f"sc:{place}"):
        outcome = bounded(work, _OPEN_SECONDS)
    if outcome.status is Status.TIMEOUT:
        raise DatabaseError(f"sc:{place} does not answer. Is a Spark Connect server there?")
    (database,) = opened
    database.url, database.name = f"sc:{place}", place.strip("/").split(":")[0]
    database.owns(f"sc:{place}")
    return database


def _classic(master: str) -> SparkSession:
    from pyspark.sql import SparkSession

    # Each failing program would be logged as a page of JSON on top of what is raised.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    builder = SparkSession.builder.master(master)
    for name, value in (_EVERYWHERE | (_LOCAL if master.startswith("local") else {})).items():
        builder = builder.config(name, value)
    started: SparkSession = builder.getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    return started.newSession()


def _remote(url: str) -> SparkSession:
    """A session of its own; PySpark reads the token from the environment."""
    from pyspark.sql import SparkSession

    session: SparkSession = SparkSession.builder.remote(url).create()
    return session


def _group(session: SparkSession, name: str) -> Callable[[], object]:
    """Begin a group of jobs in this thread; what is given stops them."""
    if hasattr(session, "_jsparkSession"):
        session.sparkContext.setJobGroup(name, "lynx", interruptOnCancel=True)
        return lambda: session.sparkContext.cancelJobGroup(name)
    session.addTag(name)
    return lambda: session.interruptTag(name)


class _Raised:
    """Spark's errors as a `DatabaseError` of one line."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, _errors()):
            raise DatabaseError(f"{self._what}: {_failed(error).error}") from None


def _errors() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    found = [PySparkException, Py4JError, ConnectionError, EOFError, RuntimeError]
    try:
        from grpc import RpcError
    except ImportError:
        return tuple(found)
    return (*found, RpcError)


def _failed(error: BaseException) -> Outcome:
    details = getattr(error, "details", None)  # of a gRPC error; its text is a page
    said = str(details()) if callable(details) else str(error)
    return _failed_with(
        f"UNAVAILABLE: {said}" if callable(details) else said or type(error).__name__
    )


_CONDITION = re.compile(r"\s*\[([A-Z][A-Z_]*(?:\.[A-Z_]+)?)\]\s*")
_AFTER = re.compile(
    r"\s*(?:Verify the spelling|If necessary set|SQLSTATE: \w+|== SQL|JVM stacktrace|\n\tat ).*",
    re.S,
)


def _failed_with(message: str) -> Outcome:
    condition = _CONDITION.search(message)
    shown = _AFTER.sub("", _CONDITION.sub("", message, count=1))
    kind = condition[1] if condition else message[:2_000]
    return cloud_failures.failed(cloud_failures.SPARK, kind, shown)

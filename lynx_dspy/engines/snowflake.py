"""Snowflake through its connector: asked by EXPLAIN first, run asynchronously, cancelled by its id.

    snowflake://ACCOUNT/DATABASE[/SCHEMA]?warehouse=W&role=R&max_scan=1TB&statement_timeout=300

Who logs in is read from the environment alone: SNOWFLAKE_USER with SNOWFLAKE_PRIVATE_KEY_PATH (and
SNOWFLAKE_PRIVATE_KEY_PASSPHRASE), else SNOWFLAKE_TOKEN or SNOWFLAKE_PASSWORD.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

from lynx_dspy.engines import cloud_failures
from lynx_dspy.engines.bounded import Run
from lynx_dspy.engines.bounded_reads import bounded_read
from lynx_dspy.engines.cloud import CloudDatabase
from lynx_dspy.engines.cloud_address import Address, client, parse, shown_size
from lynx_dspy.engines.cloud_guard import bare
from lynx_dspy.engines.failures import one_line
from lynx_dspy.engines.limits import collect
from lynx_dspy.engines.snowflake_schema import STAMP, schema
from lynx_dspy.errors import DatabaseError
from lynx_dspy.grounding.identifiers import quote
from lynx_dspy.values import Limits, Outcome, Row, Schema, Status

SHAPE = "snowflake://ACCOUNT/DATABASE/SCHEMA"
OPTIONS = (
    "warehouse",
    "role",
    "max_scan",
    "sample_scan",
    "statement_timeout",
    "tag",
    "host",
    "port",
)
MAX_SCAN = 1_000_000_000_000
"""Bytes of the micro-partitions that one program may read, unless the URL says otherwise."""

SAMPLE_SCAN = 1_000_000_000
"""The same of one query of this package that does not stop after a few rows."""

STATEMENT_SECONDS = 300
"""After so long Snowflake ends a statement itself, should this process be gone."""

_LOGIN_SECONDS = 60
_BATCH = 256
_FIRST_WAIT, _LONGEST_WAIT = 0.02, 0.5
_WRITES = re.compile(
    r"insert|update|delete|merge|copy|unload|create|drop|external(scan|function)|procedure|"
    r"extensionfunction|javascript",
    re.I,
)
"""Operations of a plan that are not of a query, or that run someone's code."""

_JSON_TYPES = (9, 10)
"""The connector's codes of OBJECT and ARRAY, which come as JSON text."""


class SnowflakeDatabase(CloudDatabase):
    """A database, or one of its schemas. Raises `DatabaseError` if no one can log in.

    `driver` is the module `snowflake.connector`, or one that does the same.
    """

    dialect = "snowflake"

    def __init__(self, address: str, driver: ModuleType | None = None) -> None:
        super().__init__()
        self._address = parse(address, OPTIONS, SHAPE)
        if not 2 <= len(self._address.parts) <= 3:
            raise DatabaseError(f"snowflake:{address} names no database. Write {SHAPE}.")
        self.account, self.database, *rest = self._address.parts
        self.schema = rest[0] if rest else ""
        self.url = f"snowflake://{'/'.join(self._address.parts)}"
        self.name = self.schema or self.database
        self.max_scan = self._address.size("max_scan", MAX_SCAN)
        self.sample_scan = self._address.size("sample_scan", SAMPLE_SCAN)
        self._driver = driver or client("snowflake.connector", "snowflake")
        self._error: type[Exception] = self._driver.Error
        with self._raised("log in"):
            self._connection = self._driver.connect(**_login(self._address, os.environ))

    def introspect(self) -> Schema:
        return schema(self._records, self.database, self.schema)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        with self._raised(one_line(sql)[:60]), self._cursor() as cursor:
            if bounded_read(sql, self.dialect) is None:
                self._afford(sql, parameters)
            if parameters:
                cursor.execute(sql.replace("%", "%%").replace("?", "%s"), tuple(parameters))
            else:
                cursor.execute(sql)
            return [_plain_row(row, cursor.description) for row in cursor.fetchall()]

    def close(self) -> None:
        self._connection.close()

    def _ask(self, code: str) -> Outcome | None:
        try:
            plan = self._plan(bare(code, self.dialect))
        except self._error as error:
            return _failed(error)
        if plan is None:
            return Outcome(Status.BLOCKED, error="Snowflake did not say what this would do")
        writes = next(filter(_WRITES.search, _operations(plan)), None)
        if writes is not None:
            return Outcome(Status.BLOCKED, error=f"only a query may run; this does {writes}")
        scanned = _scanned(plan)
        if scanned <= self.max_scan:
            return None
        most = shown_size(self.max_scan)
        refused = (
            f"the query would scan {shown_size(scanned)} and may scan {most}: filter on the "
            "clustering key, or raise max_scan in the URL"
        )
        return Outcome(Status.BLOCKED, error=refused)

    def _run(self, code: str, limits: Limits, run: Run) -> Outcome:
        try:
            with self._cursor() as cursor:
                cursor.execute_async(bare(code, self.dialect))
                query_id = str(cursor.sfqid)
                run.cancel = lambda: self._cancel(query_id)
                if not self._finished(query_id, run):
                    self._cancel(query_id)
                    return run.timeout
                cursor.get_results_from_sfqid(query_id)
                rows, cut = collect(run.watched(_fetched(cursor)), limits)
                columns = tuple(str(column[0]) for column in cursor.description or ())
        except self._error as error:
            return _failed(error)
        return Outcome(Status.OK if rows else Status.EMPTY, columns, rows, cut)

    def _finished(self, query_id: str, run: Run) -> bool:
        """Wait, a little longer each time, until the query has ended; False if time is over."""
        wait = _FIRST_WAIT
        while True:
            status = self._connection.get_query_status_throw_if_error(query_id)
            if not self._connection.is_still_running(status):
                return True
            if run.expired.wait(wait):
                return False
            wait = min(2 * wait, _LONGEST_WAIT)

    def _cancel(self, query_id: str) -> None:
        with self._cursor() as cursor:
            try:
                cursor.execute("SELECT SYSTEM$CANCEL_QUERY(%s)", (query_id,))
            except self._error:
                return  # it has ended, or STATEMENT_TIMEOUT_IN_SECONDS ends it

    def _plan(self, code: str, parameters: Sequence[Any] = ()) -> dict[str, Any] | None:
        """What EXPLAIN says; it compiles and needs no warehouse."""
        with self._cursor() as cursor:
            if parameters:
                text = code.replace("%", "%%").replace("?", "%s")
                cursor.execute(f"EXPLAIN USING JSON {text}", tuple(parameters))
            else:
                cursor.execute(f"EXPLAIN USING JSON {code}")
            row = cursor.fetchone()
        try:
            plan = json.loads(row[0]) if row else None
        except (TypeError, ValueError):
            return None
        return plan if isinstance(plan, dict) and "Operations" in plan else None

    def _afford(self, sql: str, parameters: Sequence[Any]) -> None:
        scanned = _scanned(self._plan(sql, parameters) or {})
        if scanned > self.sample_scan:
            most = shown_size(self.sample_scan)
            raise DatabaseError(
                f"{one_line(sql)[:60]} would scan {shown_size(scanned)}; sample_scan is {most}"
            )

    def _stamp(self) -> str:
        found = self._records(STAMP.format(database=quote(self.database, self.dialect)))
        return repr((self.url, found))

    def _records(self, sql: str) -> list[dict[str, Any]]:
        """Rows of the catalogue, by the names of their columns in lower case."""
        with self._raised("its catalogue"), self._cursor() as cursor:
            cursor.execute(sql)
            names = [str(column[0]).lower() for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        cursor = self._connection.cursor()
        try:
            yield cursor
        finally:
            cursor.close()

    @contextmanager
    def _raised(self, what: str) -> Iterator[None]:
        """The connector's errors as a `DatabaseError` of one line."""
        try:
            yield
        except self._error as error:
            raise DatabaseError(f"{self.url}: {_failed(error).error} ({what})") from None


def _login(address: Address, environment: Mapping[str, str]) -> dict[str, Any]:
    """The connector's arguments. Raises `DatabaseError` where no login is named."""
    given = {name: environment.get(f"SNOWFLAKE_{name}", "") for name in _VARIABLES}
    if not given["USER"]:
        raise DatabaseError("No login for Snowflake: set SNOWFLAKE_USER.")
    account, database, *rest = address.parts
    seconds = int(address.number("statement_timeout", STATEMENT_SECONDS))
    arguments: dict[str, Any] = {
        "account": account,
        "user": given["USER"],
        "database": database,
        "login_timeout": _LOGIN_SECONDS,
        "session_parameters": {
            "QUERY_TAG": address.options.get("tag", "lynx"),
            "STATEMENT_TIMEOUT_IN_SECONDS": seconds,
            "MULTI_STATEMENT_COUNT": 1,
            "ABORT_DETACHED_QUERY": True,
            "TIMEZONE": "UTC",
        },
    }
    arguments |= {"schema": rest[0]} if rest else {}
    named = ("warehouse", "role", "host", "port")
    arguments |= {key: address.options[key] for key in named if key in address.options}
    return arguments | _secret(given)


_VARIABLES = (
    *("USER", "PASSWORD", "TOKEN", "AUTHENTICATOR"),
    *("PRIVATE_KEY_PATH", "PRIVATE_KEY_PASSPHRASE"),
)


def _secret(given: Mapping[str, str]) -> dict[str, str]:
    """A key pair before a token before a password: what is best to have comes first."""
    if given["PRIVATE_KEY_PATH"]:
        key = {"authenticator": "SNOWFLAKE_JWT", "private_key_file": given["PRIVATE_KEY_PATH"]}
        passphrase = given["PRIVATE_KEY_PASSPHRASE"]
        return key | ({"private_key_file_pwd": passphrase} if passphrase else {})
    if given["TOKEN"]:
        return {"authenticator": given["AUTHENTICATOR"] or "oauth", "token": given["TOKEN"]}
    if given["PASSWORD"]:
        return {"password": given["PASSWORD"]}
    if given["AUTHENTICATOR"]:
        return {"authenticator": given["AUTHENTICATOR"]}
    raise DatabaseError("No login for Snowflake: set SNOWFLAKE_PRIVATE_KEY_PATH to a key's file.")


def _failed(error: Exception) -> Outcome:
    """By Snowflake's number, or by the class of the error where it has none."""
    number = getattr(error, "errno", None)
    known = isinstance(number, int) and number > 0
    kind = f"{number:06d}" if known else type(error).__name__
    message = str(getattr(error, "raw_msg", "") or getattr(error, "msg", "") or error)
    shown = re.sub(r"^\d{6} \(\w+\):\s*(?:[0-9a-f-]{36}:\s*)?", "", message)
    return cloud_failures.failed(cloud_failures.SNOWFLAKE, kind, shown)


def _operations(plan: Mapping[str, Any]) -> Iterator[str]:
    for step in plan["Operations"]:
        for operation in step if isinstance(step, list) else [step]:
            yield str(operation.get("operation", ""))


def _scanned(plan: Mapping[str, Any]) -> int:
    return int((plan.get("GlobalStats") or {}).get("bytesAssigned") or 0)


def _fetched(cursor: Any) -> Iterator[Row]:
    while batch := cursor.fetchmany(_BATCH):
        for row in batch:
            yield _plain_row(row, cursor.description)


def _plain_row(row: Sequence[Any], description: Sequence[Any] | None) -> Row:
    kinds = [column[1] for column in description or ()]
    return tuple(_plain(value, kind) for value, kind in zip(row, kinds, strict=True))


def _plain(value: Any, kind: int) -> Any:
    """OBJECT and ARRAY as what their text says, times with a zone in UTC, bytes as bytes."""
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    if kind in _JSON_TYPES and isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:  # `undefined` is not JSON
            return value
    return value

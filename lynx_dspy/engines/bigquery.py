"""BigQuery through Google's client: every program is dry-run first, and what it scans is capped.

    bigquery://PROJECT[/DATASET]?billing_project=P&location=EU&max_scan=10GB&sample_scan=100MB

Credentials come from the environment alone (Application Default Credentials). The dry run is free
and is BigQuery's own word on a program: only a statement of type SELECT may run.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lynx_dspy.engines import cloud_failures
from lynx_dspy.engines.bounded import Run
from lynx_dspy.engines.bounded_reads import BoundedRead, bounded_read
from lynx_dspy.engines.cloud import CloudDatabase
from lynx_dspy.engines.cloud_address import Address, client, parse, shown_size
from lynx_dspy.engines.cloud_guard import bare
from lynx_dspy.engines.limits import collect
from lynx_dspy.errors import DatabaseError
from lynx_dspy.progress import report
from lynx_dspy.values import Limits, Outcome, Row, Schema, Status

if TYPE_CHECKING:
    from google.cloud.bigquery import Client, QueryJob, QueryJobConfig, Table

SHAPE = "bigquery://PROJECT/DATASET"
OPTIONS = ("billing_project", "location", "max_scan", "sample_scan", "price", "label")
MAX_SCAN = 10_000_000_000
"""Bytes that one program may scan, unless the URL says otherwise."""

SAMPLE_SCAN = 100_000_000
"""Bytes that one query of this package may scan; its samples are listed, which scans nothing."""

PRICE = 6.25
"""US dollars for 2^40 bytes scanned on demand (cloud.google.com/bigquery/pricing, US, 2026)."""

_METADATA_SECONDS = 30.0
_QUERY_SECONDS = 60.0
_PAGE_ROWS = 1_000
_EMULATOR = "BIGQUERY_EMULATOR_HOST"


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a dry run says: the statement's type, the bytes it would scan, the price in dollars."""

    statement: str
    scanned: int
    dollars: float

    def __str__(self) -> str:
        return f"{shown_size(self.scanned)} (about ${self.dollars:.2g})"


class BigQueryDatabase(CloudDatabase):
    """The datasets of a project, or one of them. Raises `DatabaseError` if it cannot be opened.

    `scanned` counts the bytes that were billed for since it was opened.
    """

    dialect = "bigquery"

    def __init__(self, address: str, client: Client | None = None) -> None:
        super().__init__()
        self._address = parse(address, OPTIONS, SHAPE)
        if not 1 <= len(self._address.parts) <= 2:
            raise DatabaseError(f"bigquery:{address} names no project. Write {SHAPE}.")
        self.project, *rest = self._address.parts
        self.dataset = rest[0] if rest else ""
        self.url = f"bigquery://{'/'.join(self._address.parts)}"
        self.name = self.dataset or self.project
        self.max_scan = self._address.size("max_scan", MAX_SCAN)
        self.sample_scan = min(self._address.size("sample_scan", SAMPLE_SCAN), self.max_scan)
        self.price = self._address.number("price", PRICE)
        self.scanned = 0
        self._client = client or _client(self._address)

    def introspect(self) -> Schema:
        from lynx_dspy.engines.bigquery_schema import schema

        with _Raised(self.url):
            return schema(self._tables(), self.name)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        read = None if parameters else bounded_read(sql, self.dialect)
        with _Raised(self.url):
            if read is not None and (listed := self._listed(read)) is not None:
                return listed
            estimate = self.estimate(sql, parameters)
            if estimate.scanned > self.sample_scan:
                most = shown_size(self.sample_scan)
                raise DatabaseError(f"{sql[:60]} would scan {estimate}; sample_scan is {most}")
            job = self._start(sql, self.sample_scan, _QUERY_SECONDS, parameters)
            return [tuple(row.values()) for row in job.result(timeout=_QUERY_SECONDS)]

    def estimate(self, code: str, parameters: Sequence[Any] = ()) -> Estimate:
        """Type and cost of a statement, by a dry run. Raises the client's errors."""
        config = self._config(None, parameters)
        config.dry_run = True
        config.use_query_cache = False
        job = self._client.query(
            code, config, location=self._location, timeout=_METADATA_SECONDS, job_retry=None
        )
        scanned = int(job.total_bytes_processed or 0)
        return Estimate(job.statement_type or "", scanned, scanned / 2**40 * self.price)

    def close(self) -> None:
        self._client.close()  # type: ignore[no-untyped-call]  # Google's client has no types here

    def _ask(self, code: str) -> Outcome | None:
        try:
            estimate = self.estimate(bare(code, self.dialect))
        except _errors() as error:
            return _failed(error)
        report("engine", f"BigQuery would scan {estimate}")
        return self._refusal(estimate)

    def _run(self, code: str, limits: Limits, run: Run) -> Outcome:
        try:
            return self._collected(code, limits, run)
        except _errors() as error:
            return _failed(error)

    def _refusal(self, estimate: Estimate) -> Outcome | None:
        if estimate.statement != "SELECT":
            kind = estimate.statement or "statement of an unknown type"
            return Outcome(Status.BLOCKED, error=f"only a SELECT may run; BigQuery reads a {kind}")
        if estimate.scanned <= self.max_scan:
            return None
        error = (
            f"the query would scan {estimate} and may scan {shown_size(self.max_scan)}: name fewer "
            "columns, filter on the partition column, or raise max_scan in the URL"
        )
        return Outcome(Status.BLOCKED, error=error)

    def _collected(self, code: str, limits: Limits, run: Run) -> Outcome:
        job_id = f"lynx_{uuid.uuid4().hex}"
        run.cancel = lambda: self._cancel(job_id)
        job = self._start(bare(code, self.dialect), self.max_scan, run.remaining, (), job_id)
        found = job.result(
            page_size=min(_PAGE_ROWS, limits.max_rows + 1),
            max_results=limits.max_rows + 1,
            timeout=run.remaining + 1.0,
            job_retry=None,
        )
        self.scanned += int(job.total_bytes_billed or 0)
        columns = tuple(field.name for field in found.schema)
        rows, cut = collect(run.watched(map(_plain_row, found)), limits)
        return Outcome(Status.OK if rows else Status.EMPTY, columns, rows, cut)

    def _start(
        self,
        code: str,
        most: int,
        seconds: float,
        parameters: Sequence[Any] = (),
        job_id: str | None = None,
    ) -> QueryJob:
        config = self._config(most, parameters)
        config.job_timeout_ms = max(1, int(seconds * 1000))
        return self._client.query(
            code, config, job_id, location=self._location, timeout=seconds + 1.0, job_retry=None
        )

    def _config(self, most: int | None, parameters: Sequence[Any]) -> QueryJobConfig:
        from google.cloud import bigquery

        config = bigquery.QueryJobConfig(
            use_legacy_sql=False,
            labels={"app": "lynx", "purpose": self._address.options.get("label", "query")},
        )
        if self.dataset:
            config.default_dataset = f"{self.project}.{self.dataset}"
        if most is not None:
            config.maximum_bytes_billed = most
        if parameters:
            config.query_parameters = [_parameter(value) for value in parameters]
        return config

    def _cancel(self, job_id: str) -> None:
        try:
            self._client.cancel_job(job_id, location=self._location, timeout=_METADATA_SECONDS)
        except _errors():
            return  # it never began, or it has ended: job_timeout_ms ends it otherwise

    def _listed(self, read: BoundedRead) -> list[Row] | None:
        """First rows through tabledata.list, which is free; None for what cannot be listed."""
        reference = read.table if len(read.table) == 3 else (self.project, *read.table)
        table = self._client.get_table(".".join(reference), timeout=_METADATA_SECONDS)
        if table.table_type not in ("TABLE", "SNAPSHOT"):
            return None
        fields = [field for field in table.schema if field.name in read.tops]
        rows = self._client.list_rows(
            table, selected_fields=fields, max_results=read.rows, timeout=_METADATA_SECONDS
        )
        return read.of(dict(row.items()) for row in rows)

    def _tables(self) -> Iterator[Table]:
        from lynx_dspy.engines.bigquery_schema import read_tables

        return read_tables(self._client, self.project, self.dataset, _METADATA_SECONDS)

    def _stamp(self) -> str:
        """Tables and the time at which a dataset was changed; loads of rows show after a while."""
        from lynx_dspy.engines.bigquery_schema import datasets

        digest = hashlib.sha256()
        with _Raised(self.url):
            for name in datasets(self._client, self.project, self.dataset, _METADATA_SECONDS):
                tables = self._client.list_tables(name, timeout=_METADATA_SECONDS)
                digest.update(repr((name, sorted(t.table_id for t in tables))).encode())
        return digest.hexdigest()[:32]

    @property
    def _location(self) -> str | None:
        return self._address.options.get("location")


class _Raised:
    """Turns the client's errors into a `DatabaseError` of one line."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, _errors()):
            raise DatabaseError(f"{self._url}: {_failed(error).error}") from error


def _client(address: Address) -> Client:
    bigquery = client("google.cloud.bigquery", "bigquery")
    project = address.options.get("billing_project", address.parts[0])
    credentials = None
    if os.environ.get(_EMULATOR):
        from google.auth.credentials import AnonymousCredentials

        credentials = AnonymousCredentials()  # type: ignore[no-untyped-call]  # as above
    try:
        made: Client = bigquery.Client(project=project, credentials=credentials)
    except _errors() as error:
        reason = "Run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS"
        raise DatabaseError(f"No login for BigQuery: {error}. {reason}.") from error
    return made


def _errors() -> tuple[type[Exception], ...]:
    from concurrent.futures import TimeoutError as FutureTimeout

    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError
    from requests.exceptions import RequestException

    return GoogleAPIError, GoogleAuthError, RequestException, FutureTimeout, TimeoutError


def _failed(error: BaseException) -> Outcome:
    """By the reason that BigQuery gives, else the HTTP status, else as a fault of the network."""
    from google.api_core.exceptions import GoogleAPICallError

    if not isinstance(error, GoogleAPICallError):
        reason = "timeout" if isinstance(error, TimeoutError) else "network"
        return cloud_failures.failed(
            cloud_failures.BIGQUERY, reason, str(error) or type(error).__name__
        )
    details = [detail for detail in error.errors if isinstance(detail, dict)]
    reason = str(details[0].get("reason", "")) if details else ""
    message = str(details[0].get("message", "")) if details else ""
    return cloud_failures.failed(
        cloud_failures.BIGQUERY, reason or str(error.code), message or str(error.message)
    )


def _plain_row(row: Any) -> Row:
    return tuple(map(_plain, row.values()))


def _plain(value: Any) -> Any:
    """INTERVAL comes as a relativedelta, which no result can be compared with."""
    from dateutil.relativedelta import relativedelta

    if isinstance(value, relativedelta):
        clock = f"{value.hours}:{value.minutes}:{value.seconds}"
        return f"{value.years}-{value.months} {value.days} {clock}"
    return value


def _parameter(value: Any) -> Any:
    """A positional parameter of a trusted query."""
    from google.cloud import bigquery

    kinds = ((bool, "BOOL"), (int, "INT64"), (float, "FLOAT64"), (bytes, "BYTES"))
    kind = next((name for known, name in kinds if isinstance(value, known)), "")
    named = {"Decimal": "NUMERIC", "datetime": "TIMESTAMP", "date": "DATE", "time": "TIME"}
    kind = kind or named.get(type(value).__name__, "STRING")
    return bigquery.ScalarQueryParameter(None, kind, value)

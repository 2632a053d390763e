"""BigQuery's REST interface over DuckDB, for the real client: jobs, pages, tables, error reasons.

Queries are read by sqlglot and run by DuckDB, so results and failures are real; what a query would
scan is made up from `sizes`. Source of the forms: cloud.google.com/bigquery/docs/reference/rest.
"""

from __future__ import annotations

import base64
import datetime as dt
import re
import threading
import time
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import duckdb
import sqlglot
from fakes.http import Answer, JsonServer
from sqlglot import exp
from sqlglot.errors import SqlglotError

_TYPES = {
    "BIGINT": "INTEGER", "INTEGER": "INTEGER", "SMALLINT": "INTEGER", "HUGEINT": "NUMERIC",
    "DOUBLE": "FLOAT", "FLOAT": "FLOAT", "BOOLEAN": "BOOLEAN", "VARCHAR": "STRING",
    "DATE": "DATE", "TIMESTAMP": "DATETIME", "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",
    "TIME": "TIME", "BLOB": "BYTES", "JSON": "JSON", '"NULL"': "INTEGER", "UUID": "STRING",
}  # fmt: skip


class Refused(Exception):
    """A request that BigQuery answers with an error of this status and reason."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        detail = {"message": message, "domain": "global", "reason": reason}
        self.answer = status, {"error": {"code": status, "message": message, "errors": [detail]}}


@dataclass
class Job:
    """A query job; `done` is set when it has ended, with rows or an error."""

    id: str
    body: dict[str, Any]
    statement: str
    scanned: int
    fields: list[dict[str, Any]] = field(default_factory=list)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    error: dict[str, str] | None = None
    cursor: Any = None
    cancelled: bool = False
    done: threading.Event = field(default_factory=threading.Event)


class BigQueryServer:
    """One project with one dataset. `queries` are the configurations of all jobs it was sent."""

    def __init__(self, project: str = "shop-project", dataset: str = "shop") -> None:
        self.project, self.dataset = project, dataset
        self.duckdb = duckdb.connect(config={"threads": 1})
        self.duckdb.execute(f"CREATE SCHEMA \"{dataset}\"; SET schema = '{dataset}'")
        self.duckdb.execute("SET TimeZone = 'UTC'")
        self.records: dict[str, dict[str, Any]] = {}
        self.sizes: dict[str, int] = {}
        self.fault: Refused | None = None
        self.jobs: dict[str, Job] = {}
        self.configurations: list[dict[str, Any]] = []
        self.listings = 0
        self._server = JsonServer(self._handle)
        self.url = self._server.url

    def close(self) -> None:
        self._server.close()
        for job in self.jobs.values():
            self._stop(job)

    @property
    def running(self) -> int:
        return sum(not job.done.is_set() for job in self.jobs.values())

    def _handle(
        self, method: str, path: str, query: dict[str, str], body: dict[str, Any]
    ) -> Answer:
        try:
            if self.fault is not None:
                raise self.fault
            return 200, self._route(method, path.removeprefix("/bigquery/v2"), query, body)
        except Refused as refused:
            return refused.answer

    def _route(
        self, method: str, path: str, query: dict[str, str], body: dict[str, Any]
    ) -> dict[str, Any]:
        routes = (
            ("POST", r"/projects/[^/]+/jobs", lambda: self._insert(body)),
            ("GET", r"/projects/[^/]+/jobs/([^/]+)", lambda j: self._shown(self._job(j))),
            ("POST", r"/projects/[^/]+/jobs/([^/]+)/cancel", self._cancel),
            ("GET", r"/projects/[^/]+/queries/([^/]+)", lambda j: self._results(j, query)),
            ("GET", r"/projects/[^/]+/datasets", self._datasets),
            ("GET", r"/projects/[^/]+/datasets/([^/]+)/tables", self._list),
            ("GET", r"/projects/([^/]+)/datasets/([^/]+)/tables/([^/]+)", self._table),
            (
                *("GET", r"/projects/[^/]+/datasets/[^/]+/tables/([^/]+)/data"),
                lambda t: self._data(t, query),
            ),
        )
        for verb, pattern, act in routes:
            match = re.fullmatch(pattern, path)
            if verb == method and match:
                return act(*match.groups())
        raise Refused(404, "notFound", f"Not found: {method} {path}")

    # Jobs

    def _insert(self, body: dict[str, Any]) -> dict[str, Any]:
        configuration = body["configuration"]
        self.configurations.append(configuration)
        code = configuration["query"]["query"]
        job_id = body.get("jobReference", {}).get("jobId", f"job_{len(self.jobs)}")
        statement, sql, tables = self._understood(code)
        scanned = sum(self.sizes.get(name, 0) for name in tables)
        job = Job(job_id, body, statement, scanned)
        self._checked(sql, job, configuration["query"].get("queryParameters", []))
        if configuration.get("dryRun"):
            job.done.set()
            return self._shown(job)
        most = configuration["query"].get("maximumBytesBilled")
        if most is not None and scanned > int(most):
            text = f"Query exceeded limit for bytes billed: {most}. {scanned} or higher required."
            raise Refused(400, "bytesBilledLimitExceeded", text)
        self.jobs[job_id] = job
        values = [p["parameterValue"]["value"] for p in _parameters(configuration)]
        threading.Thread(target=self._work, args=(job, sql, values), daemon=True).start()
        return self._shown(job)

    def _understood(self, code: str) -> tuple[str, str, list[str]]:
        """Type of the statement, its SQL for DuckDB and the tables that it reads."""
        try:
            trees = [tree for tree in sqlglot.parse(code, read="bigquery") if tree is not None]
        except SqlglotError as error:
            place = error.errors[0] if getattr(error, "errors", None) else {}
            at = f"[{place.get('line', 1)}:{place.get('col', 1)}]"
            text = f"Syntax error: Unexpected {place.get('highlight') or 'end of script'} at {at}"
            raise Refused(400, "invalidQuery", text) from None
        if len(trees) != 1:
            return "SCRIPT", "", []
        tree = trees[0]
        statement = "SELECT" if isinstance(tree, exp.Query) else type(tree).__name__.upper()
        self._refuse_twins(tree)
        known = {cte.alias for cte in tree.find_all(exp.CTE)}
        tables = [t for t in tree.find_all(exp.Table) if t.name and t.name not in known]
        names = [table.name for table in tables]
        for table in tables:
            table.set("catalog", None)
        return statement, tree.sql("duckdb"), names

    @staticmethod
    def _refuse_twins(tree: exp.Expr) -> None:
        names = [
            e.alias_or_name.casefold() for e in getattr(tree, "selects", []) if e.alias_or_name
        ]
        twin = next((name for name in names if name != "*" and names.count(name) > 1), None)
        if twin is not None:
            text = "Duplicate column names in the result are not supported. Found duplicate(s): "
            raise Refused(400, "invalidQuery", text + twin)

    def _checked(self, sql: str, job: Job, parameters: list[Any]) -> None:
        if job.statement != "SELECT":
            return
        cursor = self.duckdb.cursor()
        cursor.execute(f"SET schema = '{self.dataset}'")
        try:
            found = [] if parameters else cursor.execute(f"DESCRIBE {sql}").fetchall()
        except duckdb.Error as error:
            raise _refused(str(error), self.project, self.dataset) from None
        job.fields = [_field(name, kind) for name, kind, *_ in found]

    def _work(self, job: Job, sql: str, values: list[Any]) -> None:
        job.cursor = self.duckdb.cursor()
        job.cursor.execute(f"SET schema = '{self.dataset}'; SET TimeZone = 'UTC'")
        try:
            found = job.cursor.execute(sql, values or None)
            job.fields = [_field(d[0], str(d[1])) for d in found.description]
            job.rows = found.fetchall()
        except duckdb.Error as error:
            stopped = "Job execution was cancelled: User requested cancellation"
            job.error = (
                {"reason": "stopped", "message": stopped}
                if job.cancelled
                else {"reason": "invalidQuery", "message": str(error).split("\n")[0]}
            )
        job.done.set()

    def _shown(self, job: Job) -> dict[str, Any]:
        status: dict[str, Any] = {"state": "DONE" if job.done.is_set() else "RUNNING"}
        if job.error:
            status |= {"errorResult": job.error, "errors": [job.error]}
        return {
            "jobReference": {"projectId": self.project, "jobId": job.id, "location": "US"},
            "configuration": job.body["configuration"] | {"jobType": "QUERY"},
            "status": status,
            "statistics": {
                "totalBytesProcessed": str(job.scanned),
                "query": {
                    "statementType": job.statement,
                    "totalBytesProcessed": str(job.scanned),
                    "totalBytesBilled": str(job.scanned),
                    "schema": {"fields": job.fields},
                },
            },
        }

    def _job(self, job_id: str) -> Job:
        if job_id not in self.jobs:
            raise Refused(404, "notFound", f"Not found: Job {self.project}:{job_id}")
        return self.jobs[job_id]

    def _cancel(self, job_id: str) -> dict[str, Any]:
        job = self._job(job_id)
        self._stop(job)
        return {"job": self._shown(job)}

    @staticmethod
    def _stop(job: Job) -> None:
        job.cancelled = True
        while job.cursor is not None and not job.done.wait(0.02):
            job.cursor.interrupt()

    def _results(self, job_id: str, query: dict[str, str]) -> dict[str, Any]:
        job = self._job(job_id)
        if not job.done.wait(min(int(query.get("timeoutMs", 10_000)), 10_000) / 1000):
            return {"jobComplete": False, "jobReference": {"jobId": job_id}}
        if job.error:
            raise Refused(400, job.error["reason"], job.error["message"])
        answer = {"jobComplete": True, "totalRows": str(len(job.rows))}
        answer["jobReference"] = self._shown(job)["jobReference"]
        return answer | {"schema": {"fields": job.fields}} | _page(job.rows, job.fields, query)

    # Tables

    def _datasets(self) -> dict[str, Any]:
        reference = {"projectId": self.project, "datasetId": self.dataset}
        return {
            "datasets": [{"datasetReference": reference, "id": f"{self.project}:{self.dataset}"}]
        }

    def _list(self, dataset: str) -> dict[str, Any]:
        if dataset != self.dataset:
            raise Refused(404, "notFound", f"Not found: Dataset {self.project}:{dataset}")
        tables = [self._table(self.project, dataset, name) for name in self._names()]
        keys = ("tableReference", "type", "id")
        return {"tables": [{k: t[k] for k in keys} for t in tables], "totalItems": len(tables)}

    def _ask(self, sql: str, *values: Any) -> duckdb.DuckDBPyConnection:
        """On a cursor of its own: requests are served in threads, which would share results."""
        return self.duckdb.cursor().execute(sql, *values)

    def _names(self) -> list[str]:
        found = self._ask(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = ? ORDER BY 1",
            [self.dataset],
        ).fetchall()
        return sorted({name for (name,) in found} | self.records.keys())

    def _table(self, project: str, dataset: str, name: str) -> dict[str, Any]:
        if name not in self.records and name not in self._names():
            raise Refused(404, "notFound", f"Not found: Table {project}:{dataset}.{name}")
        reference = {"projectId": project, "datasetId": dataset, "tableId": name}
        record = self.records.get(name, {})
        answer = {"tableReference": reference, "id": f"{project}:{dataset}.{name}"}
        answer["type"] = "TABLE" if record else self._kind(name)
        if "schema" not in record:
            found = self._ask(f'DESCRIBE "{dataset}"."{name}"').fetchall()
            answer["schema"] = {"fields": [_field(row[0], row[1], row[2]) for row in found]}
            count = self._ask(f'SELECT COUNT(*) FROM "{dataset}"."{name}"').fetchone()
            answer["numRows"] = str(count[0] if count else 0)
        return answer | record

    def _kind(self, name: str) -> str:
        found = self._ask(
            "SELECT table_type = 'VIEW' FROM information_schema.tables WHERE table_name = ?", [name]
        ).fetchone()
        return "VIEW" if found and found[0] else "TABLE"

    def _data(self, name: str, query: dict[str, str]) -> dict[str, Any]:
        self.listings += 1
        fields = self._table(self.project, self.dataset, name)["schema"]["fields"]
        wanted = set(query.get("selectedFields", "").split(",")) - {""}
        fields = [f for f in fields if not wanted or f["name"] in wanted]
        listed = ", ".join('"' + f["name"].replace('"', '""') + '"' for f in fields)
        rows = (
            self.duckdb.cursor()
            .execute(f'SELECT {listed} FROM "{self.dataset}"."{name}"')
            .fetchall()
        )
        return {"totalRows": str(len(rows))} | _page(rows, fields, query)


def _parameters(configuration: dict[str, Any]) -> list[Any]:
    found: list[Any] = configuration["query"].get("queryParameters", [])
    return found


def _page(
    rows: list[tuple[Any, ...]], fields: list[dict[str, Any]], query: dict[str, str]
) -> dict[str, Any]:
    start = int(query.get("pageToken") or query.get("startIndex") or 0)
    end = start + int(query.get("maxResults", 1_000_000))
    cells = [
        {"f": [_cell(v, f) for v, f in zip(row, fields, strict=True)]} for row in rows[start:end]
    ]
    return {"rows": cells} | ({"pageToken": str(end)} if end < len(rows) else {})


def _cell(value: Any, field_: dict[str, Any]) -> dict[str, Any]:
    if field_["mode"] == "REPEATED":
        return {"v": [_cell(item, field_ | {"mode": "NULLABLE"}) for item in value or ()]}
    if value is None:
        return {"v": None}
    if field_["type"] == "RECORD":
        return {"v": {"f": [_cell(value.get(f["name"]), f) for f in field_["fields"]]}}
    return {"v": _text(value, field_["type"])}


def _text(value: Any, kind: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if kind == "TIMESTAMP":
        epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        return str((value - epoch) // dt.timedelta(microseconds=1))
    if isinstance(value, dt.datetime):
        return value.isoformat()
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _field(name: str, kind: str, null: str = "YES") -> dict[str, Any]:
    """A column of a DuckDB type as BigQuery declares it."""
    mode = "NULLABLE" if null == "YES" else "REQUIRED"
    if kind.endswith("[]"):
        return _field(name, kind[:-2]) | {"mode": "REPEATED"}
    if kind.startswith("STRUCT("):
        inner = sqlglot.parse_one(kind, into=exp.DataType, read="duckdb").expressions
        fields = [_field(f.name, f.args["kind"].sql("duckdb")) for f in inner]
        return {"name": name, "type": "RECORD", "mode": mode, "fields": fields}
    sizes = re.fullmatch(r"DECIMAL\((\d+),\s?(\d+)\)", kind)
    if sizes:
        found = {"name": name, "type": "NUMERIC", "mode": mode}
        return found | {"precision": sizes[1], "scale": sizes[2]}
    kinds = {"INT": "INTEGER", "TEXT": "STRING", "TIMESTAMPTZ": "TIMESTAMP"}
    return {"name": name, "type": _TYPES.get(kind) or kinds.get(kind, "STRING"), "mode": mode}


def _refused(message: str, project: str, dataset: str) -> Refused:
    if match := re.search(r"Table with name (\S+) does not exist", message):
        text = f"Not found: Table {project}:{dataset}.{match[1]} was not found in location US"
        return Refused(404, "notFound", text)
    if match := re.search(r'Referenced column "([^"]+)" not found', message):
        return Refused(400, "invalidQuery", f"Unrecognized name: {match[1]} at [1:8]")
    if match := re.search(r"Function with name (\S+) does not exist", message):
        return Refused(400, "invalidQuery", f"Function not found: {match[1]} at [1:8]")
    return Refused(400, "invalidQuery", message.split("\n")[0])


def settle(server: BigQueryServer, seconds: float = 2.0) -> int:
    """Jobs that still run after they were given time to end."""
    end = time.monotonic() + seconds
    while server.running and time.monotonic() < end:
        time.sleep(0.02)
    return server.running

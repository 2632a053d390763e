"""Snowflake's Python connector over DuckDB: cursors, asynchronous queries, EXPLAIN, SHOW, numbers.

Statements are read by sqlglot and run by DuckDB, so results and failures are real. Error classes
and statuses are the connector's own where it is installed. Source: docs.snowflake.com,
python-connector-api, and the connector's own code.
"""

from __future__ import annotations

import datetime as dt
import enum
import json
import re
import threading
import time
import uuid
from collections.abc import Sequence
from decimal import Decimal
from types import ModuleType
from typing import Any, NamedTuple

import duckdb
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

try:
    from snowflake.connector import Error, OperationalError, ProgrammingError
    from snowflake.connector import errors as _real  # noqa: F401
    from snowflake.connector.constants import QueryStatus
except ImportError:

    class Error(Exception):  # type: ignore[no-redef]
        """As the connector's: a number, an SQLSTATE, and the message without them."""

        def __init__(self, msg: str = "", errno: int = -1, sqlstate: str | None = None) -> None:
            super().__init__(f"{errno:06d} ({sqlstate}): {msg}")
            self.raw_msg, self.errno, self.sqlstate = msg, errno, sqlstate

    class OperationalError(Error):  # type: ignore[no-redef]
        """The server cannot be reached."""

    class ProgrammingError(Error):  # type: ignore[no-redef]
        """The statement is at fault."""

    class QueryStatus(enum.Enum):  # type: ignore[no-redef]
        """The statuses that are used here."""

        RUNNING = 0
        SUCCESS = 2
        FAILED_WITH_ERROR = 3


class Column(NamedTuple):
    """A column of a result, as PEP 249 and the connector describe it."""

    name: str
    type_code: int
    display_size: None = None
    internal_size: None = None
    precision: int | None = None
    scale: int | None = None
    is_nullable: bool = True


_CODES = {"BIGINT": 0, "INTEGER": 0, "HUGEINT": 0, "DOUBLE": 1, "VARCHAR": 2, "DATE": 3, "JSON": 5}
_CODES |= {"TIMESTAMP WITH TIME ZONE": 7, "TIMESTAMP": 8, "BLOB": 11, "TIME": 12, "BOOLEAN": 13}
_INFO = """
    CREATE SCHEMA lynx_info;
    CREATE VIEW lynx_info.tables AS
      SELECT schema_name AS TABLE_SCHEMA, table_name AS TABLE_NAME, 'BASE TABLE' AS TABLE_TYPE,
             estimated_size AS ROW_COUNT, tags['cluster'] AS CLUSTERING_KEY, comment AS COMMENT,
             TIMESTAMPTZ '2026-01-01' AS LAST_ALTERED
      FROM duckdb_tables() WHERE database_name = current_database()
      UNION ALL SELECT schema_name, view_name, 'VIEW', NULL, NULL, comment, NULL
      FROM duckdb_views() WHERE NOT internal AND schema_name <> 'lynx_info';
    CREATE VIEW lynx_info.columns AS
      SELECT schema_name AS TABLE_SCHEMA, table_name AS TABLE_NAME, column_name AS COLUMN_NAME,
             CASE WHEN data_type LIKE 'DECIMAL%' OR data_type IN ('INTEGER', 'BIGINT')
                  THEN 'NUMBER' WHEN data_type = 'VARCHAR' THEN 'TEXT' ELSE data_type END
               AS DATA_TYPE,
             CASE WHEN data_type IN ('INTEGER', 'BIGINT') THEN 38 ELSE numeric_precision END
               AS NUMERIC_PRECISION,
             CASE WHEN data_type LIKE 'DECIMAL%' THEN numeric_scale ELSE 0 END AS NUMERIC_SCALE,
             CASE WHEN is_nullable THEN 'YES' ELSE 'NO' END AS IS_NULLABLE, comment AS COMMENT,
             column_index AS ORDINAL_POSITION
      FROM duckdb_columns() WHERE NOT internal AND schema_name <> 'lynx_info';
"""
_KEYS = """
    SELECT schema_name, table_name, unnest(constraint_column_names),
           unnest(referenced_column_names),
           referenced_table, constraint_name, unnest(range(len(constraint_column_names))) + 1
    FROM duckdb_constraints() WHERE constraint_type = ?
"""


class Account:
    """One account with one database, `SHOP_DB`, whose schema PUBLIC is the session's."""

    def __init__(self, path: str = ":memory:") -> None:
        self.duckdb = duckdb.connect(path, config={"threads": 1})
        self.duckdb.execute(_INFO)
        self.duckdb.execute('CREATE SCHEMA "PUBLIC"')
        self.sizes: dict[str, int] = {}
        self.logins: list[dict[str, Any]] = []
        self.statements: list[str] = []
        self.cancelled: list[str] = []
        self.queries: dict[str, Query] = {}
        self.down = False

    @property
    def running(self) -> int:
        return sum(not query.done.is_set() for query in self.queries.values())

    def driver(self) -> ModuleType:
        """What `import snowflake.connector` gives."""
        module = ModuleType("snowflake.connector")
        module.Error = Error  # type: ignore[attr-defined]
        module.connect = self._connect  # type: ignore[attr-defined]
        return module

    def load(self, statements: Sequence[str]) -> None:
        """Run statements with the owner's rights."""
        for statement in statements:
            self.cursor().execute(self.translated(sqlglot.parse_one(statement, read="snowflake")))

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A cursor whose schema is PUBLIC."""
        return self.duckdb.cursor().execute("SET schema = 'PUBLIC'; SET TimeZone = 'UTC'")

    def translated(self, tree: exp.Expr) -> str:
        """As DuckDB runs it: bare names in upper case, the catalogue's views in their place."""
        tree = normalize_identifiers(tree.copy(), dialect="snowflake")
        for table in tree.find_all(exp.Table):
            table.set("catalog", None)
            if table.db.upper() == "INFORMATION_SCHEMA":
                table.set("db", exp.to_identifier("lynx_info"))
        return tree.sql("duckdb", identify=True)

    def _connect(self, **arguments: Any) -> Connection:
        if self.down:
            raise OperationalError("could not connect to shop.snowflakecomputing.com", 250001)
        self.logins.append(arguments)
        return Connection(self)


class Query:
    """A query that runs in a thread of its own."""

    def __init__(self, account: Account, code: str) -> None:
        self.id, self.done = str(uuid.uuid4()), threading.Event()
        self.description: list[Column] = []
        self.rows: list[tuple[Any, ...]] = []
        self.error: Error | None = None
        self.cancelled = False
        self._cursor = account.cursor()
        self._sql = _understood(account, code)
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        try:
            found = self._cursor.execute(self._sql)
            self.description = [_column(d[0], str(d[1])) for d in found.description or ()]
            kinds = [column.type_code for column in self.description]
            self.rows = [
                tuple(_cell(v, k) for v, k in zip(row, kinds, strict=True))
                for row in found.fetchall()
            ]
        except duckdb.Error as error:
            self.error = _failure(str(error))
            if self.cancelled:
                self.error = ProgrammingError("SQL execution canceled", 604, "57014")
        self.done.set()

    def cancel(self) -> None:
        self.cancelled = True
        while not self.done.wait(0.02):
            self._cursor.interrupt()


class Connection:
    """A session."""

    def __init__(self, account: Account) -> None:
        self.account, self.closed = account, False

    def cursor(self) -> Cursor:
        return Cursor(self.account)

    def close(self) -> None:
        self.closed = True

    def get_query_status_throw_if_error(self, query_id: str) -> QueryStatus:
        query = self.account.queries[query_id]
        if not query.done.is_set():
            return QueryStatus.RUNNING
        if query.error is not None:
            raise query.error
        return QueryStatus.SUCCESS

    @staticmethod
    def is_still_running(status: QueryStatus) -> bool:
        return status is QueryStatus.RUNNING


class Cursor:
    """Runs one statement at a time."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self.sfqid: str | None = None
        self.description: list[Column] = []
        self._rows: list[tuple[Any, ...]] = []

    def execute(self, code: str, parameters: Sequence[Any] | None = None) -> Cursor:
        if parameters is not None:
            code = code % tuple(exp.convert(value).sql("snowflake") for value in parameters)
        self._account.statements.append(code)
        if self._account.down:
            raise OperationalError("the network is down", 250003)
        if match := re.fullmatch(r"SELECT SYSTEM\$CANCEL_QUERY\('(.*)'\)", code):
            self._account.cancelled.append(match[1])
            self._account.queries[match[1]].cancel()
        elif match := re.fullmatch(r"EXPLAIN USING JSON (.*)", code, re.S):
            self._take([("content", "VARCHAR")], [(json.dumps(self._plan(match[1])),)])
        elif match := re.fullmatch(r"SHOW (PRIMARY|IMPORTED) KEYS IN (?:DATABASE|SCHEMA) .*", code):
            self._keys(match[1])
        else:
            self._wait(Query(self._account, code))
        return self

    def execute_async(self, code: str) -> dict[str, str]:
        self._account.statements.append(code)
        if self._account.down:
            raise OperationalError("the network is down", 250003)
        query = Query(self._account, code)
        self._account.queries[query.id] = query
        self.sfqid = query.id
        return {"queryId": query.id}

    def get_results_from_sfqid(self, query_id: str) -> None:
        self._wait(self._account.queries[query_id])

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        rows, self._rows = self._rows[:size], self._rows[size:]
        return rows

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(iter(self.fetchmany(1)), None)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.fetchmany(len(self._rows))

    def close(self) -> None:
        """A cursor holds nothing."""

    def _wait(self, query: Query) -> None:
        query.done.wait()
        if query.error is not None:
            raise query.error
        self.description, self._rows = query.description, query.rows

    def _take(self, columns: Sequence[tuple[str, str]], rows: list[tuple[Any, ...]]) -> None:
        self.description = [_column(name, kind) for name, kind in columns]
        self._rows = rows

    def _plan(self, code: str) -> dict[str, Any]:
        sql = _understood(self._account, code)
        tree = sqlglot.parse_one(code, read="snowflake")
        if not isinstance(tree, exp.Query | exp.DML | exp.Create):
            raise ProgrammingError("SQL compilation error: unexpected '<EOF>'.", 1003, "42000")
        if isinstance(tree, exp.Query):
            try:
                self._account.cursor().execute(f"EXPLAIN {sql}")
            except duckdb.Error as error:
                raise _failure(str(error)) from None
        names = [table.name.upper() for table in tree.find_all(exp.Table)]
        size = sum(self._account.sizes.get(name, 0) for name in names)
        first = "Result" if isinstance(tree, exp.Query) else type(tree).__name__
        operations = [first, *("TableScan" for _ in names)]
        return {
            "GlobalStats": {"partitionsTotal": 1, "partitionsAssigned": 1, "bytesAssigned": size},
            "Operations": [[{"id": i, "operation": name} for i, name in enumerate(operations)]],
        }

    def _keys(self, kind: str) -> None:
        constraint = "PRIMARY KEY" if kind == "PRIMARY" else "FOREIGN KEY"
        found = self._account.cursor().execute(_KEYS, [constraint]).fetchall()
        if kind == "PRIMARY":
            names = ("schema_name", "table_name", "column_name", "key_sequence")
            rows = [(row[0], row[1], row[2], row[6]) for row in found]
        else:
            names = (
                *("pk_database_name", "fk_database_name", "pk_schema_name", "pk_table_name"),
                *("pk_column_name", "fk_schema_name", "fk_table_name", "fk_column_name"),
                *("key_sequence", "fk_name"),
            )
            rows = [
                ("SHOP_DB", "SHOP_DB", r[0], r[4], r[3], r[0], r[1], r[2], r[6], r[5])
                for r in found
            ]
        self._take([(name, "VARCHAR") for name in names], rows)


def _understood(account: Account, code: str) -> str:
    """For DuckDB; a session takes one statement at a time (MULTI_STATEMENT_COUNT = 1)."""
    try:
        trees = [tree for tree in sqlglot.parse(code, read="snowflake") if tree is not None]
    except SqlglotError as error:
        raise ProgrammingError(
            f"SQL compilation error: syntax error {error}", 1003, "42000"
        ) from None
    if len(trees) != 1:
        text = f"Actual statement count {len(trees)} did not match the desired statement count 1."
        raise ProgrammingError(text, 8, "0A000")
    return account.translated(trees[0])


def _failure(message: str) -> ProgrammingError:
    if match := re.search(r"Table with name (\S+) does not exist", message):
        text = f"SQL compilation error:\nObject '{match[1]}' does not exist or not authorized."
        return ProgrammingError(text, 2003, "42S02")
    if match := re.search(r'(?:Referenced column|reference to column name) "([^"]+)"', message):
        at = "SQL compilation error: error line 1 at position 7\n"
        ambiguous = "ambiguous column name" if "Ambiguous" in message else "invalid identifier"
        return ProgrammingError(f"{at}{ambiguous} '{match[1]}'", 904, "42000")
    if match := re.search(r"Function with name (\S+) does not exist", message):
        return ProgrammingError(
            f"SQL compilation error:\nUnknown function {match[1]}", 2140, "42601"
        )
    if "Parser Error" in message:
        return ProgrammingError("SQL compilation error:\nsyntax error line 1", 1003, "42000")
    return ProgrammingError(message.split("\n")[0], 100038, "22018")


def _column(name: str, kind: str) -> Column:
    if kind.endswith("[]"):
        return Column(name, 10)
    if kind.startswith(("STRUCT", "MAP")):
        return Column(name, 9)
    sizes = re.fullmatch(r"DECIMAL\((\d+),\s?(\d+)\)", kind)
    if sizes:
        return Column(name, 0, precision=int(sizes[1]), scale=int(sizes[2]))
    return Column(name, _CODES.get(kind, 2), scale=0)


def _cell(value: Any, kind: int) -> Any:
    """As the connector gives it: lists and structs as text, binary as a bytearray."""
    if value is not None and kind in (9, 10):
        return json.dumps(value, indent=2, default=str)
    if isinstance(value, bytes):
        return bytearray(value)
    if (
        isinstance(value, Decimal)
        and value == value.to_integral()
        and value.as_tuple().exponent == 0
    ):
        return int(value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.timezone(dt.timedelta(hours=2)))
    return value


def settle(account: Account, seconds: float = 2.0) -> int:
    """Queries that still run after they were given time to end."""
    end = time.monotonic() + seconds
    while account.running and time.monotonic() < end:
        time.sleep(0.02)
    return account.running

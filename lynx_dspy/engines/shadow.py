"""An empty twin of a schema, in memory: the engine's own word on whether a program compiles.

Nothing of the user's database is read and no program is run: SQLite and DuckDB only prepare it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from functools import cache, lru_cache

from lynx_dspy.values import Schema

COMPILED = frozenset({"sqlite", "duckdb"})
"""Dialects whose engine is in process and has the last word."""

Verdict = Callable[[str], str]
"""Takes a program, gives the engine's complaint in one line, or "" when it compiles."""


@lru_cache(maxsize=16)
def shadow(schema: Schema) -> Verdict | None:
    """The compiler of the schema's dialect.

    None for dialects without an engine in process, and for a schema that the engine cannot copy:
    half a copy would call right programs wrong.
    """
    maker = {"sqlite": _sqlite, "duckdb": _duckdb}.get(schema.dialect)
    return maker(schema) if maker else None


@cache
def known_functions(dialect: str) -> frozenset[str] | None:
    """Names of all functions of the engine in process, folded; None where there is no engine."""
    if dialect == "sqlite":
        with sqlite3.connect(":memory:") as connection:
            rows = connection.execute("SELECT DISTINCT name FROM pragma_function_list").fetchall()
        return frozenset(name.casefold() for (name,) in rows)
    if dialect == "duckdb":
        import duckdb

        with duckdb.connect() as engine:
            rows = engine.execute(
                "SELECT DISTINCT function_name FROM duckdb_functions()"
            ).fetchall()
        return frozenset(name.casefold() for (name,) in rows)
    return None


def _sqlite(schema: Schema) -> Verdict | None:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    lock = threading.Lock()
    try:
        for table in schema.tables:
            columns = ", ".join(_quoted(c.name) for c in table.columns)
            connection.execute(f"CREATE TABLE IF NOT EXISTS {_quoted(table.name)} ({columns})")
    except (sqlite3.Error, ValueError):
        return None

    def verdict(code: str) -> str:
        try:
            with lock:
                connection.execute(f"EXPLAIN {code}").close()
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            return "" if _only_at_home(str(error)) else " ".join(str(error).split())
        return ""

    return verdict


def _only_at_home(message: str) -> bool:
    """True for complaints that a virtual table or a bound value would settle."""
    return "MATCH in the requested context" in message or "bindings supplied" in message


def _duckdb(schema: Schema) -> Verdict | None:
    import duckdb

    engine = duckdb.connect(
        config={"enable_external_access": "false", "threads": "1", "memory_limit": "256MB"}
    )
    engine.execute("PRAGMA disable_optimizer")
    lock = threading.Lock()
    try:
        for space in {table.namespace for table in schema.tables if table.namespace}:
            engine.execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted(space)}")
        for table in schema.tables:
            name = ".".join(_quoted(part) for part in (table.namespace, table.parts[-1]) if part)
            columns = ", ".join(f"{_quoted(c.name)} {_duckdb_type(c.type)}" for c in table.columns)
            engine.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
    except duckdb.Error:
        return None

    def verdict(code: str) -> str:
        try:
            with lock:
                engine.execute(f"EXPLAIN {code}")
        except duckdb.Error as error:
            return " ".join(str(error).split("\n\n")[0].split())
        return ""

    return verdict


@cache
def _duckdb_type(name: str) -> str:
    """The type as DuckDB spells it; text for a type that it does not know."""
    import duckdb

    try:
        return str(duckdb.sqltype(name))
    except duckdb.Error:
        return "VARCHAR"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

"""How long servers take: `python -m bench.servers` starts them, measures, and prints a table.

Introspection of 1,000 tables of ten columns, the same with samples, a short program over the
worker process, and what passes between a program's deadline and its end: for the caller, and on
the server.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable

from bench.services import MariaDB, Postgres, Service, Unavailable
from lynx_dspy.engines import connect
from lynx_dspy.engines.base import Database
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.values import Limits

TABLES = 1_000
_DEADLINE = 0.5
_REPEATS = 5
_WORKING = {
    "Postgres": "SELECT COUNT(*) FROM pg_stat_activity "
    "WHERE state = 'active' AND usename = 'lynx_reader'",
    "MariaDB": "SELECT COUNT(*) FROM information_schema.processlist "
    "WHERE command = 'Query' AND user = 'lynx_reader'",
}
_ENDLESS = "SELECT COUNT(*) FROM numbers a, numbers b, numbers c WHERE a.n + b.n + c.n = 7"


def main() -> None:
    """Print one line a server."""
    print(
        "| server | introspect 1,000 tables | with samples | `SELECT 1` | stop: caller | server |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    for kind in (Postgres, MariaDB):
        try:
            with kind() as service:
                print(_line(service))
        except Unavailable as reason:
            print(f"| {kind.__name__} | not here: {reason} | | | | |")


def _line(service: Service) -> str:
    service.run(_statements())
    with connect(service.url().render_as_string(hide_password=False)) as database:
        structure = _seconds(database.introspect)
        sampled = _seconds(lambda: abstract(database))
        database.execute("SELECT 1")
        short = statistics.median(_seconds(lambda: database.execute("SELECT 1")) for _ in range(50))
        stops = [_stop(service, database) for _ in range(_REPEATS)]
    caller, server = (statistics.median(side) for side in zip(*stops, strict=True))
    name = type(service).__name__
    times = f"{structure:.2f} s | {sampled:.2f} s | {short * 1000:.1f} ms"
    return f"| {name} | {times} | {caller:.2f} s | {server:.2f} s |"


def _statements() -> list[str]:
    columns = ", ".join(f"c{i} varchar(20)" for i in range(8))
    tables = [
        f"CREATE TABLE t{i} (id integer PRIMARY KEY, other_id integer, {columns}, "
        f"FOREIGN KEY (other_id) REFERENCES t{max(0, i - 1)} (id))"
        for i in range(TABLES)
    ]
    tens = " UNION ALL ".join(f"SELECT {i} AS d" for i in range(10))
    digits = ", ".join(f"({tens}) AS x{i}" for i in range(4))
    number = "x0.d + 10 * x1.d + 100 * x2.d + 1000 * x3.d"
    return [*tables, f"CREATE TABLE numbers AS SELECT {number} AS n FROM {digits}"]


def _stop(service: Service, database: Database) -> tuple[float, float]:
    """Seconds from a runaway program's deadline until the caller and the server are free."""
    freed: list[float] = []
    working = _WORKING[type(service).__name__]

    def watch() -> None:
        with service.engine().connect() as connection:
            time.sleep(_DEADLINE)
            while connection.exec_driver_sql(working).scalar_one():
                time.sleep(0.01)
            freed.append(time.perf_counter() - started)

    watcher = threading.Thread(target=watch)
    started = time.perf_counter()
    watcher.start()
    database.execute(_ENDLESS, Limits(timeout_seconds=_DEADLINE))
    caller = time.perf_counter() - started
    watcher.join()
    return caller - _DEADLINE, freed[0] - _DEADLINE


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()

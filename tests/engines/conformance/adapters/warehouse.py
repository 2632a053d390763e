"""What the adapters of the warehouses share: their servers are DuckDB behind a faked interface."""

from __future__ import annotations

import re
from collections.abc import Mapping

import duckdb

_FAKED = "tried on a faked server"
FAKED: Mapping[str, str] = {
    "reconnect": f"{_FAKED}: each request is its own",
    "unavailable": f"{_FAKED}: its errors are in its own tests",
    "secrets": "keys are read from the environment alone; in its own tests",
    "privileges": f"{_FAKED}: the owner of the warehouse grants what a login may read",
    "partitions": f"{_FAKED}: its own tests read partitions and clustering",
    "fingerprint": f"{_FAKED}: in its own tests",
}
"""What is shown elsewhere, or cannot be shown without an account."""


def sequence_of(select: str) -> str:
    """`SELECT a, b` with a name for each column, where an engine refuses two unnamed ones.

    >>> sequence_of("SELECT 1, f(2, 3)")
    'SELECT 1 AS c0, f(2, 3) AS c1'
    """
    body = select.removeprefix("SELECT ")
    parts = re.split(r",\s*(?![^()]*\))(?=(?:[^']*'[^']*')*[^']*$)", body)
    return "SELECT " + ", ".join(f"{part.strip()} AS c{i}" for i, part in enumerate(parts))


def contents(connection: duckdb.DuckDBPyConnection) -> str:
    """Every table with its rows, and the names of everything else."""
    cursor = connection.cursor()
    names = cursor.execute(
        "SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL"
    ).fetchall()
    rows = [
        cursor.execute(f'SELECT * FROM "{space}"."{name}" ORDER BY ALL').fetchall()
        for space, name in names
        if space != "lynx_info"
    ]
    return repr((names, rows))

"""`pandas`: the dialect of databases whose programs are Python over DataFrames.

The tables are DuckDB's, so names are quoted and samples are read as DuckDB does; sqlglot knows the
dialect by the name of this class. Programs are no SQL and are never parsed by it.
"""

from __future__ import annotations

from sqlglot.dialects.duckdb import DuckDB

PANDAS = "pandas"


class Pandas(DuckDB):
    """DuckDB under the name of the library that programs are written with."""

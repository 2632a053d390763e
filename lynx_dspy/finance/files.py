"""Panels on disk: CSV and Parquet files as one long frame, read by DuckDB."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import duckdb
import pandas as pd

from lynx_dspy.errors import BadInput

_ENDINGS = {".csv": "read_csv", ".parquet": "read_parquet"}


def read_long(path: Path, wanted: Collection[str] | None) -> pd.DataFrame:
    """One row a date and stock, with the `wanted` columns, all if None. Raises `BadInput`."""
    dated: list[pd.DataFrame] = []
    undated: list[pd.DataFrame] = []
    with duckdb.connect() as connection:
        for file in _files(path):
            frame = _read(connection, file, wanted)
            if frame is not None:
                (dated if "date" in frame.columns else undated).append(frame)
    if not dated:
        raise BadInput(f"No file of {str(path)!r} has the columns date and code and one wanted.")
    long = dated[0]
    for frame in dated[1:]:
        long = _beside(long, frame)
    for frame in undated:
        long = long.merge(frame, on="code", how="left", validate="many_to_one")
    return long


def _beside(long: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """Both frames by date and code; those that list the same rows alike need no join."""
    keys = ["date", "code"]
    if len(long) == len(frame) and all(long[key].equals(frame[key]) for key in keys):
        return pd.concat([long, frame.drop(columns=keys)], axis=1)
    return long.merge(frame, on=keys, how="outer", validate="one_to_one")


def _files(path: Path) -> list[Path]:
    if path.is_file() and path.suffix.lower() in _ENDINGS:
        return [path]
    found = [f for f in sorted(path.glob("*")) if f.suffix.lower() in _ENDINGS and f.is_file()]
    if not found:
        raise BadInput(f"No panel at {str(path)!r}. Give CSV or Parquet, a file or a folder.")
    return found


def _read(
    connection: duckdb.DuckDBPyConnection, file: Path, wanted: Collection[str] | None
) -> pd.DataFrame | None:
    """The wanted columns of a file that has `code` and at least one of them, by folded names."""
    reader = getattr(connection, _ENDINGS[file.suffix.lower()])
    try:
        table: duckdb.DuckDBPyRelation = reader(str(file))
        names = {column: column.strip().casefold() for column in table.columns}
        keys = {"date", "code"}
        kept = {
            column: name
            for column, name in names.items()
            if name in keys or wanted is None or name in wanted
        }
        if "code" not in kept.values() or keys.issuperset(kept.values()):
            return None
        columns = [duckdb.ColumnExpression(column).alias(name) for column, name in kept.items()]
        frame: pd.DataFrame = table.select(*columns).df()
    except duckdb.Error as error:
        raise BadInput(f"Cannot read {str(file)!r}: {str(error).splitlines()[0][:200]}") from error
    return frame

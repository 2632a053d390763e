"""A folder of CSV, TSV or Parquet files as DataFrames that Python programs work on.

What the folder holds is read as in `files.py`, so schema, types and samples are the same for both
languages. Each table is handed to programs as a Parquet file; they run in the sandbox.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import duckdb

from lynx_dspy.engines.duckdb_schema import quote
from lynx_dspy.engines.failures import one_line
from lynx_dspy.engines.files import FilesDatabase
from lynx_dspy.engines.python.dialect import PANDAS
from lynx_dspy.engines.python.failures import outcome_of
from lynx_dspy.engines.python.guard import refusal
from lynx_dspy.engines.python.sandbox import Sandbox, SandboxFault
from lynx_dspy.errors import DatabaseError
from lynx_dspy.values import Limits, Outcome, Schema, Status


class FramesDatabase(FilesDatabase):
    """The files of a folder, or one file; its programs are Python, its trusted queries DuckDB's."""

    dialect = PANDAS

    def __init__(self, path: Path) -> None:
        if sys.platform == "win32":
            raise DatabaseError("Python programs need Linux or macOS. Use files:/// and SQL.")
        super().__init__(path)
        self.url = f"frames:///{path}"
        try:
            self._sandbox = Sandbox(self._exported())
        except (duckdb.Error, OSError, SandboxFault) as error:
            super().close()
            raise DatabaseError(f"{path}: {one_line(str(error))}") from error

    def introspect(self) -> Schema:
        return replace(super().introspect(), dialect=self.dialect)

    def execute(self, code: str, limits: Limits | None = None) -> Outcome:
        refused = refusal(code)
        if refused:
            return refused
        limits = limits or Limits()
        gone = next((file for file in self._files if not file.exists()), None)
        if gone:
            return Outcome(Status.UNAVAILABLE, error=f"{gone} is no longer there")
        started = time.perf_counter()
        try:
            return outcome_of(self._sandbox.run(code, limits), limits)
        except SandboxFault as fault:
            seconds = time.perf_counter() - started
            return Outcome(Status.UNAVAILABLE, error=str(fault), seconds=seconds)

    def close(self) -> None:
        self._sandbox.close()
        super().close()

    def _exported(self) -> dict[str, Path]:
        """A Parquet file for each table, read-only; those of the folder itself as they are."""
        folder = Path(self._scratch.name) / "tables"
        folder.mkdir()
        own = {f.stem: f for f in self._files if f.suffix.lower() == ".parquet"}
        built = str(Path(self._scratch.name) / "files.duckdb")
        with duckdb.connect(built, read_only=True) as connection:
            listed = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
            made = {name: folder / f"{place}.parquet" for place, (name,) in enumerate(listed)}
            for name, file in made.items():
                target = "'" + str(file).replace("'", "''") + "'"
                connection.execute(f"COPY {quote(name)} TO {target} (FORMAT parquet)")
        for file in made.values():
            file.chmod(0o400)
        return own | made

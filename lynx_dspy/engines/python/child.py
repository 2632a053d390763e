"""The sandboxed side: one program, run once in a process that was forked for it.

Everything that the process needs is opened before the program runs; what it leaves are two files,
`result` (Arrow IPC) and `report` (JSON). Both are written by a process that ran untrusted code, so
whoever reads them takes nothing in them for granted (`reading.py`).
"""

from __future__ import annotations

import builtins
import contextlib
import io
import json
import linecache
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import ipc, parquet

from lynx_dspy.engines.python import confine, results
from lynx_dspy.engines.python.allowed import BUILTINS_DENIED, is_module_allowed
from lynx_dspy.engines.python.audit import Denied
from lynx_dspy.engines.python.kernel import die_with_parent

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as DuckDB

PROGRAM = "<program>"
RESULT_FILE, REPORT_FILE, SCRATCH = "result", "report", "scratch"

_DUCKDB: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "1GB",
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
}
_ZONES = "/usr/share/zoneinfo"
_LONGEST_ERROR = 1_000


@dataclass(frozen=True, slots=True)
class Job:
    """One program with its tables (name -> Parquet file), a folder of its own and its limits."""

    code: str
    folder: str
    tables: dict[str, str]
    seconds: float
    max_rows: int
    max_cell_chars: int
    memory: int
    file: int
    printed: int


@dataclass(slots=True)
class Told:
    """What the process says of itself; `error` is empty for a program that ran to its end."""

    kind: str = ""
    error: str = ""
    line: int = 0
    source: str = ""
    printed: str = ""
    layers: dict[str, str] = field(default_factory=dict)


class Printed(io.TextIOBase):
    """Standard output that keeps its beginning and forgets the rest."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._kept: list[str] = []

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        if self._most > 0:
            self._kept.append(text[: self._most])
            self._most -= len(text)
        return len(text)

    @property
    def text(self) -> str:
        return "".join(self._kept)


class Tables(Mapping[str, pd.DataFrame]):
    """The database: each table is read when it is first asked for."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = dict(files)
        self._read: dict[str, pd.DataFrame] = {}

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name not in self._read:
            if name not in self._files:
                raise KeyError(name)
            self._read[name] = read_table(self._files[name])
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def read_table(path: str) -> pd.DataFrame:
    """A Parquet file as a frame: dates as datetime64, decimals as floats, text as str."""
    table = parquet.read_table(path, use_threads=False)
    plain = [
        pa.field(f.name, pa.float64() if pa.types.is_decimal(f.type) else f.type)
        for f in table.schema
    ]
    frame: pd.DataFrame = table.cast(pa.schema(plain)).to_pandas(
        date_as_object=False, use_threads=False
    )
    return frame


def run(job: Job, keep: int) -> None:
    """Confine this process, run the program, write what became of it. Does not return.

    `keep` is a descriptor that stays open as long as the process lives.
    """
    folder = Path(job.folder)
    report, result = _created(folder / REPORT_FILE), _created(folder / RESULT_FILE)
    _detach(folder / SCRATCH, keep=(report, result, keep))
    told = Told()
    engine = _engine() if "sql" in job.code else None
    readable = [*readable_folders(), *(Path(file) for file in job.tables.values())]
    caps = confine.Caps(job.memory, job.file, int(job.seconds) + 1)
    told.layers = confine.confine([*readable, folder / SCRATCH], caps)
    printed = sys.stdout = sys.stderr = Printed(job.printed)
    try:
        table = _table(job, engine)
        with os.fdopen(result, "wb") as sink, ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    except BaseException as error:  # noqa: BLE001 - a program may raise SystemExit or its own
        _tell(told, error, job.code)
    told.printed = printed.text
    os.write(report, json.dumps(asdict(told)).encode("utf-8", errors="replace"))
    os._exit(0)


def readable_folders() -> list[Path]:
    """What Python needs to import with, and the time zones."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    places = {Path(sysconfig.get_path(name)).resolve() for name in names}
    package = Path(__file__).resolve().parents[2]
    return [*sorted(places), package, Path(_ZONES)]


def _created(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _detach(scratch: Path, keep: tuple[int, ...]) -> None:
    """Leave the parent's group, pipes and folder."""
    os.setsid()
    with contextlib.suppress(OSError):
        die_with_parent()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    position = 3
    for kept in sorted(keep):
        os.closerange(position, kept)
        position = kept + 1
    os.closerange(position, 1 << 12)
    os.chdir(scratch)
    os.environ.clear()
    os.environ |= {"HOME": str(scratch), "TMPDIR": str(scratch)}


def _table(job: Job, engine: DuckDB | None) -> pa.Table:
    linecache.cache[PROGRAM] = (len(job.code), None, job.code.splitlines(True), PROGRAM)
    scope = scope_for(job, engine)
    code = compile(job.code, PROGRAM, "exec", dont_inherit=True)
    exec(code, scope)
    if results.RESULT not in scope:
        raise NoResult
    frame = results.to_frame(scope[results.RESULT])
    return results.to_arrow(frame, job.max_rows, job.max_cell_chars)


class NoResult(Exception):
    """The program did not assign `result`."""

    def __str__(self) -> str:
        return f"the program ended without assigning `{results.RESULT}`"


def scope_for(job: Job, engine: DuckDB | None = None) -> dict[str, Any]:
    """The program's names: its tables as frames, `tables`, `sql` and guarded builtins."""
    tables = Tables(job.tables)
    scope: dict[str, Any] = {
        "__name__": "__main__",
        "__builtins__": _guarded_builtins(),
        "tables": tables,
    }
    if engine is not None:
        scope["sql"] = _sql(engine, tables, scope)
    scope |= {n: tables[n] for n in job.tables if n.isidentifier() and n in job.code}
    return scope


def _guarded_builtins() -> dict[str, Any]:
    kept = {name: value for name, value in vars(builtins).items() if name not in BUILTINS_DENIED}
    return kept | {"__import__": _guarded_import}


def _guarded_import(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: tuple[str, ...] = (),
    level: int = 0,
) -> object:
    if level or not is_module_allowed(name):
        raise Denied(f"import of {name}")
    return __import__(name, globals, locals, fromlist, level)


def _engine() -> DuckDB:
    """DuckDB, opened while it may still look at the machine; it gets no further than memory."""
    import duckdb

    return duckdb.connect(":memory:", config=_DUCKDB)


def _sql(engine: DuckDB, tables: Tables, scope: Mapping[str, Any]) -> Callable[[str], pd.DataFrame]:
    """`sql("SELECT ...")` over the tables and the program's own frames."""

    def sql(query: str) -> pd.DataFrame:
        own = {n: v for n, v in scope.items() if isinstance(v, pd.DataFrame) and n in query}
        others = {n: tables[n] for n in tables if n in query and n not in own}
        for name, frame in (others | own).items():
            engine.register(name, frame)
        found: pd.DataFrame = engine.sql(query).df()
        return found

    return sql


def _tell(told: Told, error: BaseException, code: str) -> None:
    told.kind = type(error).__name__
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if isinstance(error, SyntaxError):
        told.line, text = error.lineno or 0, error.msg
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == PROGRAM:
            told.line = line
    lines = code.splitlines()
    if 0 < told.line <= len(lines):
        told.source = lines[told.line - 1].strip()[:200]
    told.error = text[:_LONGEST_ERROR]


_WARM = (np, pd)
"""Imported by the zygote, so that no program waits for them."""

"""CSV, TSV and Parquet files as one DuckDB database: a table for each file, named after it.

A small DuckDB file is built in a temporary folder and then opened like any other, so that the same
walls hold. CSV is loaded, as it must be parsed anyway and types should not change between
queries. Parquet stays where it is behind a view, however big: DuckDB 2.0.1 reads the files in
`allowed_paths` (measured) while `enable_external_access` is off.
"""

from __future__ import annotations

import codecs
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb

from lynx_dspy.engines.duckdb import DuckDBDatabase
from lynx_dspy.engines.duckdb_schema import quote
from lynx_dspy.engines.duckdb_worker import Setup
from lynx_dspy.engines.failures import one_line
from lynx_dspy.engines.locate import TABLE_ENDINGS, fingerprint, read_head
from lynx_dspy.errors import DatabaseError
from lynx_dspy.values import Schema

_GLOB_SIGNS = frozenset("*?[]{}")
_CITED_LINE = re.compile(r"^Original Line: .*\n", re.M)
_CHUNK = 1 << 20
_SEPARATORS = frozenset(",;|\t")
_FORM = "header=true, max_line_size=16000000"
_PADDED = f"{_FORM}, null_padding=true, strict_mode=false, parallel=false"
_READERS = (
    f"read_csv({{path}}, {_FORM}, sample_size=-1{{delimiter}})",
    f"read_csv({{path}}, {_PADDED}, sample_size=-1{{delimiter}})",
    f"read_csv({{path}}, {_PADDED}, all_varchar=true{{delimiter}})",
)
"""Typed and strict first; then with ragged rows filled up; then all text."""


class FilesDatabase(DuckDBDatabase):
    """A folder of CSV, TSV or Parquet files, or one such file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"files:///{path}"
        self.name = path.stem if path.is_file() else path.name
        self._files = tuple(_table_files(path))
        self._scratch = tempfile.TemporaryDirectory(prefix="lynx-")
        scratch = Path(self._scratch.name)
        built = scratch / "files.duckdb"
        try:
            readable = {name: _readable(file, scratch) for name, file in _named(self._files)}
            _build(built, readable)
        except (DatabaseError, duckdb.Error) as error:
            self._scratch.cleanup()
            if isinstance(error, DatabaseError):
                raise
            raise DatabaseError(f"{path}: {one_line(str(error))}") from error
        parquet = tuple(str(file) for file in readable.values() if _is_parquet(file))
        self._open(Setup(str(built), parquet, str(scratch / "spill")))

    def introspect(self) -> Schema:
        """Views over Parquet count as tables: their row counts stand in the files' footers."""
        schema = super().introspect()
        tables = tuple(
            replace(
                table,
                is_view=False,
                row_count=self.query(f"SELECT count(*) FROM {quote(table.name)}")[0][0],
            )
            if table.is_view
            else table
            for table in schema.tables
        )
        return replace(schema, tables=tables)

    def fingerprint(self) -> str:
        return fingerprint(self._files)


def _table_files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    try:
        entries = sorted(path.iterdir())
    except OSError as error:
        raise DatabaseError(f"Cannot read the folder {path}: {error.strerror}.") from error
    entries = [e for e in entries if not e.name.startswith(".")]
    files = [e for e in entries if e.suffix.lower() in TABLE_ENDINGS and e.is_file()]
    if not files:
        raise DatabaseError(
            f"The folder {path} holds no tables. Known: {', '.join(TABLE_ENDINGS)} files in the "
            "folder itself."
        )
    yield from files


def _named(files: tuple[Path, ...]) -> Iterator[tuple[str, Path]]:
    seen: dict[str, Path] = {}
    for file in files:
        other = seen.setdefault(file.stem.casefold(), file)
        if other is not file:
            raise DatabaseError(
                f"{other.name} and {file.name} would both be the table {file.stem!r}. Rename one."
            )
        yield file.stem, file


def _readable(file: Path, scratch: Path) -> Path:
    """The file itself, or a copy that DuckDB can read: UTF-8, and no glob signs in its path."""
    head = read_head(file)
    if not head:
        raise DatabaseError(f"{file} is empty (0 bytes). Remove it, or give it a header line.")
    stand_in = scratch / f"{len(list(scratch.iterdir()))}{file.suffix.lower()}"
    if _is_parquet(file):
        if not head.startswith(b"PAR1"):
            raise DatabaseError(f"{file} is not a Parquet file: it does not begin with PAR1.")
        if _GLOB_SIGNS.isdisjoint(str(file)):
            return file
        stand_in.symlink_to(file)
        return stand_in
    encoding = _encoding(file, head)
    if encoding == "utf-8" and _GLOB_SIGNS.isdisjoint(str(file)):
        return file
    with (
        file.open(encoding=encoding, newline="") as source,
        stand_in.open("w", encoding="utf-8", newline="") as target,
    ):
        shutil.copyfileobj(source, target, _CHUNK)
    return stand_in


def _encoding(file: Path, head: bytes) -> str:
    """By byte order mark; else the first that decodes all of it, and latin-1 has every byte."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in head:
        raise DatabaseError(
            f"{file} holds zero bytes, so it is not CSV text. Save it as UTF-8 text."
        )
    return next(name for name in ("utf-8", "cp1252", "latin-1") if _decodes(file, name))


def _decodes(file: Path, encoding: str) -> bool:
    try:
        with file.open(encoding=encoding, newline="") as text:
            while text.read(_CHUNK):
                continue
    except UnicodeDecodeError:
        return False
    return True


def _build(target: Path, files: dict[str, Path]) -> None:
    with duckdb.connect(str(target), config={"python_enable_replacements": "false"}) as connection:
        for name, file in files.items():
            source = "'" + str(file).replace("'", "''") + "'"
            try:
                if _is_parquet(file):
                    sql = f"CREATE VIEW {quote(name)} AS SELECT * FROM read_parquet({source})"
                    connection.execute(sql)
                else:
                    _load(connection, name, file, source)
            except duckdb.Error as error:
                reason = one_line(_CITED_LINE.sub("", str(error)))
                raise DatabaseError(f"The file of {name!r} cannot be read: {reason}") from error


def _load(connection: duckdb.DuckDBPyConnection, name: str, file: Path, source: str) -> None:
    delimiter = ", delim='\t'" if file.suffix.lower() == ".tsv" else ""
    for position, reader in enumerate(_READERS, 1):
        last = position == len(_READERS)
        try:
            read = reader.format(path=source, delimiter=delimiter)
            connection.execute(f"CREATE OR REPLACE TABLE {quote(name)} AS SELECT * FROM {read}")
            if last or not _is_unsplit(connection, name):
                return
        except (duckdb.InvalidInputException, duckdb.ConversionException):
            if last:
                raise


def _is_unsplit(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    """One ragged row is enough for DuckDB to take whole lines as one column, such as `a,b,c`."""
    columns = connection.table(quote(name)).columns
    return len(columns) == 1 and not _SEPARATORS.isdisjoint(columns[0])


def _is_parquet(file: Path) -> bool:
    return file.suffix.lower() == ".parquet"

"""The trusting side's end: what a sandboxed process left behind, read as from a stranger.

The files are capped in size, the report is JSON of known fields, the result is Arrow IPC that is
validated in full and may hold plain types only. Nothing is unpickled.
"""

from __future__ import annotations

import datetime
import json
import os
import stat
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from lynx_dspy.engines.limits import collect
from lynx_dspy.values import Limits, Row

_REPORT_BYTES = 1_000_000
_MOST_COLUMNS = 2_000
_MOST_NESTED = 1_000_000
_BATCH = 1_000
_HEADER, _COMPRESSION = 8, 10
"""Slots in the vtables of a message and of a record batch."""


class Unreadable(Exception):
    """The process left nothing, or something that is no result."""


@dataclass(frozen=True, slots=True)
class Report:
    """What the process says of itself. None of it is certain: the program may have written it."""

    kind: str = ""
    error: str = ""
    line: int = 0
    source: str = ""
    printed: str = ""
    layers: dict[str, str] = field(default_factory=dict)


def read_report(path: Path) -> Report:
    """The report, each field of its own type. Raises `Unreadable`."""
    try:
        given = json.loads(_bytes(path, _REPORT_BYTES).decode("utf-8", errors="replace"))
    except (ValueError, RecursionError) as error:
        raise Unreadable("the process left no readable report") from error
    if not isinstance(given, dict):
        raise Unreadable("the process left no readable report")
    texts = {n: str(given.get(n, "")) for n in ("kind", "error", "source", "printed")}
    line, layers = given.get("line"), given.get("layers")
    return Report(
        **texts,
        line=line if isinstance(line, int) else 0,
        layers={str(k): str(v) for k, v in layers.items()} if isinstance(layers, dict) else {},
    )


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows, cut to the limits."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    truncated: bool


def read_result(path: Path, limits: Limits, most_bytes: int) -> Table:
    """The rows in Arrow IPC. Raises `Unreadable` for anything that is not a table of plain types.

    Missing values are None; a column of timestamps that are all midnight is one of dates.
    """
    content = pa.py_buffer(_bytes(path, most_bytes))
    try:
        _require_uncompressed(content)
        with ipc.open_stream(content) as reader:
            _require_plain(reader.schema)
            table = reader.read_all()
        table.validate(full=True)
        chunks = (chunk for column in table.columns for chunk in column.chunks)
        if sum(map(_nested, chunks)) > _MOST_NESTED:
            raise Unreadable("the result has too many values in lists")
        rows, truncated = collect(_rows(table), limits)
    except (pa.ArrowException, OSError, MemoryError, ValueError, OverflowError) as error:
        raise Unreadable(f"the result is no readable table: {str(error)[:200]}") from error
    return Table(tuple(map(str, table.column_names)), rows, truncated)


def _require_uncompressed(content: pa.Buffer) -> None:
    """A few compressed bytes could become gigabytes; the sandbox writes none."""
    for message in ipc.MessageReader.open_stream(content):
        if message.type == "record batch" and is_compressed(message.metadata.to_pybytes()):
            raise Unreadable("the result is compressed")


def is_compressed(metadata: bytes) -> bool:
    """Whether a record batch's flatbuffer has a `compression` field (Arrow's `Message.fbs`).

    Raises `Unreadable` for offsets that lead out of it.
    """

    def table_at(place: int) -> int:
        return place + int(struct.unpack_from("<I", metadata, place)[0])

    def field_at(table: int, slot: int) -> int:
        vtable = table - int(struct.unpack_from("<i", metadata, table)[0])
        (size,) = struct.unpack_from("<H", metadata, vtable)
        offset = struct.unpack_from("<H", metadata, vtable + slot)[0] if slot < size else 0
        return table + int(offset) if offset else 0

    try:
        header = field_at(table_at(0), _HEADER)
        return bool(header) and bool(field_at(table_at(header), _COMPRESSION))
    except struct.error as error:
        raise Unreadable("the result is no readable table") from error


def _require_plain(schema: pa.Schema) -> None:
    if len(schema) > _MOST_COLUMNS:
        raise Unreadable(f"the result has {len(schema)} columns, more than {_MOST_COLUMNS}")
    for column in schema:
        if not is_plain(column.type):
            raise Unreadable(f"column {column.name} of the result is of type {column.type}")


def _nested(array: pa.Array) -> int:
    """Values inside lists, however deep: a row of them could fill the memory by itself."""
    kind = array.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return len(array.values) + _nested(array.values)
    if pa.types.is_struct(kind):
        return sum(_nested(array.field(place)) for place in range(kind.num_fields))
    return 0


_PLAIN: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
    pa.types.is_duration,
)


def is_plain(kind: pa.DataType) -> bool:
    """Whether a column of this type becomes plain Python values; lists and structs of such do.

    >>> is_plain(pa.list_(pa.int64())), is_plain(pa.map_(pa.string(), pa.int8()))
    (True, False)
    """
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return is_plain(kind.value_type) and not pa.types.is_null(kind.value_type)
    if pa.types.is_struct(kind):
        return all(is_plain(kind.field(place).type) for place in range(kind.num_fields))
    if isinstance(kind, pa.BaseExtensionType):
        return False
    return any(test(kind) for test in _PLAIN)


def _rows(table: pa.Table) -> Iterator[Row]:
    dated = [_is_dates(column) for column in table.columns]
    for batch in table.to_batches(max_chunksize=_BATCH):
        columns = [
            [_date(v) for v in values] if is_dates else values
            for is_dates, values in zip(dated, (_values(c) for c in batch.columns), strict=True)
        ]
        yield from zip(*columns, strict=True)


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    if pa.types.is_duration(column.type) and column.type.unit == "ns":
        column = column.cast(pa.duration("us"), safe=False)
    values: list[Any] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [None if v is None or v != v else v for v in values]
    return values


def _is_dates(column: pa.ChunkedArray) -> bool:
    if not pa.types.is_timestamp(column.type) or column.type.tz is not None:
        return False
    values = (v for chunk in column.chunks for v in _values(chunk) if v is not None)
    return all(v.time() == datetime.time.min for v in values)


def _date(value: datetime.datetime | None) -> datetime.date | None:
    return None if value is None else value.date()


def _bytes(path: Path, most: int) -> bytes:
    """The file's content. Raises `Unreadable` if it is none of at most `most` bytes.

    Only a plain file is opened: a link could lead to another's, a pipe would never end.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as stream:
            found = os.fstat(handle)
            content = stream.read(most + 1) if stat.S_ISREG(found.st_mode) else b""
    except OSError as error:
        raise Unreadable("the process left no result") from error
    if len(content) > most:
        raise Unreadable(f"the result is larger than {most // 1_000_000} MB")
    return content

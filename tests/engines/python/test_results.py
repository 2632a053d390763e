"""From `result` to rows: what a program may assign, and what a stranger may have left behind."""

from __future__ import annotations

import datetime
import json
import os
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc

from lynx_dspy.engines.python import results
from lynx_dspy.engines.python.reading import (
    Report,
    Unreadable,
    is_compressed,
    read_report,
    read_result,
)
from lynx_dspy.values import Limits


def write(path: Path, table: pa.Table) -> Path:
    with ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)
    return path


def through(value: object, folder: Path, limits: Limits | None = None) -> Any:
    """Columns and rows of a value, by the way that it takes out of the sandbox."""
    limits = limits or Limits()
    table = results.to_arrow(results.to_frame(value), limits.max_rows, limits.max_cell_chars)
    read = read_result(write(folder / "result", table), limits, 10_000_000)
    return read.columns, read.rows


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        (7, ((7,),)),
        (np.float64(1.5), ((1.5,),)),
        (None, ((None,),)),
        (float("nan"), ((None,),)),
        ("a", (("a",),)),
        (True, ((True,),)),
        (pd.NaT, ((None,),)),
        (Decimal("1.50"), ((Decimal("1.50"),),)),
        (pd.Timestamp("2024-01-02"), ((datetime.date(2024, 1, 2),),)),
        (pd.Timestamp("2024-01-02 03:04"), ((datetime.datetime(2024, 1, 2, 3, 4),),)),
        (pd.Timedelta(hours=1), ((datetime.timedelta(hours=1),),)),
        (pd.Period("2024-01", "M"), (("2024-01",),)),
        ([1, 2], ((1,), (2,))),
        ([(1, "a"), (2, "b")], ((1, "a"), (2, "b"))),
        ({"a": 1, "b": "x"}, ((1, "x"),)),
        ({"a": [1, 2]}, ((1,), (2,))),
        (np.array([[1, 2], [3, 4]]), ((1, 2), (3, 4))),
        (np.array(5), ((5,),)),
        (pd.Index(["x"]), (("x",),)),
        (pd.Series([1, None]), ((1.0,), (None,))),
        (pd.Series(["a"], dtype="category"), (("a",),)),
        (pd.Series([1, "a", None], dtype=object), (("1",), ("a",), (None,))),
        (pd.Series([[1, 2]]), (((1, 2),),)),
        (pd.Series([1 + 2j]), (("(1+2j)",),)),
    ],
)
def test_what_may_be_assigned(value: object, rows: object, tmp_path: Path) -> None:
    assert through(value, tmp_path)[1] == rows


def test_named_levels_are_columns_and_unnamed_numbers_are_not(tmp_path: Path) -> None:
    frame = pd.DataFrame({"g": ["b", "a"], "h": [1, 2], "x": [3, 4]})
    assert through(frame.groupby(["g", "h"])["x"].sum(), tmp_path) == (
        ("g", "h", "x"),
        (("a", 2, 4), ("b", 1, 3)),
    )
    (tmp_path / "result").unlink()
    assert through(frame[frame.x > 3], tmp_path) == (("g", "h", "x"), (("a", 2, 4),))
    (tmp_path / "result").unlink()
    assert through(frame[["x"]].describe().loc[["max"]], tmp_path)[1] == (("max", 4.0),)


def test_two_columns_of_one_name_survive(tmp_path: Path) -> None:
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    assert through(frame, tmp_path) == (("a", "a"), ((1, 2),))


def test_levels_of_a_column_name_are_joined(tmp_path: Path) -> None:
    frame = pd.DataFrame({"g": [1], "x": [2]}).groupby("g").agg({"x": ["sum", "max"]})
    assert through(frame, tmp_path)[0] == ("g", "x_sum", "x_max")


def test_what_is_no_table_is_said() -> None:
    with pytest.raises(results.NoTable, match="function"):
        results.to_frame(lambda: 1)
    with pytest.raises(results.NoTable, match="cannot be made a DataFrame"):
        results.to_frame({"a": [1, 2], "b": [1]})


_CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**80), 2**80), st.floats(), st.text(max_size=8),
    st.dates(), st.datetimes(), st.binary(max_size=4), st.decimals(allow_nan=False),
)  # fmt: skip


@given(st.lists(_CELLS, max_size=6))
def test_any_column_comes_back_with_as_many_rows(
    tmp_path_factory: pytest.TempPathFactory, cells: list[object]
) -> None:
    folder = tmp_path_factory.mktemp("r")
    _, rows = through(pd.Series(cells, dtype=object), folder)
    assert len(rows) == len(cells)
    assert all(row[0] is None for cell, row in zip(cells, rows, strict=True) if cell is None)


@pytest.mark.parametrize(
    "content", [b"", b"junk", b"ARROW1\0\0" + b"\xff" * 200, b"\x80\x04K\x01."]
)
def test_bytes_that_are_no_arrow_are_no_result(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "result").write_bytes(content)
    with pytest.raises(Unreadable):
        read_result(tmp_path / "result", Limits(), 1_000_000)


@given(st.data())
def test_damaged_arrow_is_rows_or_no_result(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("r") / "result"
    table = pa.table({"a": [1, 2, None], "s": ["x", None, "yy"], "l": [[1], [], None]})
    content = bytearray(write(path, table).read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content))
    with suppress(Unreadable):
        read_result(path, Limits(), 1_000_000)


def test_types_that_are_not_plain_are_refused(tmp_path: Path) -> None:
    table = pa.table({"m": pa.array([[(1, 2)]], pa.map_(pa.int8(), pa.int8()))})
    with pytest.raises(Unreadable, match="map"):
        read_result(write(tmp_path / "result", table), Limits(), 1_000_000)


def test_compressed_results_are_refused(tmp_path: Path) -> None:
    """Zeros of 100 MB are a file of some KB: the reader would be the one who pays."""
    table = pa.table({"a": pa.array(np.zeros(100_000))})
    options = ipc.IpcWriteOptions(compression="lz4")
    with ipc.new_stream(str(tmp_path / "result"), table.schema, options=options) as writer:
        writer.write_table(table)
    with pytest.raises(Unreadable, match="compressed"):
        read_result(tmp_path / "result", Limits(), 10_000_000)


@given(st.binary(max_size=80))
def test_any_bytes_are_compressed_or_not(metadata: bytes) -> None:
    with suppress(Unreadable):
        is_compressed(metadata)


def test_lists_that_would_fill_the_memory_are_refused(tmp_path: Path) -> None:
    nulls = pa.array([[None]], pa.list_(pa.null()))
    with pytest.raises(Unreadable, match="list<"):
        read_result(write(tmp_path / "a", pa.table({"a": nulls})), Limits(), 10_000_000)
    long = pa.array([np.zeros(1_100_000, dtype=bool)])
    with pytest.raises(Unreadable, match="too many"):
        read_result(write(tmp_path / "b", pa.table({"a": long})), Limits(), 10_000_000)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_only_a_plain_file_is_opened(kind: str, tmp_path: Path) -> None:
    made = write(tmp_path / "other", pa.table({"a": [1]}))
    place = tmp_path / "result"
    make = {"link": lambda: place.symlink_to(made), "pipe": lambda: os.mkfifo(place)}
    make.get(kind, place.mkdir)()
    with pytest.raises(Unreadable):
        read_result(place, Limits(), 1_000_000)


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "result", pa.table({"a": [1]}))
    with pytest.raises(Unreadable, match="larger"):
        read_result(tmp_path / "result", Limits(), 10)


@pytest.mark.parametrize(
    "content", ["", "[]", "{", "[" * 50_000, '{"line": "x", "layers": 3, "printed": {}}']
)
def test_a_strange_report_is_none_or_texts(content: str, tmp_path: Path) -> None:
    (tmp_path / "report").write_text(content)
    try:
        report = read_report(tmp_path / "report")
    except Unreadable:
        return
    assert report == Report(printed="{}")


def test_a_report_comes_back(tmp_path: Path) -> None:
    told = {"kind": "KeyError", "error": "a", "line": 3, "layers": {"seccomp": "on"}}
    (tmp_path / "report").write_text(json.dumps(told))
    assert read_report(tmp_path / "report") == Report("KeyError", "a", 3, "", "", {"seccomp": "on"})

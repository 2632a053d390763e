"""What a program assigned to `result`, as an Arrow table: inside the sandbox.

DataFrame     its columns; the levels of a named index come first, an unnamed one is dropped
Series        the levels of its named index, then its values
dict          a row if its values are single ones, else as pandas makes a frame of it
list, array   a column, or as many as its items have
scalar        one cell
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api import types

RESULT = "result"

_SCALARS = (
    str, bytes, bool, int, float, complex, decimal.Decimal, datetime.date, datetime.time,
    datetime.timedelta, np.generic, pd.Period, pd.Interval, type(None), type(pd.NaT), type(pd.NA),
)  # fmt: skip


class NoTable(TypeError):
    """The value is nothing that can be shown as rows; the text is for the program's author."""


def to_frame(value: object) -> pd.DataFrame:
    """`value` as a frame whose index says nothing. Raises `NoTable`.

    >>> to_frame(pd.Series([3], index=pd.Index(["a"], name="k"), name="n")).to_dict("list")
    {'k': ['a'], 'n': [3]}
    """
    if isinstance(value, pd.DataFrame):
        return _unindexed(value)
    if isinstance(value, pd.Series):
        return _unindexed(value.to_frame(RESULT if value.name is None else value.name))
    if isinstance(value, _SCALARS):
        return pd.DataFrame({RESULT: [value]})
    if isinstance(value, pd.Index):
        return value.to_frame(index=False)
    if isinstance(value, Mapping):
        single = all(isinstance(item, _SCALARS) for item in value.values())
        return pd.DataFrame([dict(value)]) if single else _made(dict(value))
    if isinstance(value, np.ndarray):
        return _made(value if value.ndim else [value.item()])
    if isinstance(value, list | tuple | set | frozenset):
        return _made(list(value))
    raise NoTable(
        f"`{RESULT}` is a {type(value).__name__}; assign a DataFrame, a Series or a single value"
    )


def to_arrow(frame: pd.DataFrame, most: int, longest: int) -> pa.Table:
    """At most `most` rows and one, which says that there are more; texts cut likewise.

    Types that Arrow has no plain form for become text.
    """
    frame = frame.iloc[: most + 1]
    names = [_name(name) for name in frame.columns]
    columns = [_column(frame.iloc[:, place], longest) for place in range(len(names))]
    return pa.Table.from_arrays(columns, names=names)


def _made(values: list[Any] | dict[str, Any] | np.ndarray[Any, Any]) -> pd.DataFrame:
    try:
        frame = pd.DataFrame(values)
    except (ValueError, TypeError) as error:
        raise NoTable(f"`{RESULT}` cannot be made a DataFrame: {error}") from error
    is_unnamed = isinstance(frame.columns, pd.RangeIndex) and len(frame.columns) == 1
    return frame.set_axis([RESULT], axis=1) if is_unnamed else frame


def _unindexed(frame: pd.DataFrame) -> pd.DataFrame:
    levels = list(_levels(frame))
    body = frame.reset_index(drop=True)
    if not levels:
        return body
    left = pd.DataFrame(dict(enumerate(level.array for _, level in levels)))
    left.columns = pd.Index([name for name, _ in levels], dtype=object)
    return pd.concat([left, body], axis=1)


def _levels(frame: pd.DataFrame) -> Iterator[tuple[object, pd.Index]]:
    """The levels of the index that say something: named ones, and unnamed ones of no numbers."""
    index = frame.index
    for place in range(index.nlevels):
        level = index.get_level_values(place)
        if level.name is not None:
            yield level.name, level
        elif not types.is_integer_dtype(level.dtype):
            yield "index", level


def _name(name: object) -> str:
    parts = name if isinstance(name, tuple) else (name,)
    return "_".join(str(part) for part in parts if str(part))


def _column(values: pd.Series[Any], longest: int) -> pa.Array:
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        values = values.astype(values.cat.categories.dtype)
    elif isinstance(dtype, pd.PeriodDtype | pd.IntervalDtype | pd.SparseDtype):
        values = values.astype(str).where(values.notna(), None)
    elif types.is_complex_dtype(dtype):
        values = values.astype(str)
    if types.is_object_dtype(values.dtype) or types.is_string_dtype(values.dtype):
        values = values.map(lambda cell: _cut(cell, longest))
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return pa.array([_text(cell, longest) for cell in values], type=pa.string())


def _cut(cell: object, longest: int) -> object:
    if isinstance(cell, str | bytes) and len(cell) > longest:
        return cell[: longest + 1]
    return cell


def _text(cell: object, longest: int) -> str | None:
    if cell is None or (isinstance(cell, float) and cell != cell):
        return None
    return str(cell)[: longest + 1]

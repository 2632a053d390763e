"""Panels: daily fields of many stocks as arrays of one shape, from long or wide frames or files.

The calendar of a panel is every date on which any stock has a row. Cells without a row are NaN, so
a suspended or unlisted stock has NaN cells and its windows do not skip over them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.finance.across import Classes
from lynx_dspy.finance.windows import Wide, delay, ts_sum

CLASSES = ("market", "sector", "industry", "subindustry")
"""Fields that group stocks whatever their type; every field of text does."""

_KEYS = ("date", "code")
_ALIASES = {"trade_date": "date", "symbol": "code", "ticker": "code", "stock": "code"}
_ADV = re.compile(r"adv([1-9]\d{0,3})", re.ASCII)


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """`fields` and `classes` by folded name; arrays of shape (dates, codes), dates ascending.

    `groups` of `classes` are numbers from 0 on, -1 where a stock has none on a date.
    """

    dates: pd.DatetimeIndex
    codes: pd.Index[str]
    fields: Mapping[str, Wide]
    classes: Mapping[str, Classes]

    @classmethod
    def from_long(cls, frame: pd.DataFrame) -> Panel:
        """A panel from a frame with the columns `date` and `code` and one a field.

        Numbers become fields, text (and `CLASSES`) groups. Raises `BadInput` without these columns,
        for dates that are none, and for a stock that has two rows on one date.
        """
        named = _with_names(frame)
        for key in _KEYS:
            if key not in named.columns:
                raise UnknownName("column of a long panel (needed)", key, map(str, named.columns))
        dates, rows = _dates(named["date"])
        codes, columns = _codes(named["code"])
        _refuse_twice(rows * len(codes) + columns, dates, codes)
        fields: dict[str, Wide] = {}
        classes: dict[str, Classes] = {}
        for name in named.columns.drop(list(_KEYS)):
            series = named[name]
            if name not in CLASSES and pd.api.types.is_numeric_dtype(series):
                cells = np.full((len(dates), len(codes)), np.nan)
                cells[rows, columns] = series.to_numpy(dtype=np.float64, na_value=np.nan)
                fields[name] = cells
            elif name in CLASSES or not pd.api.types.is_datetime64_any_dtype(series):
                groups = np.full((len(dates), len(codes)), -1, dtype=np.int64)
                groups[rows, columns] = pd.factorize(series, sort=True)[0]
                classes[name] = groups
        return cls(dates, codes, fields, classes)

    @classmethod
    def from_wide(
        cls, frames: Mapping[str, pd.DataFrame], classes: Mapping[str, pd.Series] | None = None
    ) -> Panel:
        """A panel from one frame a field, dates by codes, and one series a class, by code.

        Dates and codes are those of all frames together. Raises `BadInput` for repeated labels.
        """
        if not frames:
            raise BadInput("A panel needs at least one field; got none.")
        tables = {name: _labelled(name, frame) for name, frame in frames.items()}
        dates = pd.DatetimeIndex(sorted(set().union(*(table.index for table in tables.values()))))
        codes = pd.Index(sorted(set().union(*(table.columns for table in tables.values()))))
        fields = {
            name.casefold(): table.reindex(index=dates, columns=codes).to_numpy(dtype=np.float64)
            for name, table in tables.items()
        }
        shape = (len(dates), len(codes))
        groups = {
            name.casefold(): np.broadcast_to(
                pd.factorize(series.rename(index=str).reindex(codes), sort=True)[0], shape
            ).astype(np.int64)
            for name, series in (classes or {}).items()
        }
        return cls(dates, codes, fields, groups)

    @classmethod
    def read(cls, path: str | Path, fields: Collection[str] | None = None) -> Panel:
        """The panel in a CSV or Parquet file, or in a folder of them, through DuckDB.

        Files that have dates are joined by date and code, others by code. `fields` names those that
        are wanted, all if None; names that no file has are left out. Raises `BadInput`.
        """
        from lynx_dspy.finance.files import read_long

        wanted = None if fields is None else {name.casefold() for name in fields}
        return cls.from_long(read_long(Path(path), wanted))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.dates), len(self.codes)

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that are there or can be derived, `adv{d}` as `adv20`."""
        derived = [name for name in ("returns", "vwap", "adv20") if self._derived(name) is not None]
        return tuple(dict.fromkeys([*self.fields, *derived]))

    def field(self, name: str) -> Wide:
        """The cells of a field. Raises `UnknownName`.

        What the panel lacks is derived: `returns` is close / delay(close, 1) - 1, `vwap` is
        amount / volume, and `adv{d}` is the mean of `amount` (else vwap * volume) over `d` dates.
        """
        found = self.fields.get(name)
        if found is None:
            found = self._derived(name)
        if found is None:
            raise UnknownName("field", name, self.names)
        return found

    def groups(self, name: str) -> Classes:
        """The groups of `industry` or `indclass.industry`, for example. Raises `UnknownName`."""
        bare = name.removeprefix("indclass.")
        if bare not in self.classes:
            raise UnknownName("class", bare, self.classes)
        return self.classes[bare]

    def frame(self, cells: Wide) -> pd.DataFrame:
        """Cells as a frame, dates by codes."""
        return pd.DataFrame(cells, index=self.dates, columns=self.codes)

    def _derived(self, name: str) -> Wide | None:
        there = self.fields
        days = _ADV.fullmatch(name)
        with np.errstate(all="ignore"):
            if name == "returns" and "close" in there:
                returns: Wide = there["close"] / delay(there["close"], 1) - 1
                return returns
            if name == "vwap" and "amount" in there and "volume" in there:
                vwap: Wide = there["amount"] / there["volume"]
                return vwap
            if days and "amount" in there:
                return ts_sum(there["amount"], int(days[1])) / int(days[1])
            if days and "vwap" in there and "volume" in there:
                return ts_sum(there["vwap"] * there["volume"], int(days[1])) / int(days[1])
        return None


def _with_names(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns by folded names. Raises `BadInput` where two are then alike."""
    folded = [str(column).strip().casefold() for column in frame.columns]
    names = [n if _ALIASES.get(n, n) in folded else _ALIASES[n] for n in folded]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"Two columns of the panel are called {twice!r}. Rename one.")
    return frame.set_axis(names, axis=1)


def _dates(series: pd.Series) -> tuple[pd.DatetimeIndex, np.ndarray[tuple[int], np.dtype[np.intp]]]:
    as_text = series if pd.api.types.is_datetime64_any_dtype(series) else series.astype("str")
    try:
        days = pd.to_datetime(as_text, format="ISO8601")
    except (ValueError, TypeError) as error:
        raise BadInput(
            "Column 'date' holds what is no date as 2024-01-31 or 20240131: "
            f"{str(error).splitlines()[0][:80]}."
        ) from error
    if days.isna().any():
        raise BadInput("Column 'date' has empty cells. Each row of a panel has its date.")
    positions, found = pd.factorize(days, sort=True)
    return pd.DatetimeIndex(found, name="date"), positions


def _codes(series: pd.Series) -> tuple[pd.Index[str], np.ndarray[tuple[int], np.dtype[np.intp]]]:
    if series.isna().any():
        raise BadInput("Column 'code' has empty cells. Each row of a panel has its stock.")
    positions, found = pd.factorize(series.astype(str), sort=True)
    return pd.Index(found, name="code"), positions


def _refuse_twice(
    cells: np.ndarray[tuple[int], np.dtype[np.intp]], dates: pd.DatetimeIndex, codes: pd.Index[str]
) -> None:
    seen = np.bincount(cells) if len(cells) else np.zeros(1, dtype=np.int64)
    if seen.max() > 1:
        row, column = divmod(int(seen.argmax()), len(codes))
        raise BadInput(
            f"Stock {codes[column]!r} has {seen.max()} rows on {dates[row]:%Y-%m-%d}. "
            "A panel has one row a stock and date."
        )


def _labelled(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    try:
        table = frame.set_axis(pd.DatetimeIndex(frame.index), axis=0)
    except (ValueError, TypeError) as error:
        raise BadInput(f"The rows of field {name!r} are not labelled with dates.") from error
    table = table.set_axis([str(code) for code in table.columns], axis=1)
    if not table.index.is_unique or not table.columns.is_unique:
        raise BadInput(f"Field {name!r} has a date or a stock twice.")
    return table

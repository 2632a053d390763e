from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.finance.panel import Panel

ROWS = [
    ("2024-01-03", "B", 4.0, 20.0, "x"),
    ("2024-01-02", "B", 2.0, 10.0, "x"),
    ("2024-01-02", "A", 1.0, 30.0, None),
]


def long() -> pd.DataFrame:
    return pd.DataFrame(ROWS, columns=["Date", "Code", "Close", "amount", "sector"])


def test_a_long_frame_becomes_sorted_cells_with_gaps_as_nan() -> None:
    panel = Panel.from_long(long())
    assert list(panel.codes) == ["A", "B"]
    assert [f"{date:%d}" for date in panel.dates] == ["02", "03"]
    assert np.array_equal(panel.field("close"), [[1.0, 2.0], [np.nan, 4.0]], equal_nan=True)
    assert panel.groups("indclass.sector").tolist() == [[-1, 0], [-1, 0]]


def test_what_is_lacking_is_derived_and_what_is_there_is_not() -> None:
    panel = Panel.from_long(long().assign(volume=10.0, returns=[7.0, 8.0, 9.0]))
    assert panel.field("vwap")[0].tolist() == [3.0, 1.0]
    assert panel.field("adv2")[1].tolist()[1] == 15.0
    assert panel.field("returns")[1, 1] == 7.0
    derived = Panel.from_long(long()).field("returns")
    assert np.array_equal(derived, [[np.nan, np.nan], [np.nan, 1.0]], equal_nan=True)


def test_dates_may_be_whole_numbers() -> None:
    panel = Panel.from_long(long().assign(Date=[20240103, 20240102, 20240102]))
    assert panel.dates.equals(Panel.from_long(long()).dates)


def test_average_daily_volume_is_money_also_without_amounts() -> None:
    frame = long().drop(columns="amount").assign(vwap=2.0, volume=[10.0, 20.0, 30.0])
    assert Panel.from_long(frame).field("adv1")[0].tolist() == [60.0, 40.0]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (long().drop(columns="Code"), "Unknown column of a long panel (needed) 'code'"),
        (pd.concat([long(), long()[:1]]), "Stock 'B' has 2 rows on 2024-01-03"),
        (long().assign(Date="soon"), "Column 'date' holds what is no date as 2024-01-31"),
        (long().assign(Date=None), "Column 'date' has empty cells"),
        (long().assign(Code=None), "Column 'code' has empty cells"),
        (long().assign(close=1.0), "Two columns of the panel are called 'close'"),
    ],
)
def test_a_frame_that_is_no_panel_is_told_in_one_line(frame: pd.DataFrame, said: str) -> None:
    with pytest.raises(BadInput) as told:
        Panel.from_long(frame)
    assert said in str(told.value)
    assert "\n" not in str(told.value)


def test_wide_frames_are_aligned_by_their_labels() -> None:
    days = pd.bdate_range("2024-01-01", periods=2)
    panel = Panel.from_wide(
        {
            "Close": pd.DataFrame({"B": [1.0, 2.0]}, index=days),
            "open": pd.DataFrame({"A": [5.0]}, index=days[1:]),
        }
    )
    assert np.array_equal(panel.field("open"), [[np.nan, np.nan], [5.0, np.nan]], equal_nan=True)
    assert np.array_equal(panel.field("close"), [[np.nan, 1.0], [np.nan, 2.0]], equal_nan=True)
    with pytest.raises(BadInput, match="a date or a stock twice"):
        Panel.from_wide({"close": pd.DataFrame([[1.0], [2.0]], index=[days[0]] * 2)})


def test_names_that_are_not_there_are_told_with_those_that_are() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'close'"):
        Panel.from_long(long()).field("clos")
    with pytest.raises(UnknownName, match="Known: sector"):
        Panel.from_long(long()).groups("industry")


def test_a_folder_without_a_panel_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No panel at"):
        Panel.read(tmp_path)
    (tmp_path / "names.csv").write_text("code,name\nA,Alpha\n")
    with pytest.raises(BadInput, match="date and code"):
        Panel.read(tmp_path)
    (tmp_path / "broken.parquet").write_text("nothing of the kind")
    with pytest.raises(BadInput, match="Cannot read"):
        Panel.read(tmp_path)


def test_files_that_list_other_rows_are_joined(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("date,code,close\n2024-01-02,A,1\n2024-01-03,A,2\n")
    (tmp_path / "b.csv").write_text("date,code,open\n2024-01-03,A,5\n2024-01-03,B,6\n")
    panel = Panel.read(tmp_path)
    assert np.array_equal(panel.field("open"), [[np.nan, np.nan], [5.0, 6.0]], equal_nan=True)

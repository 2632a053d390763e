from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.grounding.date_styles import STYLES, Style, dates_in, style_of

DAYS = st.dates(datetime.date(1970, 1, 1), datetime.date(2068, 12, 31))
MAY = datetime.date(2019, 5, 3)


@given(DAYS, st.sampled_from(STYLES))
def test_a_style_knows_what_it_wrote(day: datetime.date, style: Style) -> None:
    assert style.wrote(style.write(day))
    assert Style.read(str(style)) == style


@given(st.lists(DAYS, min_size=1, max_size=5), st.sampled_from(STYLES))
def test_a_column_is_read_in_its_style_or_not_at_all(
    days: list[datetime.date], style: Style
) -> None:
    found = style_of([style.write(day) for day in days])
    assert found is None or [found.write(d) for d in days] == [style.write(d) for d in days]


@pytest.mark.parametrize(
    "text",
    [
        "2019/05/03",
        "2019-5-3",
        "20190503",
        "3-May-2019",
        "3rd of May, 2019",
        "May 3, 2019",
        "03 MAY 2019",
    ],
)
def test_dates_are_read_from_a_question(text: str) -> None:
    assert [day for _, day in dates_in(f"orders since {text} in Oslo")] == [MAY]


@pytest.mark.parametrize("text", ["2019-13-45", "id 1234567", "03/04/2019", "v2019-05-03-rc1", ""])
def test_what_is_no_date_or_could_be_two_is_left_out(text: str) -> None:
    assert list(dates_in(text)) == []


def test_a_column_of_dates_with_times_or_of_something_else() -> None:
    assert style_of(["2019-05-03 10:00:00", "2019-06-01T11:00"]) == Style("%Y-%m-%d")
    assert style_of(["13/05/2019", "02/05/2019"]) == Style("%d/%m/%Y")
    assert style_of(["2019-05-03", "soon"]) is None
    assert style_of([]) is None

"""The warehouse's own time: minutes since the start of 2022, up to the evening of the snapshot."""

from __future__ import annotations

from datetime import date, timedelta

DAY = 24 * 60
FIRST_DATE = date(2022, 1, 1)
SNAPSHOT_DATE = date(2025, 6, 30)
LAST_DAY = (SNAPSHOT_DATE - FIRST_DATE).days
NOW = (LAST_DAY + 1) * DAY - 1

_DATES = tuple((FIRST_DATE + timedelta(days=n)).isoformat() for n in range(LAST_DAY + 1))


def day(minute: int) -> str:
    """The ISO date on which a minute falls.

    >>> day(0), day(NOW)
    ('2022-01-01', '2025-06-30')
    """
    return _DATES[minute // DAY]


def moment(minute: int) -> str:
    """The ISO date and time of a minute.

    >>> moment(DAY + 61)
    '2022-01-02 01:01:00'
    """
    hours, minutes = divmod(minute % DAY, 60)
    return f"{day(minute)} {hours:02}:{minutes:02}:00"


def moment_if_past(minute: int | None) -> str | None:
    """As `moment`, but None for what never happened or lies after the snapshot."""
    return None if minute is None or minute > NOW else moment(minute)


def minute_of(iso_date: str) -> int:
    """The first minute of an ISO date; negative before 2022.

    >>> minute_of("2022-01-03") == 2 * DAY
    True
    """
    return (date.fromisoformat(iso_date) - FIRST_DATE).days * DAY

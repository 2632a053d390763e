"""How dates are written: those of a question, and the one form in which a column stores its own."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

PATTERNS = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%d-%b-%Y", "%d %b %Y", "%d %B %Y"),
    *("%b %d, %Y", "%B %d, %Y", "%B %d %Y", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%m-%d-%Y"),
    *("%d-%m-%Y", "%d-%b-%y", "%m/%d/%y", "%d/%m/%y"),
)
"""Forms of `datetime.strftime`, each with or without leading zeros and in capitals or not."""

_LOOKED_AT = 50
_TIME = re.compile(r"[ T]\d\d?:\d\d.*$")
_LIKELY = re.compile(
    r"\d{4}[-/.]\d\d?[-/.]\d\d?|\d{8}|\d\d?[-/. ](?:\d\d?|[A-Za-z]{3,9})[-/. ]\d{2,4}"
    r"|[A-Za-z]{3,9} \d\d?,? \d{4}"
)
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_WRITTEN = (
    re.compile(r"(?<![\w/.-])(?P<y>\d{4})[-/.](?P<m>\d\d?)[-/.](?P<d>\d\d?)(?![\w/-])"),
    re.compile(r"(?<![\w/.-])(?P<y>(?:19|20)\d\d)(?P<m>\d\d)(?P<d>\d\d)(?![\w/-])"),
    re.compile(
        rf"(?<!\w)(?P<d>\d\d?)(?:st|nd|rd|th)?[\s-]+(?:of\s+)?(?P<m>{_MONTH})[\s,-]+(?P<y>\d{{4}})\b",
        re.IGNORECASE,
    ),
    re.compile(
        rf"(?<!\w)(?P<m>{_MONTH})\s+(?P<d>\d\d?)(?:st|nd|rd|th)?,?\s+(?P<y>\d{{4}})\b",
        re.IGNORECASE,
    ),
)
_AMBIGUOUS = re.compile(r"(?<![\w/.-])(\d\d?)([/.-])(\d\d?)\2(\d{4})(?![\w/-])")


@dataclass(frozen=True, slots=True)
class Style:
    """One way of writing dates; `bare` leaves leading zeros out, `upper` writes `MAY`."""

    pattern: str
    bare: bool = False
    upper: bool = False

    def write(self, day: datetime.date) -> str:
        """`day` as a column of this style stores it.

        >>> Style("%d-%b-%Y", bare=True).write(datetime.date(2019, 5, 3))
        '3-May-2019'
        """
        pattern = self.pattern.replace("%Y", f"{day.year:04d}")
        if self.bare:
            pattern = pattern.replace("%d", str(day.day)).replace("%m", str(day.month))
        text = day.strftime(pattern)
        return text.upper() if self.upper else text

    def wrote(self, text: str) -> bool:
        """Whether `text` is a date in exactly this style."""
        try:
            day = datetime.datetime.strptime(text, self.pattern).date()
        except ValueError:
            return False
        return self.write(day) == text

    def __str__(self) -> str:
        return f"{self.pattern}{'|bare' * self.bare}{'|upper' * self.upper}"

    @classmethod
    def read(cls, text: str) -> Style:
        """The style that `str` wrote."""
        pattern, *marks = text.split("|")
        return cls(pattern, "bare" in marks, "upper" in marks)


STYLES = tuple(
    Style(pattern, bare, upper)
    for pattern, bare, upper in product(PATTERNS, (False, True), (False, True))
    if not (bare and pattern == "%Y%m%d")
)


def style_of(values: Sequence[str]) -> Style | None:
    """The style of all `values`, times of day left aside; None if there is none, or if day and
    month could be either way round.

    >>> str(style_of(["3-May-2019", "21-Jun-2019"])), style_of(["05/03/2019", "06/04/2019"])
    ('%d-%b-%Y|bare', None)
    """
    seen = [_TIME.sub("", value) for value in values[:_LOOKED_AT]]
    if not seen or not all(map(_LIKELY.fullmatch, seen)):
        return None
    fitting = [s for s in STYLES if all(s.wrote(text) for text in seen)]
    ways = {"%d" in s.pattern.partition("%m")[0] for s in fitting if "%m" in s.pattern}
    return fitting[0] if fitting and len(ways) < 2 else None


def dates_in(text: str) -> Iterator[tuple[str, datetime.date]]:
    """The dates that a text names in full, each with its words. What could be two is left out.

    >>> [(said, str(day)) for said, day in dates_in("after 3 May 2019, not 04/05/2019")]
    [('3 May 2019', '2019-05-03')]
    """
    for form in _WRITTEN:
        for match in form.finditer(text):
            if day := _day(match["y"], _month(match["m"]), match["d"]):
                yield match[0], day
    for match in _AMBIGUOUS.finditer(text):
        first, _, second, year = match.groups()
        read = {_day(year, int(first), second), _day(year, int(second), first)} - {None}
        if len(read) == 1 and (only := read.pop()):
            yield match[0], only


def _month(text: str) -> int:
    if text.isdigit():
        return int(text)
    return next(i for i, name in enumerate(_MONTHS, 1) if name.startswith(text[:3].lower()))


def _day(year: str, month: int, day: str) -> datetime.date | None:
    try:
        return datetime.date(int(year), month, int(day))
    except ValueError:
        return None

"""Other dialects' spellings and what SQLite writes instead, as tables.

Facts are from sqlite.org (lang_datefunc, lang_corefunc); what sqlglot's own generator already turns
into SQLite (GREATEST, STRING_AGG, casts to dates, FETCH FIRST ...) is left to it.
"""

from __future__ import annotations

import re
from functools import lru_cache

import sqlglot
from sqlglot import exp

_NUMBER = "CAST(STRFTIME('{}', :x) AS INTEGER)"

PARTS = {
    "YEAR": _NUMBER.format("%Y"),
    "MONTH": _NUMBER.format("%m"),
    "DAY": _NUMBER.format("%d"),
    "DAYOFMONTH": _NUMBER.format("%d"),
    "HOUR": _NUMBER.format("%H"),
    "MINUTE": _NUMBER.format("%M"),
    "SECOND": _NUMBER.format("%S"),
    "DOW": _NUMBER.format("%w"),
    "DAYOFWEEK": _NUMBER.format("%w") + " + 1",
    "WEEKDAY": f"({_NUMBER.format('%w')} + 6) % 7",
    "ISODOW": f"({_NUMBER.format('%w')} + 6) % 7 + 1",
    "DOY": _NUMBER.format("%j"),
    "DAYOFYEAR": _NUMBER.format("%j"),
    "WEEK": _NUMBER.format("%W"),
    "QUARTER": f"({_NUMBER.format('%m')} + 2) / 3",
    "EPOCH": _NUMBER.format("%s"),
}
"""A part of a date as a number (EXTRACT, DATE_PART, YEAR() ...)."""

SPANS = {
    "YEAR": "CAST((:x) / 365.25 AS INTEGER)",
    "MONTH": "CAST((:x) / 30.4375 AS INTEGER)",
    "WEEK": "CAST((:x) / 7 AS INTEGER)",
    "DAY": "CAST(:x AS INTEGER)",
    "HOUR": "CAST((:x) * 24 AS INTEGER)",
    "MINUTE": "CAST((:x) * 1440 AS INTEGER)",
    "SECOND": "CAST((:x) * 86400 AS INTEGER)",
    "EPOCH": "(:x) * 86400",
}
"""A number of days as whole units (EXTRACT(EPOCH FROM a - b), DATEDIFF(month, a, b) ...)."""

STARTS = {
    "YEAR": "DATE(:x, 'start of year')",
    "QUARTER": "DATE(:x, 'start of month', "
    "'-' || ((CAST(STRFTIME('%m', :x) AS INTEGER) - 1) % 3) || ' months')",
    "MONTH": "DATE(:x, 'start of month')",
    "WEEK": "DATE(:x, 'weekday 0', '-6 days')",
    "DAY": "DATE(:x)",
    "HOUR": "STRFTIME('%Y-%m-%d %H:00:00', :x)",
    "MINUTE": "STRFTIME('%Y-%m-%d %H:%M:00', :x)",
}
"""The start of the unit that a date lies in (DATE_TRUNC)."""

DAYS = "JULIANDAY(:a) - JULIANDAY(:b)"
_MEAN = "(SUM(:a * :a) - SUM(:a) * 1.0 * SUM(:a) / COUNT(:a))"
_NAMES = "RTRIM(SUBSTR('{}', {} * {} + 1, {}))"

CALLS = {
    ("NOW", 0): "CURRENT_TIMESTAMP",
    ("GETDATE", 0): "CURRENT_TIMESTAMP",
    ("SYSDATE", 0): "CURRENT_TIMESTAMP",
    ("LOCALTIMESTAMP", 0): "CURRENT_TIMESTAMP",
    ("TODAY", 0): "CURRENT_DATE",
    ("CURDATE", 0): "CURRENT_DATE",
    ("CURRENT_DATE", 0): "CURRENT_DATE",
    ("CURRENT_TIMESTAMP", 0): "CURRENT_TIMESTAMP",
    ("CURTIME", 0): "CURRENT_TIME",
    ("AGE", 1): "JULIANDAY('now') - JULIANDAY(:a)",
    ("AGE", 2): DAYS,
    ("DAYS_BETWEEN", 2): DAYS,
    ("TIMEDIFF", 2): DAYS,
    ("TO_DATE", 1): "DATE(:a)",
    ("TO_DATE", 2): "DATE(:a)",
    ("STR_TO_DATE", 2): "DATE(:a)",
    ("TO_TIMESTAMP", 1): "DATETIME(:a)",
    ("TO_TIMESTAMP", 2): "DATETIME(:a)",
    ("FROM_UNIXTIME", 1): "DATETIME(:a, 'unixepoch')",
    ("UNIX_TIMESTAMP", 1): _NUMBER.format("%s").replace(":x", ":a"),
    ("LAST_DAY", 1): "DATE(:a, 'start of month', '+1 month', '-1 day')",
    ("EOMONTH", 1): "DATE(:a, 'start of month', '+1 month', '-1 day')",
    ("MAKE_DATE", 3): "PRINTF('%04d-%02d-%02d', :a, :b, :c)",
    ("MONTHNAME", 1): _NAMES.format(
        "January  February March    April    May      June     July     August   SeptemberOctober  "
        "November December ",
        "(CAST(STRFTIME('%m', :a) AS INTEGER) - 1)",
        9,
        9,
    ),
    ("DAYNAME", 1): _NAMES.format(
        "Sunday   Monday   Tuesday  WednesdayThursday Friday   Saturday ",
        "CAST(STRFTIME('%w', :a) AS INTEGER)",
        9,
        9,
    ),
    ("LEFT", 2): "SUBSTR(:a, 1, :b)",
    ("RIGHT", 2): "SUBSTR(:a, -:b)",
    ("LEN", 1): "LENGTH(:a)",
    ("CHAR_LENGTH", 1): "LENGTH(:a)",
    ("CHARACTER_LENGTH", 1): "LENGTH(:a)",
    ("CHARINDEX", 2): "INSTR(:b, :a)",
    ("LOCATE", 2): "INSTR(:b, :a)",
    ("STRPOS", 2): "INSTR(:a, :b)",
    ("ISNULL", 2): "IFNULL(:a, :b)",
    ("ISNULL", 1): ":a IS NULL",
    ("LCASE", 1): "LOWER(:a)",
    ("UCASE", 1): "UPPER(:a)",
    ("CONTAINS", 2): "INSTR(:a, :b) > 0",
    ("STARTS_WITH", 2): "INSTR(:a, :b) = 1",
    ("BTRIM", 1): "TRIM(:a)",
    ("SAFE_DIVIDE", 2): "CAST(:a AS REAL) / NULLIF(:b, 0)",
    ("TRUNCATE", 1): "CAST(:a AS INTEGER)",
    ("RAND", 0): "RANDOM()",
    ("STDDEV", 1): f"SQRT({_MEAN} / NULLIF(COUNT(:a) - 1, 0))",
    ("STDDEV_SAMP", 1): f"SQRT({_MEAN} / NULLIF(COUNT(:a) - 1, 0))",
    ("STDEV", 1): f"SQRT({_MEAN} / NULLIF(COUNT(:a) - 1, 0))",
    ("STDDEV_POP", 1): f"SQRT({_MEAN} / COUNT(:a))",
    ("VARIANCE", 1): f"{_MEAN} / NULLIF(COUNT(:a) - 1, 0)",
    ("VARIANCE_POP", 1): f"{_MEAN} / COUNT(:a)",
}
"""Functions that SQLite lacks, by name and number of arguments; :a, :b, :c are those."""

FORMATS = {
    "TO_CHAR": {
        "YYYY": "%Y", "MM": "%m", "DD": "%d", "HH24": "%H", "MI": "%M", "SS": "%S", "DDD": "%j",
        "yyyy": "%Y", "mm": "%m", "dd": "%d", "hh24": "%H", "mi": "%M", "ss": "%S", "IW": "%W",
    },
    "DATE_FORMAT": {
        "%Y": "%Y", "%m": "%m", "%c": "%m", "%d": "%d", "%e": "%d", "%H": "%H", "%i": "%M",
        "%s": "%S", "%S": "%S", "%j": "%j", "%u": "%W", "%T": "%H:%M:%S",
    },
    "FORMAT": {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"},
}  # fmt: skip
"""Signs of date formats, as STRFTIME writes them."""

RESERVED = frozenset({
    "ADD", "ALL", "ALTER", "AND", "AS", "AUTOINCREMENT", "BETWEEN", "CASE", "CHECK", "COLLATE",
    "COMMIT", "CONSTRAINT", "CREATE", "DEFAULT", "DEFERRABLE", "DELETE", "DISTINCT", "DROP", "ELSE",
    "ESCAPE", "EXISTS", "FOREIGN", "FROM", "GROUP", "HAVING", "IN", "INDEX", "INSERT", "INTO", "IS",
    "ISNULL", "JOIN", "LIMIT", "NOT", "NOTNULL", "NULL", "ON", "OR", "ORDER", "PRIMARY",
    "REFERENCES", "RETURNING", "SELECT", "SET", "TABLE", "THEN", "TO", "TRANSACTION", "UNION",
    "UNIQUE", "UPDATE", "USING", "VALUES", "WHEN", "WHERE",
})  # fmt: skip
"""Words that SQLite takes as a name only in quotes (sqlite.org/lang_keywords)."""

HINTS = {
    "sqlite": {
        "::": "write CAST(x AS type) instead of x::type",
        "ILIKE": "LIKE ignores case already",
        "TOP": "write LIMIT n at the end of the query",
        "INTERVAL": "write DATE(x, '-1 month') instead of x - INTERVAL '1 month'",
        "EXTRACT": "write CAST(STRFTIME('%Y', x) AS INTEGER) instead of EXTRACT(YEAR FROM x)",
        "QUALIFY": "filter a window function in an outer query",
        "REGEXP": "use LIKE or GLOB",
        "ANY": "write x IN (SELECT ...)",
        "ALL": "compare with (SELECT MAX(...)) or (SELECT MIN(...))",
    },
}
"""What to write instead, by a word that the program holds, for messages to a model."""


@lru_cache(maxsize=512)
def _template(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, read="sqlite")


def fill(text: str, **parts: exp.Expr) -> exp.Expr:
    """A table entry with its places filled.

    >>> fill(PARTS["YEAR"], x=exp.column("d")).sql("sqlite")
    "CAST(STRFTIME('%Y', d) AS INTEGER)"
    """
    tree = exp.Paren(this=_template(text).copy())
    for place in list(tree.find_all(exp.Placeholder)):
        place.replace(_wrapped(parts[place.name].copy(), place))
    return _lone(tree.this.pop())


def _wrapped(part: exp.Expr, place: exp.Expr) -> exp.Expr:
    inside = isinstance(place.parent, exp.Binary | exp.Unary) and not isinstance(
        place.parent, exp.Paren
    )
    return exp.paren(part, copy=False) if inside and isinstance(part, exp.Binary) else part


def _lone(tree: exp.Expr) -> exp.Expr:
    """Operators in brackets, so that they can stand anywhere."""
    return exp.paren(tree, copy=False) if isinstance(tree, exp.Binary) else tree


def date_format(function: str, text: str) -> str | None:
    """A date format in STRFTIME's signs; None if a sign has no counterpart.

    >>> date_format("TO_CHAR", "YYYY-MM")
    '%Y-%m'
    """
    signs = FORMATS[function]
    pattern = "|".join(sorted(map(re.escape, signs), key=len, reverse=True))
    rest = re.sub(pattern, "", text)
    if re.search(r"[A-Za-z%]", rest.replace("T", "")):
        return None
    return re.sub(pattern, lambda m: signs[m.group()], text)

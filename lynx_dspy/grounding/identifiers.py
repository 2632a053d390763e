"""Names and values as SQL text, and names as words.

Quoting follows sqlglot's dialects. The reserved words are those that SQLite and DuckDB refuse as a
bare column name; the tests ask both engines.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from decimal import Decimal
from functools import lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from lynx_dspy.values import Table

NESTED = frozenset({"bigquery"})
"""Dialects whose nested fields are columns with dotted names; no other name has a dot there."""

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset(
    """
    add all alter analyse analyze and anti any array as asc asof asymmetric autoincrement begin
    between both by case cast check collate column commit constraint create cross current_catalog
    current_date current_role current_time current_timestamp current_user default deferrable delete
    desc describe distinct do drop else end escape except exclude exists false fetch filter for
    foreign from full glob grant group groups having if in index initially inner insert intersect
    interval into is isnull join lambda lateral leading left like limit localtime localtimestamp
    natural not nothing notnull null of offset on only or order outer over partition pivot
    pivot_longer pivot_wider placing positional primary qualify range recursive references returning
    right rows select semi session_user set show similar some struct summarize symmetric table
    tablesample then to trailing transaction true union unique unpivot update user using values
    variadic when where window with within
    """.split()  # noqa: SIM905 - a list of a hundred quoted words would fill two pages
)
_RESERVED_IN = {
    "snowflake": frozenset(
        """
        account connect connection current database following gscluster ilike increment issue minus
        organization regexp revoke rlike row rows sample schema start tablesample trigger try_cast
        view whenever
        """.split()  # noqa: SIM905 - as above
    )
}
"""Words that a dialect reserves beyond the common ones and those that sqlglot knows of."""

_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_PLAIN = re.compile(r"[\w .,:;/()+-]*")
_CONTROL = re.compile(r"[\s\x00-\x1f\x7f]+")


@lru_cache(maxsize=65_536)
def quote(name: str, dialect: str) -> str:
    """`name` as a quoted identifier of `dialect`, whatever it holds.

    >>> quote('a"b', "sqlite")
    '"a""b"'
    """
    if _BARE.fullmatch(name):
        rules = Dialect.get_or_raise(dialect)
        return f"{rules.IDENTIFIER_START}{name}{rules.IDENTIFIER_END}"
    return exp.to_identifier(name, quoted=True).sql(dialect=dialect)


@lru_cache(maxsize=65_536)
def shown(name: str, dialect: str) -> str:
    """`name` as a program of `dialect` should write it: quoted only where it must be.

    >>> shown("customer_id", "sqlite"), shown("group", "sqlite"), shown("Net Sales", "bigquery")
    ('customer_id', '"group"', '`Net Sales`')
    >>> shown("event_params.value.int value", "bigquery")
    'event_params.value.`int value`'
    """
    if dialect in NESTED and "." in name:
        return ".".join(shown(part, dialect) for part in name.split("."))
    return quote(name, dialect) if _needs_quotes(name, dialect) else name


def full_name(table: Table, dialect: str) -> str:
    """The table's full name as a program of `dialect` should write it.

    >>> full_name(Table("events", (), namespace="web-data.ga4"), "bigquery")
    '`web-data`.ga4.events'
    >>> full_name(Table("Gsod", (), namespace="NOAA.PUBLIC"), "snowflake")
    'NOAA.PUBLIC."Gsod"'
    """
    return ".".join(shown(part, dialect) for part in table.parts)


def _needs_quotes(name: str, dialect: str) -> bool:
    if not _BARE.fullmatch(name) or name.casefold() in _RESERVED:
        return True
    rules = Dialect.get_or_raise(dialect)
    reserved = rules.generator_class.RESERVED_KEYWORDS | _RESERVED_IN.get(dialect, frozenset())
    return name.casefold() in reserved or rules.case_sensitive(name)


def qualified(table: Table, dialect: str) -> str:
    """A table's name for a query of this package, every part quoted."""
    return ".".join(quote(part, dialect) for part in table.parts)


def literal(value: Any, dialect: str, width: int = 40) -> str | None:
    """A stored value as one line of SQL; None for values that are not shown (NULL, binary).

    Text longer than `width` characters is cut and ends in "…", so it is no longer the stored value.

    >>> literal("it's", "sqlite"), literal(3, "sqlite"), literal(b"x", "sqlite")
    ("'it''s'", '3', None)
    """
    if value is None or isinstance(value, bytes | bytearray | memoryview):
        return None
    if isinstance(value, bool):
        return exp.convert(value).sql(dialect=dialect)
    if isinstance(value, int | float | Decimal):
        return str(value) if len(str(value)) <= width else f"{str(value)[:width]}…"
    if isinstance(value, datetime.date | datetime.time):
        value = value.isoformat(" ") if isinstance(value, datetime.datetime) else str(value)
    line = _CONTROL.sub(" ", str(value))
    line = line if len(line) <= width else line[: width - 1].rstrip() + "…"
    return _text(line, dialect)


@lru_cache(maxsize=65_536)
def _text(line: str, dialect: str) -> str:
    """Every dialect writes plain text alike; what could be a sign is left to sqlglot."""
    if _PLAIN.fullmatch(line):
        return f"'{line}'"
    return exp.Literal.string(line).sql(dialect=dialect)


def fold(text: str) -> str:
    """`text` without case and accents, blanks made single: how values and words are compared.

    >>> fold("  Crème  BRÛLÉE ")
    'creme brulee'
    """
    if text.isascii():
        return " ".join(text.lower().split())
    plain = unicodedata.normalize("NFKD", text)
    return " ".join("".join(c for c in plain if not unicodedata.combining(c)).casefold().split())


@lru_cache(maxsize=65_536)
def words(name: str) -> tuple[str, ...]:
    """The folded words of an identifier or of running text, split at signs and camelCase.

    >>> words("sbTxCustId"), words("number_of_APIs"), words("Café Nº2")
    (('sb', 'tx', 'cust', 'id'), ('number', 'of', 'apis'), ('cafe', 'no', '2'))
    """
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    plain = re.sub(r"([A-Z]{2,})s\b", lambda m: m.group(0).lower(), plain)
    return tuple(word.casefold() for word in _CAMEL.findall(plain))


_DOUBLED = re.compile(r"([bdgmnprt])\1$")


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A rough stem, so that plurals and simple verb forms of a word meet.

    >>> stem("countries"), stem("matches"), stem("hiring"), stem("hired"), stem("status")
    ('country', 'match', 'hir', 'hir', 'status')
    """
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes", "zes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return stem(word[:-1])
    if len(word) > 5 and word.endswith("ing"):
        return _DOUBLED.sub(r"\1", word[:-3])
    if len(word) > 4 and word.endswith("ed"):
        return _DOUBLED.sub(r"\1", word[:-2])
    return word[:-1] if len(word) > 3 and word.endswith("e") else word

"""Calls of functions that a dialect lacks, rewritten one by one in the text of the program.

A rule is (number of arguments, template). `{0}` is an argument as it is written; `{0:unit}` a unit
of time as a bare word, `{0:quoted}` the same in quotes; `{1:number}` and `{1:per}` the two parts of
an INTERVAL; `{1:mysql}` a date format given in that dialect's signs; `{2:before}` a whole number
less one; `{0:typed}` an `x AS type`. A call that no rule fits stays: what it means is then a guess.
"""

from __future__ import annotations

import re
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.time import format_time
from sqlglot.tokenizer_core import Token, TokenType

from lynx_dspy.engines.functions import LACKING

Rule = tuple[int, str]

_PARTS: dict[str, tuple[Rule, ...]] = {
    part: ((1, f"EXTRACT({part} FROM {{0}})"),)
    for part in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "QUARTER")
}
_TODAY: tuple[Rule, ...] = ((0, "CURRENT_DATE"),)
_NOW: tuple[Rule, ...] = ((0, "CURRENT_TIMESTAMP"),)
_COALESCE: tuple[Rule, ...] = ((2, "COALESCE({0}, {1})"),)
_CASE: tuple[Rule, ...] = ((3, "CASE WHEN {0} THEN {1} ELSE {2} END"),)
_DIVIDE: tuple[Rule, ...] = ((2, "({0}) / NULLIF({1}, 0)"),)

REWRITES: dict[str, dict[str, tuple[Rule, ...]]] = {
    "bigquery": {
        **_PARTS,
        "ADD_MONTHS": ((2, "DATE_ADD({0}, INTERVAL {1} MONTH)"),),
        "ARRAY_SIZE": ((1, "ARRAY_LENGTH({0})"),),
        "CHARINDEX": ((2, "STRPOS({1}, {0})"),),
        "COUNT_IF": ((1, "COUNTIF({0})"),),
        "CURDATE": _TODAY,
        "DATEADD": ((3, "DATE_ADD({2}, INTERVAL {1} {0:unit})"),),
        "DATEDIFF": ((3, "DATE_DIFF({2}, {1}, {0:unit})"), (2, "DATE_DIFF({0}, {1}, DAY)")),
        "DATEFROMPARTS": ((3, "DATE({0}, {1}, {2})"),),
        "DATE_PART": ((2, "EXTRACT({0:unit} FROM {1})"),),
        "DAYOFWEEK": ((1, "EXTRACT(DAYOFWEEK FROM {0})"),),
        "EOMONTH": ((1, "LAST_DAY({0})"),),
        "FROM_UNIXTIME": ((1, "TIMESTAMP_SECONDS({0})"),),
        "GETDATE": _NOW,
        "GROUP_CONCAT": ((1, "STRING_AGG({0})"), (2, "STRING_AGG({0}, {1})")),
        "IFF": ((3, "IF({0}, {1}, {2})"),),
        "LEN": ((1, "LENGTH({0})"),),
        "LISTAGG": ((2, "STRING_AGG({0}, {1})"),),
        "LOCATE": ((2, "STRPOS({1}, {0})"),),
        "NOW": _NOW,
        "RANDOM": ((0, "RAND()"),),
        "REGEXP_MATCHES": ((2, "REGEXP_CONTAINS({0}, {1})"),),
        "SPLIT_PART": ((3, "SPLIT({0}, {1})[SAFE_OFFSET({2:before})]"),),
        "STR_TO_DATE": ((2, "PARSE_DATE({1:mysql}, {0})"),),
        "SYSDATE": _NOW,
        "TIMESTAMPDIFF": ((3, "TIMESTAMP_DIFF({2}, {1}, {0:unit})"),),
        "TO_DATE": ((2, "PARSE_DATE({1:postgres}, {0})"),),
        "TO_NUMBER": ((1, "CAST({0} AS NUMERIC)"),),
        "TO_VARCHAR": ((1, "CAST({0} AS STRING)"),),
        "TRUNCATE": ((1, "TRUNC({0})"), (2, "TRUNC({0}, {1})")),
        "TRY_CAST": ((1, "SAFE_CAST({0:typed})"),),
    },
    "snowflake": {
        "ARRAY_LENGTH": ((1, "ARRAY_SIZE({0})"),),
        "COUNTIF": ((1, "COUNT_IF({0})"),),
        "CURDATE": ((0, "CURRENT_DATE()"),),
        "DATEFROMPARTS": ((3, "DATE_FROM_PARTS({0}, {1}, {2})"),),
        "DATE_ADD": ((2, "DATEADD({1:per}, {1:number}, {0})"),),
        "DATE_DIFF": ((3, "DATEDIFF({2:unit}, {1}, {0})"),),
        "DATE_FORMAT": ((2, "TO_CHAR({0}, {1:mysql})"),),
        "DATE_SUB": ((2, "DATEADD({1:per}, -{1:number}, {0})"),),
        "FORMAT_DATE": ((2, "TO_CHAR({1}, {0:bigquery})"),),
        "FORMAT_TIMESTAMP": ((2, "TO_CHAR({1}, {0:bigquery})"),),
        "FROM_UNIXTIME": ((1, "TO_TIMESTAMP({0})"),),
        "GROUP_CONCAT": ((1, "LISTAGG({0}, ',')"), (2, "LISTAGG({0}, {1})")),
        "PARSE_DATE": ((2, "TO_DATE({1}, {0:bigquery})"),),
        "PARSE_TIMESTAMP": ((2, "TO_TIMESTAMP({1}, {0:bigquery})"),),
        "SAFE_DIVIDE": _DIVIDE,
        "STRPOS": ((2, "POSITION({1}, {0})"),),
        "STR_TO_DATE": ((2, "TO_DATE({0}, {1:mysql})"),),
        "ST_GEOGPOINT": ((2, "ST_MAKEPOINT({0}, {1})"),),
        "TIMESTAMP_DIFF": ((3, "TIMESTAMPDIFF({2:unit}, {1}, {0})"),),
        "TIMESTAMP_MICROS": ((1, "TO_TIMESTAMP({0}, 6)"),),
        "TIMESTAMP_MILLIS": ((1, "TO_TIMESTAMP({0}, 3)"),),
        "TIMESTAMP_SECONDS": ((1, "TO_TIMESTAMP({0})"),),
        "TIMESTAMP_TRUNC": ((2, "DATE_TRUNC({1:quoted}, {0})"),),
        "UNIX_SECONDS": ((1, "DATE_PART(epoch_second, {0})"),),
    },
    "postgres": {
        **_PARTS,
        "CHARINDEX": ((2, "STRPOS({1}, {0})"),),
        "COUNTIF": ((1, "COUNT(*) FILTER (WHERE {0})"),),
        "COUNT_IF": ((1, "COUNT(*) FILTER (WHERE {0})"),),
        "CURDATE": _TODAY,
        "DATEADD": ((3, "({2} + {1} * INTERVAL '1 {0:unit}')"),),
        "DATEDIFF": ((2, "(({0})::date - ({1})::date)"),),
        "DATEFROMPARTS": ((3, "MAKE_DATE({0}, {1}, {2})"),),
        "DATE_FORMAT": ((2, "TO_CHAR({0}, {1:mysql})"),),
        "DATE_SUB": ((2, "({0} - INTERVAL '{1:number} {1:per}')"),),
        "FORMAT_DATE": ((2, "TO_CHAR({1}, {0:bigquery})"),),
        "FROM_UNIXTIME": ((1, "TO_TIMESTAMP({0})"),),
        "GETDATE": ((0, "NOW()"),),
        "GROUP_CONCAT": ((1, "STRING_AGG(({0})::text, ',')"), (2, "STRING_AGG(({0})::text, {1})")),
        "IF": _CASE,
        "IFF": _CASE,
        "IFNULL": _COALESCE,
        "INSTR": ((2, "STRPOS({0}, {1})"),),
        "LEN": ((1, "LENGTH({0})"),),
        "LISTAGG": ((2, "STRING_AGG(({0})::text, {1})"),),
        "LOCATE": ((2, "STRPOS({1}, {0})"),),
        "MEDIAN": ((1, "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY {0})"),),
        "NVL": _COALESCE,
        "PARSE_DATE": ((2, "TO_DATE({1}, {0:bigquery})"),),
        "RAND": ((0, "RANDOM()"),),
        "REGEXP_CONTAINS": ((2, "{0} ~ {1}"),),
        "SAFE_DIVIDE": _DIVIDE,
        "STR_TO_DATE": ((2, "TO_DATE({0}, {1:mysql})"),),
        "SYSDATE": ((0, "NOW()"),),
        "TRUNCATE": ((1, "TRUNC({0})"), (2, "TRUNC({0}, {1})")),
        "UNIX_TIMESTAMP": ((1, "EXTRACT(EPOCH FROM {0})"),),
    },
    "mysql": {
        "ARRAY_AGG": ((1, "JSON_ARRAYAGG({0})"),),
        "CHARINDEX": ((2, "LOCATE({0}, {1})"),),
        "COUNTIF": ((1, "COUNT(CASE WHEN {0} THEN 1 END)"),),
        "COUNT_IF": ((1, "COUNT(CASE WHEN {0} THEN 1 END)"),),
        "DATEADD": ((3, "DATE_ADD({2}, INTERVAL {1} {0:unit})"),),
        "DATE_DIFF": ((3, "TIMESTAMPDIFF({2:unit}, {1}, {0})"),),
        "DATE_PART": ((2, "EXTRACT({0:unit} FROM {1})"),),
        "FORMAT_DATE": ((2, "DATE_FORMAT({1}, {0:bigquery})"),),
        "GETDATE": ((0, "NOW()"),),
        "IFF": ((3, "IF({0}, {1}, {2})"),),
        "LEN": ((1, "CHAR_LENGTH({0})"),),
        "LISTAGG": ((2, "GROUP_CONCAT({0} SEPARATOR {1})"),),
        "NVL": ((2, "IFNULL({0}, {1})"),),
        "PARSE_DATE": ((2, "STR_TO_DATE({1}, {0:bigquery})"),),
        "RANDOM": ((0, "RAND()"),),
        "SAFE_DIVIDE": _DIVIDE,
        "SPLIT_PART": ((3, "SUBSTRING_INDEX(SUBSTRING_INDEX({0}, {1}, {2}), {1}, -1)"),),
        "STRING_AGG": ((2, "GROUP_CONCAT({0} SEPARATOR {1})"),),
        "STRPOS": ((2, "LOCATE({1}, {0})"),),
        "TO_CHAR": ((2, "DATE_FORMAT({0}, {1:postgres})"),),
        "TO_DATE": ((2, "STR_TO_DATE({0}, {1:postgres})"),),
        "TRUNC": ((1, "TRUNCATE({0}, 0)"), (2, "TRUNCATE({0}, {1})")),
    },
    "spark": {
        "ARRAY_LENGTH": ((1, "SIZE({0})"),),
        "ARRAY_TO_STRING": ((2, "ARRAY_JOIN({0}, {1})"),),
        "COUNTIF": ((1, "COUNT_IF({0})"),),
        "DATEFROMPARTS": ((3, "MAKE_DATE({0}, {1}, {2})"),),
        "FORMAT_DATE": ((2, "DATE_FORMAT({1}, {0:bigquery})"),),
        "GENERATE_ARRAY": ((2, "SEQUENCE({0}, {1})"),),
        "GROUP_CONCAT": (
            (1, "ARRAY_JOIN(COLLECT_LIST({0}), ',')"),
            (2, "ARRAY_JOIN(COLLECT_LIST({0}), {1})"),
        ),
        "IFF": ((3, "IF({0}, {1}, {2})"),),
        "PARSE_DATE": ((2, "TO_DATE({1}, {0:bigquery})"),),
        "SAFE_CAST": ((1, "TRY_CAST({0:typed})"),),
        "SAFE_DIVIDE": ((2, "TRY_DIVIDE({0}, {1})"),),
        "STRPOS": ((2, "INSTR({0}, {1})"),),
        "STR_TO_DATE": ((2, "TO_DATE({0}, {1:mysql})"),),
        "TIMESTAMP_DIFF": ((3, "TIMESTAMPDIFF({2:unit}, {1}, {0})"),),
    },
}
"""Dialect -> function -> rules; only functions that `LACKING` lists for the dialect."""

_MOST = 40
_UNIT = re.compile(r"'?(year|quarter|month|week|day|hour|minute|second)s?'?", re.IGNORECASE)
_INTERVAL = re.compile(r"INTERVAL\s+'?(\d+)'?\s+'?(\w+?)s?'?", re.IGNORECASE)
_TYPED = re.compile(r"(.+)\sAS\s+(\w+(?:\([\d, ]+\))?)\s*", re.IGNORECASE | re.DOTALL)


def rewritten(code: str, dialect: str) -> tuple[str, tuple[str, ...]]:
    """The program with the calls that a rule fits rewritten, and what was changed.

    >>> rewritten("SELECT LEN(s), DATEDIFF(day, a, NOW()) FROM t", "bigquery")[0]
    'SELECT LENGTH(s), DATE_DIFF(CURRENT_TIMESTAMP, a, DAY) FROM t'
    """
    notes: list[str] = []
    for _ in range(_MOST if dialect in REWRITES else 0):
        change = _next(code, dialect)
        if change is None:
            break
        start, end, new = change
        notes.append(f"{code[start:end]} -> {new}")
        code = code[:start] + new + code[end:]
    return code, tuple(notes)


def _next(code: str, dialect: str) -> tuple[int, int, str] | None:
    """The last call that a rule fits, so that arguments come before the call that holds them."""
    try:
        tokens = sqlglot.tokenize(code, read=dialect)
    except SqlglotError:
        return None
    rules = REWRITES[dialect]
    for place in range(len(tokens) - 2, -1, -1):
        name = tokens[place].text.upper()
        member = place > 0 and tokens[place - 1].token_type is TokenType.DOT
        if name not in rules or name not in LACKING[dialect] or member:
            continue
        if tokens[place + 1].token_type is not TokenType.L_PAREN:
            continue
        found = _arguments(tokens, place + 1, code)
        if found is None:
            continue
        end, arguments = found
        new = _filled(rules[name], arguments, dialect)
        if new is not None and not _goes_on(tokens, end):
            return tokens[place].start, tokens[end].end + 1, new
    return None


def _goes_on(tokens: list[Token], end: int) -> bool:
    """True if WITHIN GROUP, OVER or FILTER follows: the call is more than its brackets."""
    after = tokens[end + 1].text.upper() if end + 1 < len(tokens) else ""
    return after in ("WITHIN", "OVER", "FILTER")


def _arguments(tokens: list[Token], opening: int, code: str) -> tuple[int, list[str]] | None:
    """The place of the closing bracket and the texts between the commas."""
    depth, starts, parts = 0, tokens[opening].end + 1, []
    for place in range(opening, len(tokens)):
        token = tokens[place]
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth == 0 or (depth == 1 and token.token_type is TokenType.COMMA):
            parts.append(code[starts : token.start].strip())
            starts = token.end + 1
        if depth == 0:
            return place, [] if parts == [""] else parts
    return None


_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


class _Unfit(Exception):
    """An argument is not what the rule wants."""


class _Argument:
    """An argument that a template asks for in one of several forms."""

    def __init__(self, text: str, dialect: str) -> None:
        self.text, self.dialect = text, dialect

    def __format__(self, form: str) -> str:
        return _FORMS[form](self.text, self.dialect) if form in _FORMS else self._converted(form)

    def _converted(self, origin: str) -> str:
        if not re.fullmatch(r"'[^']*'", self.text):
            raise _Unfit
        return f"'{date_format(self.text[1:-1], origin, self.dialect)}'"


def _unit(text: str, dialect: str) -> str:
    found = _UNIT.fullmatch(text)
    if not found:
        raise _Unfit
    return found[1].upper()


def _interval(text: str) -> re.Match[str]:
    found = _INTERVAL.fullmatch(text)
    if not found:
        raise _Unfit
    return found


def _before(text: str, dialect: str) -> str:
    if not text.isdigit() or text == "0":
        raise _Unfit
    return str(int(text) - 1)


def _typed(text: str, dialect: str) -> str:
    found = _TYPED.fullmatch(text)
    if not found:
        raise _Unfit
    return f"{found[1].strip()} AS {exp.DataType.build(found[2]).sql(dialect)}"


_FORMS = {
    "": lambda text, dialect: text,
    "unit": _unit,
    "quoted": lambda text, dialect: f"'{_unit(text, dialect).lower()}'",
    "number": lambda text, dialect: _interval(text)[1],
    "per": lambda text, dialect: _unit(_interval(text)[2], dialect),
    "before": _before,
    "typed": _typed,
}


def _filled(rules: tuple[Rule, ...], arguments: list[str], dialect: str) -> str | None:
    given = [_Argument(text, dialect) for text in arguments]
    for count, template in rules:
        if count == len(given):
            try:
                return template.format(*given)
            except (_Unfit, SqlglotError, ValueError):
                continue
    return None


@lru_cache(maxsize=512)
def date_format(text: str, origin: str, target: str) -> str:
    """A date format in another dialect's signs. Raises `ValueError` if a sign has no counterpart.

    >>> date_format("YYYY-MM", "postgres", "bigquery"), date_format("%Y%m", "bigquery", "spark")
    ('%Y-%m', 'yyyyMM')
    """
    theirs, ours = Dialect.get_or_raise(origin), Dialect.get_or_raise(target)
    plain = format_time(text, theirs.TIME_MAPPING, theirs.TIME_TRIE) or ""
    written = format_time(plain, ours.INVERSE_TIME_MAPPING, ours.INVERSE_TIME_TRIE) or ""
    back = (format_time(written, ours.TIME_MAPPING, ours.TIME_TRIE) or "").replace("strict", "")
    if re.search(r"[A-Za-z]", re.sub(r"%-?[A-Za-z]", "", plain)) or back != plain:
        raise ValueError(f"{text!r} is no date format that {target} can write")
    return written

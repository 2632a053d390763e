"""Readings of a text that should be one query: what surrounds it taken off, small slips undone.

Each reading is (note, text, dialect), the most faithful first.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lynx_dspy.engines.shadow import COMPILED

DIALECTS = ("postgres", "mysql", "tsql", "bigquery", "snowflake", "duckdb", "sqlite")
_MAX_FOREIGN = 3
_FENCE = re.compile(r"```[\w-]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_THINKING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_START = re.compile(r"\b(?:SELECT|WITH)\b", re.IGNORECASE)
_QUERY = re.compile(r"\s*\(*\s*(?:SELECT|WITH|VALUES)\b", re.IGNORECASE)
_QUOTES = str.maketrans(
    {"“": '"', "”": '"', "‘": "'", "’": "'", "\u00a0": " ", "；": ";", "，": ","}
)
_NO_COMMA_BEFORE = {
    TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.HAVING,
    TokenType.R_PAREN, TokenType.LIMIT,
}  # fmt: skip


def readings(code: str, dialect: str, readable: bool) -> Iterator[tuple[str, str, str]]:
    """The text itself, then what it may have been meant to be, then as other dialects read it.

    `readable`: the text is a query already, so that only the other dialects may add something.
    """
    texts: dict[str, str] = {code: ""}
    if not readable:
        for text in _statements(bare(code), dialect):
            texts.setdefault(text, "took the query out of the text around it")
        for text in list(texts):
            for note, slip in SLIPS if _QUERY.match(text) else ():
                fixed = slip(text, dialect)
                if fixed:
                    texts.setdefault(fixed, note)
    texts = {text: note for text, note in texts.items() if _QUERY.match(text)}
    for text, note in texts.items():
        yield note, text, dialect
    for text, note in list(texts.items())[:_MAX_FOREIGN]:
        for other in DIALECTS:
            if other != dialect:
                yield f"{note}; read as {other}" if note else f"read as {other}", text, other


def bare(text: str) -> str:
    """The text without reasoning, fence and label.

    >>> bare("Here it is:\\n```sql\\nSELECT 1\\n```\\nIt gives one.")
    'SELECT 1'
    """
    text = _THINKING.sub("", text).translate(_QUOTES)
    fenced = [part for part in _FENCE.findall(text) if _START.search(part)]
    if fenced:
        text = fenced[-1]
    start = _START.search(text)
    if start and not _QUERY.match(text):
        text = text[start.start() :]
    return text.strip()


def _statements(text: str, dialect: str) -> Iterator[str]:
    """The queries of a text, the last first, each also cut at its first blank line."""
    whole = [part.strip() for part in _split(text, dialect) if _QUERY.match(part)]
    for part in reversed(whole):
        yield part
    for part in reversed(whole or [text]):
        lines = re.split(r"\n\s*\n", part)
        for count in range(len(lines) - 1, 0, -1):
            yield "\n\n".join(lines[:count]).strip()


def tokens_of(text: str, dialect: str) -> list[Token]:
    """The tokens of a text; none if it cannot be cut into them."""
    try:
        return sqlglot.tokenize(text, read=dialect)
    except SqlglotError:
        return []


def _split(text: str, dialect: str) -> list[str]:
    ends = [t.start for t in tokens_of(text, dialect) if t.token_type is TokenType.SEMICOLON]
    cuts = [0, *(end + 1 for end in ends), len(text) + 1]
    return [text[a : b - 1] for a, b in itertools.pairwise(cuts)]


def _closed(text: str, dialect: str) -> str:
    """A bracket that is missing at the end, or one too many there."""
    tokens = tokens_of(text, dialect)
    depth = sum(
        (t.token_type is TokenType.L_PAREN) - (t.token_type is TokenType.R_PAREN) for t in tokens
    )
    if depth > 0:
        return text.rstrip().rstrip(";") + ")" * depth
    if depth < 0:
        closing = [t for t in tokens if t.token_type is TokenType.R_PAREN][depth:]
        for token in reversed(closing):
            text = text[: token.start] + text[token.end + 1 :]
        return text
    return ""


def _uncommaed(text: str, dialect: str) -> str:
    """A comma before FROM, a bracket or the end."""
    tokens = tokens_of(text, dialect)
    after = [*(t.token_type for t in tokens[1:]), TokenType.R_PAREN]
    drop = [
        t
        for t, n in zip(tokens, after, strict=False)
        if t.token_type is TokenType.COMMA and n in _NO_COMMA_BEFORE
    ]
    for token in reversed(drop):
        text = text[: token.start] + text[token.end + 1 :]
    return text if drop else ""


def _unescaped(text: str, dialect: str) -> str:
    r"""Markdown's `\_` and `\*`, and texts that hold `\'`."""
    return re.sub(r"\\'", "''", re.sub(r"\\([_*])", r"\1", text)) if "\\" in text else ""


def _cut_short(text: str, dialect: str) -> str:
    """A reply that broke off: everything up to the last complete line."""
    lines = text.strip().splitlines()
    return "\n".join(lines[:-1]) if len(lines) > 2 else ""


def _named_safely(text: str, dialect: str) -> str:
    """A reserved word used as an alias gets quotes."""
    tokens = tokens_of(text, dialect)
    plain = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.L_PAREN}
    found = [
        b
        for a, b in itertools.pairwise(tokens)
        if a.token_type is TokenType.ALIAS
        and b.token_type not in plain
        and b.text.isalpha()
        and b.text.upper() not in ("SELECT", "WITH")
        and not _is_type(b)
    ]
    for token in reversed(found):
        text = f'{text[: token.start]}"{token.text}"{text[token.end + 1 :]}'
    return text if found else ""


def _is_type(token: Token) -> bool:
    kinds = ("INT", "DATE", "TEXT", "DECIMAL", "FLOAT", "DOUBLE", "CHAR", "VARCHAR", "TIMESTAMP")
    return token.token_type.name.startswith(kinds)


_TOP = re.compile(r"(\s*SELECT\s+(?:DISTINCT\s+)?)TOP\s+\(?(\d+)\)?\s+(?!PERCENT)", re.IGNORECASE)


def _topped(text: str, dialect: str) -> str:
    """SELECT TOP n, where only a LIMIT is known and none is written."""
    found = _TOP.match(text)
    if not found or dialect in COMPILED or re.search(r"\bLIMIT\b", text, re.IGNORECASE):
        return ""
    return f"{found[1]}{text[found.end() :].rstrip().rstrip(';')} LIMIT {found[2]}"


SLIPS = (
    ("dropped a comma", _uncommaed),
    ("closed a bracket", _closed),
    ("quoted a reserved word", _named_safely),
    ("took out backslashes", _unescaped),
    ("TOP -> LIMIT", _topped),
    ("cut off the last line", _cut_short),
)

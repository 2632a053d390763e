"""Find the program in a model's reply, whatever the model has put round it.

The order is: drop reasoning spans and what follows a chat token; then the last complete fence that
holds a query, else an unclosed one, else the query in the plain text. Of several statements the
last query that parses is taken, for models think aloud in earlier ones. sqlglot only judges; the
text is handed on as it was written, without the closing semicolon. All scans are linear in time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import sqlglot
from sqlglot.errors import SqlglotError

How = Literal["fence", "open fence", "text", "none"]

_PARSED_CHARS = 20_000  # longer programs are not judged: sqlglot would take seconds
_TRIES = 24  # places in plain text where a query may begin

_CHAT_END = re.compile(r"<\|(?:im_end|endoftext|eot_id|end|im_start|end_of_text)\|>|</s>")
_CHAT_TOKEN = re.compile(r"<\|[a-z_]{2,20}\|>|<s>")
_THINKING = r"(?:think|thinking|thought|reasoning|reflection)"
_REASONING_TAG = re.compile(rf"<(?P<end>/?){_THINKING}>", re.IGNORECASE)
_FENCE = re.compile(r"`{3,}|~{3,}")
_LANGUAGE = re.compile(r"[ \t]*([A-Za-z][\w+#.-]*)?[ \t]*(?:\r?\n|$)")
_INLINE_LANGUAGE = re.compile(r"[ \t]*(?:sql|sqlite|duckdb|postgresql|mysql|bigquery)\s", re.I)
_OPENS = re.compile(r"[A-Za-z]")
_OTHER_LANGUAGES = frozenset({"python", "py", "json", "text", "txt", "bash", "sh", "csv", "output"})

_COMMENT = r"(?:--[^\n]*(?:\n|$)|/\*(?:.*?\*/|.*))"
_QUERY = re.compile(rf"(?:\s|\(|{_COMMENT})*+(?:SELECT|WITH|VALUES|FROM)\b", re.I | re.S)
_STATEMENT = re.compile(
    rf"(?:\s|\(|{_COMMENT})*+(?:SELECT|WITH|VALUES|FROM|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|"
    r"REPLACE|MERGE|PRAGMA|EXPLAIN|SHOW|DESCRIBE|ATTACH|TRUNCATE)\b",
    re.I | re.S,
)
_BEGIN = re.compile(
    r"^(?:[ \t>*`#]*(?:[\w \t]{0,40}:[ \t*`]*)?)"
    r"(?P<line>\(*(?:SELECT|VALUES)\b|WITH\s+(?:RECURSIVE\s+)?[\w\"`\[\]]+\s*(?:\([^()]*\)\s*)?AS\b)"
    r"|(?P<mid>\bSELECT\s|\bWITH\s+\w+\s+AS\s*\()",
    re.I | re.M,
)
_TOKEN = re.compile(
    r"(?P<quoted>'(?:[^']|'')*+'|\"[^\"\n]*+\"|`[^`\n]*+`|\[[^\]\n]*+\])"
    rf"|(?P<comment>{_COMMENT})"
    r"|(?P<blank>\n[ \t\r]*(?=\n))|(?P<newline>\n)|(?P<word>[^\W\d]\w*)|(?P<space>[^\S\n]+)"
    r"|(?P<sign>\S)",
    re.S,
)
_KEYWORDS = """
select from where group order having limit offset union except intersect join left right full
inner outer cross natural lateral on using and or not in is like between case when then else end
as by asc desc with values window qualify partition over distinct all exists set fetch interval
null nulls first last rows range collate glob regexp ilike pivot unpivot sample tablesample for
recursive any some escape
"""  # a line that begins with one of these still belongs to the statement
_CONTINUES = frozenset(_KEYWORDS.split())
_SETS = frozenset({"union", "except", "intersect", "all", "distinct", "as"})


@dataclass(frozen=True, slots=True)
class Extraction:
    """The program of a reply. `complete` is False if the reply was, or seems, cut off.

    `how` says where the program stood; with `none` there is none and `code` is empty.
    """

    code: str
    complete: bool
    how: How


def extract_program(reply: str, dialect: str, finish_reason: str = "") -> Extraction:
    """The program in `reply`; never raises. `dialect` is sqlglot's name, or empty.

    >>> extract_program("Sure:\\n```sql\\nSELECT 1;\\n```\\nIt is one.", "sqlite").code
    'SELECT 1'
    """
    text = without_reasoning(reply)
    code, how = _find(text, dialect)
    if not code and text != reply:
        # A model that never ended its reasoning may have fenced the answer within it.
        code, how = _from_fences(_without_tokens(reply), dialect)
    whole = how == "fence" or (bool(code) and parses(code, dialect))
    return Extraction(code, whole and bool(code) and finish_reason != "length", how)


def without_reasoning(reply: str) -> str:
    """The reply without reasoning spans (closed or not) and chat tokens.

    >>> without_reasoning("<think>hm</think>SELECT 1<|im_end|> and so on")
    'SELECT 1'
    """
    kept: list[str] = []
    position, depth = 0, 0
    for tag in _REASONING_TAG.finditer(reply):
        if tag["end"] and depth == 0:
            kept.clear()  # the chat template has swallowed the opening tag
        elif depth == 0:
            kept.append(reply[position : tag.start()])
        depth = max(0, depth - 1) if tag["end"] else 1
        position = tag.end()
    if depth == 0:
        kept.append(reply[position:])
    return _without_tokens("".join(kept)).strip()


def parses(code: str, dialect: str) -> bool:
    """Whether sqlglot reads `code` as one statement. Very long code is not judged: True."""
    if len(code) > _PARSED_CHARS:
        return True
    try:
        sqlglot.parse_one(code, dialect=_known(dialect))
    except (SqlglotError, RecursionError, ValueError, IndexError, AttributeError):
        return False
    return True


@lru_cache(maxsize=64)
def _known(dialect: str) -> str | None:
    try:
        sqlglot.Dialect.get_or_raise(dialect)
    except ValueError:
        return None
    return dialect or None


def _without_tokens(text: str) -> str:
    text = _CHAT_TOKEN.sub("", text) if text.lstrip().startswith("<|") else text
    return _CHAT_TOKEN.sub("", _CHAT_END.split(text, maxsplit=1)[0])


def _find(text: str, dialect: str) -> tuple[str, How]:
    code, how = _from_fences(text, dialect)
    return (code, how) if code else _from_text(text, dialect)


@dataclass(frozen=True, slots=True)
class _Fenced:
    language: str
    content: str
    closed: bool


def _fences(text: str) -> Iterator[_Fenced]:
    """Fenced blocks in order; a mark with a language tag opens even where one should close."""
    start: int | None = None
    for mark in _FENCE.finditer(text):
        opens = _OPENS.match(text, mark.end()) is not None
        if start is not None:
            yield _fenced(text[start : mark.start()], closed=not opens)
        start = mark.end() if start is None or opens else None
    if start is not None:
        yield _fenced(text[start:], closed=False)


def _fenced(body: str, *, closed: bool) -> _Fenced:
    tag = _LANGUAGE.match(body)
    if tag and "\n" in body:
        return _Fenced((tag[1] or "").lower(), body[tag.end() :], closed)
    inline = _INLINE_LANGUAGE.match(body)
    return _Fenced("", body[inline.end() :] if inline else body, closed)


def _from_fences(text: str, dialect: str) -> tuple[str, How]:
    """The last closed fence with a query, else the last open one, else any statement at all."""
    blocks = [b for b in _fences(text) if b.language not in _OTHER_LANGUAGES]
    blocks.reverse()
    for begins in (_QUERY, _STATEMENT):
        for block in (b for b in blocks if b.closed):
            if begins.match(block.content):
                return _choose(block.content, dialect), "fence"
        for block in (b for b in blocks if not b.closed):
            if begins.match(block.content):
                return _from_text(block.content, dialect)[0], "open fence"
    return "", "none"


def _choose(script: str, dialect: str) -> str:
    """The last query of a script that parses, else its last query, else its last statement."""
    statements = [s for s in _split(script) if s]
    queries = [s for s in statements if _QUERY.match(s)]
    good = (s for s in reversed(queries[-_TRIES:]) if parses(s, dialect))
    return next(good, (queries or statements or [""])[-1])


def _split(script: str) -> Iterator[str]:
    """The statements of a script: split at semicolons outside quotes, comments and brackets."""
    start = 0
    for token in _TOKEN.finditer(script):
        if token["sign"] == ";":
            yield script[start : token.start()].strip()
            start = token.end()
    yield script[start:].strip()


def _from_text(text: str, dialect: str) -> tuple[str, How]:
    """The last query in prose that parses, else the first thing that looks like one."""
    accepted = first = ""
    position = 0
    for _ in range(_TRIES):
        begin = _BEGIN.search(text, position)
        if begin is None:
            break
        start = begin.start("line") if begin["line"] else begin.start("mid")
        code = _trimmed(text[start:])
        first = first or code
        if parses(code, dialect):
            accepted = code
            position = start + len(code)
        else:
            position = begin.end()
    if accepted or first:
        return accepted or first, "text"
    return (_choose(text, dialect), "text") if _STATEMENT.match(text) else ("", "none")


def _trimmed(text: str) -> str:
    """The statement that `text` begins with, without the prose after it."""
    scan = _Scan(text)
    return text[: scan.end()].rstrip().rstrip(";`").rstrip()


class _Scan:
    """Walks over a statement and stops where prose or another statement begins."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.depth = 0
        self.before = ""  # the last word or sign
        self.breaks = 0  # line breaks since then: 1 a new line, 2 a blank line
        self.main = False  # a SELECT outside brackets has been seen

    def end(self) -> int:
        """Where the statement ends."""
        for token in _TOKEN.finditer(self.text):
            if token["sign"] == ";" and self.depth == 0:
                return token.start()
            if token["blank"] or token["newline"]:
                self.breaks += 1
            elif not (token["space"] or token["comment"]):
                if self.breaks and self.depth == 0 and self._is_over(token):
                    return token.start()
                self._step(token)
        return len(self.text)

    def _step(self, token: re.Match[str]) -> None:
        sign = token["sign"] or ""
        self.depth = max(0, self.depth + (sign == "(") - (sign == ")"))
        self.before = token[0].lower()
        self.main = self.main or (self.depth == 0 and self.before == "select")
        self.breaks = 0

    def _is_over(self, token: re.Match[str]) -> bool:
        """Whether a line that starts with this token no longer belongs to the statement."""
        word = (token["word"] or "").lower()
        if word in ("select", "with"):
            return self.breaks > 1 and self.main and self.before not in _SETS
        if word in _CONTINUES or self._is_open():
            return False
        if token["sign"] and token["sign"] not in "`#*>":
            return False
        return bool(token["word"]) or self.breaks > 1 or bool(token["sign"])

    def _is_open(self) -> bool:
        """Whether what came last needs something after it."""
        last = self.before[-1:]
        return self.before in _CONTINUES - {"end", "null"} or last in ",=<>+-*/|.("

"""Comments inside CREATE TABLE: SQLite keeps the text, and people write meanings there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?\*/)
      | (?P<name>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|[^\W\d][\w$]*)
      | (?P<text>'(?:[^']|'')*')
      | (?P<newline>\n)
      | (?P<sign>\S)""",
    re.S | re.X,
)
_NOT_COLUMNS = frozenset({"constraint", "primary", "foreign", "unique", "check", "key", "index"})


@dataclass(frozen=True, slots=True)
class DDLComments:
    """What a CREATE TABLE says about the table and, by folded name, about its columns."""

    table: str = ""
    columns: dict[str, str] = field(default_factory=dict)


def read_comments(sql: str) -> DDLComments:
    r"""A comment behind a column belongs to it; one on a line of its own to the next column.

    >>> read_comments("CREATE TABLE t ( -- people\n a INT, -- age\n b TEXT /* home */)").columns
    {'a': 'age', 'b': 'home'}
    """
    if "--" not in sql and "/*" not in sql:
        return DDLComments()
    reader = _Reader()
    for match in _TOKEN.finditer(sql):
        reader.take(match.lastgroup or "", match[0])
    found = {name: " ".join(texts) for name, texts in reader.columns.items() if texts}
    return DDLComments(" ".join(reader.table), found)


class _Reader:
    """Follows the tokens of one CREATE TABLE."""

    def __init__(self) -> None:
        self.table: list[str] = []
        self.columns: dict[str, list[str]] = {}
        self._waiting: list[str] = []
        self._depth = 0
        self._at_start = False
        self._column = ""
        self._line_has_column = False
        self._line_is_fresh = True

    def take(self, kind: str, text: str) -> None:
        if kind == "comment":
            self._comment(text)
        elif kind == "newline":
            self._line_has_column = False
            self._line_is_fresh = True
            return
        elif text in ("(", ")"):
            self._parenthesis(text)
        elif text == "," and self._depth == 1:
            self._at_start = True
        elif self._depth == 1:
            self._definition(kind, text)
        self._line_is_fresh = False

    def _parenthesis(self, text: str) -> None:
        self._depth += 1 if text == "(" else -1
        self._at_start = self._at_start or (text == "(" and self._depth == 1)

    def _definition(self, kind: str, text: str) -> None:
        if self._at_start:
            self._at_start = False
            name = _bare(text)
            is_column = kind in ("name", "text") and text.casefold() not in _NOT_COLUMNS
            self._column = name.casefold() if is_column else ""
            if is_column:
                self.columns[self._column] = self._waiting
            self._waiting = []
        self._line_has_column = True

    def _comment(self, text: str) -> None:
        words = " ".join(_words(text))
        if not words:
            return
        if self._line_has_column:
            if self._column:
                self.columns[self._column].append(words)
        elif self._depth and self._line_is_fresh:
            self._waiting.append(words)
        else:
            self.table.append(words)


def _bare(text: str) -> str:
    if text[0] in "\"`'":
        return text[1:-1].replace(text[0] * 2, text[0])
    return text[1:-1] if text[0] == "[" else text


def _words(comment: str) -> Iterator[str]:
    body = comment[2:] if comment.startswith("--") else comment[2:-2]
    return (word for word in body.replace("*", " ").split() if word.strip("-="))

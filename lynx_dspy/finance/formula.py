"""Formulas of the alphas as trees: the notation of "101 Formulaic Alphas" (Kakushadze, 2015).

From what binds least to what binds most: `c ? a : b` (right to left), `||`, `&&`, comparisons (at
most one), `+ -`, `* /`, signs, `^` (right to left), calls and parentheses. Names are read without
regard to case, functions also without regard to underscores: `Ts_Rank` is `ts_rank`. Nothing is
evaluated here, and no text of a formula is ever run as Python.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from lynx_dspy.errors import BadInput

MAX_CHARS = 10_000
MAX_DEPTH = 200
"""Levels of a tree, such as terms of a sum; the deepest alpha of the paper has 17."""

MAX_NESTING = 50
"""Parentheses, signs and powers within each other: each level costs the parser ten calls."""

_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)?)"
    r"|(?P<sign>\|\||&&|<=|>=|==|!=|[-+*/^<>?:(),])",
    re.ASCII,
)
_BLANKS = re.compile(r"\s*")
_COMPARISONS = frozenset({"<", ">", "<=", ">=", "==", "!="})
_LEVELS = (
    frozenset({"||"}),
    frozenset({"&&"}),
    _COMPARISONS,
    frozenset({"+", "-"}),
    frozenset({"*", "/"}),
)
"""Infix signs from what binds least to what binds most; all but `^` read from left to right."""


class FormulaError(BadInput):
    """A formula that cannot be read or computed: where, what was got, what is known.

    >>> raise FormulaError("rank(close", 10, "')' is missing")
    Traceback (most recent call last):
    lynx_dspy.finance.formula.FormulaError: Formula, column 11: ')' is missing. After 'rank(close'.
    """

    def __init__(self, text: str, at: int, what: str) -> None:
        before = " ".join(text[max(0, at - 24) : at].split())
        after = " ".join(text[at : at + 24].split())
        place = f"At {after!r}" if after else f"After {before!r}" if before else "It is empty"
        super().__init__(f"Formula, column {at + 1}: {what.rstrip('.')}. {place}.")


@dataclass(frozen=True, slots=True)
class Number:
    """A constant."""

    value: float
    at: int = field(default=0, compare=False)
    depth: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Name:
    """A field of the panel such as `close`, or a class such as `indclass.industry`; folded."""

    name: str
    at: int = field(default=0, compare=False)
    depth: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function or a sign (`+`, `?`, `neg` ...) with its arguments; equal calls compute alike."""

    function: str
    arguments: tuple[Node, ...]
    at: int = field(default=0, compare=False)
    depth: int = field(default=1, compare=False)


Node = Number | Name | Call


def parse(text: str) -> Node:
    """The tree of a formula. Raises `FormulaError` for whatever is none.

    >>> parse("-Close").function, parse("2 * close ^ 3 ^ 2").function
    ('neg', '*')
    """
    if len(text) > MAX_CHARS:
        raise FormulaError(text, 0, f"longer than {MAX_CHARS:,} characters ({len(text):,})")
    return _Parser(text).formula()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


class _Parser:
    """Reads one formula by precedence climbing; `_nested` bounds how deep it may call itself."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._position = 0
        self._nested = 0

    def formula(self) -> Node:
        tree = self._choice()
        token = self._peek()
        if token.kind != "end":
            raise self._error(f"nothing can follow here, got {token.text!r}")
        return tree

    def _choice(self) -> Node:
        self._descend()
        condition = self._infix(0)
        mark = self._peek()
        if self._take("?"):
            yes = self._choice()
            self._expect(":")
            condition = self._call("?", (condition, yes, self._choice()), mark.at)
        self._nested -= 1
        return condition

    def _infix(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._signed()
        left = self._infix(level + 1)
        while (token := self._peek()).text in _LEVELS[level]:
            self._position += 1
            left = self._call(token.text, (left, self._infix(level + 1)), token.at)
            if token.text in _COMPARISONS and self._peek().text in _COMPARISONS:
                raise self._error("comparisons do not chain; put one of them into parentheses")
        return left

    def _signed(self) -> Node:
        token = self._peek()
        if token.text not in ("-", "+"):
            return self._power()
        self._position += 1
        self._descend()
        operand = self._signed()
        self._nested -= 1
        return self._call("neg", (operand,), token.at) if token.text == "-" else operand

    def _power(self) -> Node:
        base = self._operand()
        mark = self._peek()
        if not self._take("^"):
            return base
        self._descend()
        power = self._call("^", (base, self._signed()), mark.at)
        self._nested -= 1
        return power

    def _operand(self) -> Node:
        token = self._peek()
        self._position += 1
        if token.kind == "number":
            return self._number(token)
        if token.kind == "name":
            if not self._take("("):
                return Name("".join(token.text.split()).casefold(), token.at)
            function = "".join(token.text.split()).casefold().replace("_", "")
            return self._call(function, self._arguments(), token.at)
        if token.text == "(":
            inner = self._choice()
            self._expect(")")
            return inner
        self._position -= 1
        raise self._missing("a number, a name or '('")

    def _arguments(self) -> tuple[Node, ...]:
        if self._take(")"):
            return ()
        found = [self._choice()]
        while self._take(","):
            found.append(self._choice())
        self._expect(")")
        return tuple(found)

    def _number(self, token: _Token) -> Node:
        value = float(token.text)
        if not math.isfinite(value):
            raise FormulaError(self._text, token.at, f"the number {token.text} is too large")
        return Number(value, token.at)

    def _call(self, function: str, arguments: tuple[Node, ...], at: int) -> Call:
        depth = 1 + max((argument.depth for argument in arguments), default=0)
        if depth > MAX_DEPTH:
            raise FormulaError(self._text, at, f"nested deeper than {MAX_DEPTH} levels")
        return Call(function, arguments, at, depth)

    def _descend(self) -> None:
        self._nested += 1
        if self._nested > MAX_NESTING:
            raise self._error(f"nested deeper than {MAX_NESTING} levels")

    def _peek(self) -> _Token:
        return self._tokens[self._position]

    def _take(self, sign: str) -> bool:
        taken = self._peek().text == sign
        self._position += taken
        return taken

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise self._missing(repr(sign))

    def _missing(self, what: str) -> FormulaError:
        token = self._peek()
        return self._error(f"{what} is missing" + (f", got {token.text!r}" if token.text else ""))

    def _error(self, what: str) -> FormulaError:
        return FormulaError(self._text, self._peek().at, what)


def _tokens(text: str) -> list[_Token]:
    """The tokens of a formula; the last is an empty one of the kind `end`."""
    found: list[_Token] = []
    position = _blanks(text, 0)
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise FormulaError(text, position, f"{text[position]!r} is no sign of a formula")
        found.append(_Token(str(match.lastgroup), match[0], position))
        position = _blanks(text, match.end())
    return [*found, _Token("end", "", len(text))]


def _blanks(text: str, start: int) -> int:
    match = _BLANKS.match(text, start)
    return match.end() if match else start

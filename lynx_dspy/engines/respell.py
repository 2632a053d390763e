"""Rewrites the constructs of other dialects in a tree, so that SQLite means the same by them.

Each rule takes one node and gives its replacement or None; rules run from the leaves up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from lynx_dspy.engines import date_rules as dates
from lynx_dspy.engines import spelling
from lynx_dspy.engines.date_rules import Types, called
from lynx_dspy.engines.shadow import known_functions
from lynx_dspy.values import Schema


@dataclass(frozen=True, slots=True)
class Change:
    """One construct that was rewritten. `silent`: SQLite runs the old one with another meaning."""

    before: str
    after: str
    silent: bool


def respell(tree: exp.Expr, schema: Schema) -> tuple[exp.Expr, tuple[Change, ...]]:
    """`tree` rewritten in place for the schema's dialect, with what was changed.

    Only SQLite needs own rules; for other dialects the tree comes back as it is.
    """
    if schema.dialect != "sqlite":
        return tree, ()
    types = Types(tree, schema)
    changes: list[Change] = []
    root = exp.Paren(this=tree)
    for node in reversed(list(tree.walk())):
        for loud, rule in RULES:
            new = rule(node, types)
            if new is not None:
                new = _fitted(new, node)
                changes.append(Change(_text(node), _text(new), not loud))
                node.replace(new)
                break
    return root.this.pop(), tuple(changes)


def _text(node: exp.Expr) -> str:
    return node.sql("sqlite", unsupported_level=ErrorLevel.IGNORE)


def _fitted(new: exp.Expr, old: exp.Expr) -> exp.Expr:
    """Brackets only where an operator stands beside."""
    free = not isinstance(old.parent, exp.Binary | exp.Unary | exp.Between | exp.Cast)
    return new.this.pop() if free and isinstance(new, exp.Paren) else new


def _calls(node: exp.Expr, types: Types) -> exp.Expr | None:
    """Functions that the engine lacks and the table knows."""
    if not isinstance(node, exp.Func) or (
        isinstance(node, exp.AggFunc) and node.find(exp.Distinct)
    ):
        return None
    name = called(node) or node.sql_name()
    args = list(node.expressions) if isinstance(node, exp.Anonymous) else _arguments(node)
    text = spelling.CALLS.get((name, len(args)))
    have = known_functions("sqlite") or ()
    if text is None or name.casefold() in have:
        return None
    return spelling.fill(text, **dict(zip("abc", args, strict=False)))


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    return [child for child in node.iter_expressions() if not isinstance(child, exp.Var)]


def _joined_text(node: exp.Expr, types: Types) -> exp.Expr | None:
    if isinstance(node, exp.ConcatWs) or not isinstance(node, exp.Concat):
        return None
    parts = list(node.expressions)
    if not parts:
        return None
    joined = parts[0].copy()
    for part in parts[1:]:
        joined = exp.DPipe(this=joined, expression=_operand(part), safe=True)
    return exp.paren(joined)


def _operand(part: exp.Expr) -> exp.Expr:
    return exp.paren(part.copy()) if isinstance(part, exp.Binary) else part.copy()


def _operators(node: exp.Expr, types: Types) -> exp.Expr | None:
    if isinstance(node, exp.ILike):
        return exp.Like(this=node.this.copy(), expression=node.expression.copy())
    if isinstance(node, exp.AtTimeZone):
        inner: exp.Expr = node.this
        return inner.copy()
    if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
        query = node.expression.this
        if isinstance(query, exp.Subquery | exp.Select):
            return exp.In(this=node.this.copy(), query=query.copy())
    return None


def _reserved_name(node: exp.Expr, types: Types) -> exp.Expr | None:
    """A reserved word as a name."""
    if not isinstance(node, exp.Identifier) or node.args.get("quoted"):
        return None
    reserved = node.name.upper() in spelling.RESERVED
    return exp.to_identifier(node.name, quoted=True) if reserved else None


def _pairs_counted(node: exp.Expr, types: Types) -> exp.Expr | None:
    """COUNT(DISTINCT a, b)."""
    inner = node.this if isinstance(node, exp.Count) else None
    if not isinstance(inner, exp.Distinct) or len(inner.expressions) < 2:
        return None
    joined = inner.expressions[0].copy()
    for part in inner.expressions[1:]:
        joined = exp.DPipe(
            this=exp.DPipe(this=joined, expression=exp.Literal.string("|")),
            expression=_operand(part),
        )
    return exp.Count(this=exp.Distinct(expressions=[joined]))


def _integer_division(node: exp.Expr, types: Types) -> exp.Expr | None:
    """COUNT(...) / COUNT(...): SQLite drops the fraction of a ratio."""
    if not isinstance(node, exp.Div) or not all(map(_is_count, (node.this, node.expression))):
        return None
    return exp.Div(this=exp.cast(node.this.copy(), "REAL"), expression=node.expression.copy())


def _is_count(node: exp.Expr) -> bool:
    inner = node.unnest()
    if isinstance(inner, exp.Nullif | exp.Filter):
        return _is_count(inner.this)
    if isinstance(inner, exp.Subquery | exp.Select):
        return len(inner.selects) == 1 and _is_count(inner.selects[0].unalias())
    if isinstance(inner, exp.Sum) and isinstance(inner.this, exp.Case):
        values = [i.args["true"] for i in inner.this.args["ifs"]]
        return all(isinstance(v, exp.Literal) and v.is_int for v in values)
    return isinstance(inner, exp.Count)


Rule = Callable[[exp.Expr, Types], exp.Expr | None]

RULES: tuple[tuple[bool, Rule], ...] = (
    (True, dates.parts),
    (True, dates.truncated),
    (True, dates.arithmetic),
    (False, dates.bare_arithmetic),
    (True, dates.added),
    (True, dates.difference),
    (True, dates.span_of_days),
    (True, dates.formatted),
    (False, dates.swapped_format),
    (False, dates.text_against_number),
    (True, _calls),
    (True, _joined_text),
    (True, _operators),
    (True, _reserved_name),
    (True, _pairs_counted),
    (False, dates.cast_to_date),
    (False, _integer_division),
)
"""(loud, rule): a loud rule cures what SQLite refuses."""


def foreign_words(code: str, dialect: str) -> Iterator[str]:
    """Words of other dialects in `code` that the tables have a hint for."""
    for word in spelling.HINTS.get(dialect, {}):
        pattern = re.escape(word) if not word.isalpha() else rf"\b{word}\b"
        if re.search(pattern, code, re.IGNORECASE):
            yield word

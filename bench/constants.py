"""Value grounding: the text constants of gold queries that linking finds in the question.

Printed by `python -m bench.linking SOURCE ... --values`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from sqlglot import exp

from lynx_dspy.grounding.identifiers import fold
from lynx_dspy.values import Link, Schema

_PATTERNS = (exp.Like, exp.ILike)
_COMPARED = (exp.EQ, exp.NEQ, exp.In, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, *_PATTERNS)


class Constant(NamedTuple):
    """A text that the query compares a column with; `column` is its bare name in lower case.

    Of a LIKE pattern the text is what stands between its outer signs.
    """

    column: str
    text: str
    like: bool = False

    def is_met_by(self, value: str) -> bool:
        """Whether `value` is the constant, letter by letter, or holds what the pattern asks for."""
        return fold(self.text) in fold(value) if self.like else self.text == value


class Told(NamedTuple):
    """One question: its constants, those found, the values told, and how many are meant."""

    constants: int
    found: int
    values: int
    right: int


def constants(tree: exp.Expr, schema: Schema) -> frozenset[Constant]:
    """The texts that a column is compared with by =, <>, IN, BETWEEN, <, > or LIKE.

    A quoted name that is no column of the schema is a text too: SQLite reads it so.
    """
    known = {c.name.casefold() for t in schema.tables for c in t.columns}
    return frozenset(_constants(tree, known))


def _constants(tree: exp.Expr, known: Collection[str]) -> Iterator[Constant]:
    for node in tree.find_all(*_COMPARED):
        sides = list(_sides(node))
        columns = [c.name.casefold() for c in sides if isinstance(c, exp.Column)]
        column = next((name for name in columns if name in known), None)
        like = isinstance(node, _PATTERNS)
        for text in (_text(side, known) for side in sides) if column is not None else ():
            if text := text.strip("%_") if like else text:
                yield Constant(column or "", text, like)


def _text(side: exp.Expr, known: Collection[str]) -> str:
    if isinstance(side, exp.Literal) and side.is_string:
        return str(side.this)
    quoted = isinstance(side, exp.Column) and side.this.args.get("quoted") and not side.table
    return side.name if quoted and side.name.casefold() not in known else ""


def _sides(node: exp.Expr) -> Iterator[exp.Expr]:
    """What is compared; functions that only change case or type are looked through."""
    parts = [node.this, node.args.get("expression"), node.args.get("low"), node.args.get("high")]
    for part in [*parts, *node.expressions]:
        while isinstance(part, exp.Lower | exp.Upper | exp.Cast | exp.Paren):
            part = part.this
        if part is not None:
            yield part


def told(gold: frozenset[Constant], links: Iterable[Link], least: float) -> Told:
    """What `links` of at least this confidence say of the constants, exact in spelling."""
    named = {(x.column.casefold(), x.value) for x in links if x.value and x.confidence >= least}
    pairs = [(c, v) for c in gold for v in named if c.column == v[0] and c.is_met_by(v[1])]
    return Told(len(gold), len({c for c, _ in pairs}), len(named), len({v for _, v in pairs}))


def row(name: str, way: str, answers: Sequence[Told], sure: Sequence[Told], ms: float) -> str:
    """A row of the table: `sure` are the values of enough confidence to stand in a prompt."""
    wanted = sum(t.constants for t in answers)
    shown = sum(t.values for t in sure)
    cells = (
        *(name, f"{len(answers)}", f"{wanted}", way),
        f"{sum(t.found for t in answers) / max(1, wanted):.3f}",
        f"{sum(t.found for t in sure) / max(1, sum(t.constants for t in sure)):.3f}",
        f"{shown}",
        f"{sum(t.right for t in sure) / max(1, shown):.3f}",
        f"{ms:.1f}",
    )
    return "| " + " | ".join(cells) + " |"


HEAD = """\
| data | n | constants | value links | linked | told | values told | of these right | ms |
|---|---:|---:|---|---:|---:|---:|---:|---:|"""

"""The clauses of a query: what an edit did to each of them, and where a name stands (III-B).

A clause is a list of items: the outputs of SELECT, each join of FROM, each condition of WHERE. A
common table expression is a clause of its own, called `WITH name`.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from lynx_dspy.engines.mend import written
from lynx_dspy.engines.python.steps import names_in, steps
from lynx_dspy.engines.static import parsed

MAX_LENGTH = 6_000
"""Longer programs are compared word by word; a model that runs on writes such."""

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "SELECT": ("distinct", "expressions"),
    "FROM": ("from_", "joins", "laterals"),
    "WHERE": ("where",),
    "GROUP BY": ("group",),
    "HAVING": ("having",),
    "WINDOW": ("windows",),
    "QUALIFY": ("qualify",),
    "ORDER BY": ("order",),
    "LIMIT": ("limit", "offset"),
}
"""Clause -> the arguments of sqlglot's Select that hold it, in the order of the text."""

STEPS: dict[str, Callable[[str], dict[str, tuple[str, ...]]]] = {"pandas": steps}
"""Dialect whose programs are no SQL -> what stands in for their clauses."""

_UNORDERED = frozenset({"WHERE", "HAVING", "QUALIFY", "GROUP BY"})
_MOST_WORDS = 400
_MOST_ITEMS = 12
_LONGEST_ITEM = 120


@dataclass(frozen=True, slots=True)
class ClauseEdit:
    """What an edit took out of one clause and put into it, as SQL text."""

    clause: str
    removed: tuple[str, ...]
    added: tuple[str, ...]

    @property
    def text(self) -> str:
        """The edit in one line: `WHERE -a = 1 +a = 2`."""
        words = [f"-{_clipped(item)}" for item in self.removed[:_MOST_ITEMS]]
        words += [f"+{_clipped(item)}" for item in self.added[:_MOST_ITEMS]]
        return f"{self.clause} {' '.join(words)}"


def query(code: str, dialect: str) -> exp.Query | None:
    """The tree of one query of usual length; None for anything else."""
    tree = parsed(code, dialect) if len(code) <= MAX_LENGTH else None
    return tree if isinstance(tree, exp.Query) else None


def clauses(code: str, dialect: str) -> dict[str, tuple[str, ...]]:
    """Clause -> its items as SQL, in the order of the text; empty for what is no query.

    >>> clauses("SELECT a FROM t WHERE b = 1 AND c > 2", "sqlite")["WHERE"]
    ('b = 1', 'c > 2')
    """
    if read := STEPS.get(dialect):
        return read(code)
    tree = query(code, dialect)
    found: dict[str, list[str]] = {}
    for clause, node in items(tree) if tree is not None else ():
        found.setdefault(clause, []).append(written(node, dialect))
    return {clause: tuple(texts) for clause, texts in found.items()}


def items(tree: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    """Each item of the outermost query with its clause; operands of a UNION are `PART n ...`."""
    for cte in ctes(tree):
        yield f"WITH {cte.alias}", cte
    operands = _operands(tree)
    for number, operand in enumerate(operands, 1):
        prefix = f"PART {number} " if len(operands) > 1 else ""
        for clause, node in _own_items(operand):
            yield prefix + clause, node
    if len(operands) > 1:
        yield from _own_items(tree)


def ctes(tree: exp.Expr) -> list[exp.CTE]:
    """The common table expressions that stand before the query."""
    with_ = tree.args.get("with_")
    return list(with_.expressions) if with_ else []


def edits(before: str, after: str, dialect: str) -> tuple[ClauseEdit, ...]:
    """The clauses that differ between two programs; empty if none does or one cannot be read."""
    old, new = clauses(before, dialect), clauses(after, dialect)
    if not old or not new:
        return ()
    names = [*old, *(name for name in new if name not in old)]
    found = (_edit(name, old.get(name, ()), new.get(name, ())) for name in names)
    return tuple(edit for edit in found if edit is not None)


def code_delta(before: str, after: str, dialect: str = "sqlite") -> str:
    """What was edited, clause by clause; word by word where a program cannot be read.

    >>> code_delta("SELECT a FROM t", "SELECT b FROM t LIMIT 5")
    'SELECT -a +b; LIMIT +LIMIT 5'
    >>> code_delta("SELEC a FROM t", "SELECT a FROM t")
    '-SELEC +SELECT'
    """
    if before == after:
        return ""
    if dialect in STEPS:
        told = "; ".join(edit.text for edit in edits(before, after, dialect))
        return told or _word_delta(before, after)
    if query(before, dialect) is not None and query(after, dialect) is not None:
        return "; ".join(edit.text for edit in edits(before, after, dialect))
    return _word_delta(before, after)


def tables_named(code: str, dialect: str) -> frozenset[str]:
    """Folded names of the tables that a program reads, as far as its text tells.

    >>> tables_named("SELECT a FROM T JOIN u USING (id)", "sqlite") == {"t", "u"}
    True
    """
    if dialect in STEPS:
        return frozenset(name.casefold() for name in names_in(code))
    tree = query(code, dialect)
    return frozenset(n.name.casefold() for n in tree.find_all(exp.Table)) if tree else frozenset()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a name stands: the clause, the item that holds it, the line counted from 1."""

    clause: str
    item: str
    line: int


def places(name: str, code: str, dialect: str) -> tuple[Place, ...]:
    """Every item that holds `name` (an identifier, a function or any text), without case.

    >>> places("b", "SELECT a\\nFROM t\\nWHERE t.b = 1", "sqlite")
    (Place(clause='WHERE', item='t.b = 1', line=3),)
    """
    pattern = _word(name)
    if pattern is None:
        return ()
    mark = pattern.search(code)
    line = code.count("\n", 0, mark.start()) + 1 if mark else 1
    return tuple(
        Place(clause, text, line)
        for clause, texts in clauses(code, dialect).items()
        for text in texts
        if pattern.search(text)
    )


def _word(name: str) -> re.Pattern[str] | None:
    text = name.strip().strip("\"'`[]")
    if not text:
        return None
    return re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.I)


def _operands(tree: exp.Expr) -> list[exp.Expr]:
    """The SELECTs of a set operation, left to right; the tree itself where it is none."""
    found, stack = [], [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.SetOperation):
            stack += [node.expression, node.this]
        else:
            found.append(node)
    return found


def _own_items(tree: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    for clause, arguments in ARGUMENTS.items():
        for argument in arguments if isinstance(tree, exp.Query) else ():
            for node in _listed(tree.args.get(argument)):
                yield from ((clause, item) for item in _split(node))


def _listed(value: object) -> Iterable[exp.Expr]:
    values = value if isinstance(value, list) else [value]
    return (node for node in values if isinstance(node, exp.Expr))


def _split(node: exp.Expr) -> Iterable[exp.Expr]:
    """The items of a clause's node: conditions of an AND, terms of GROUP BY and ORDER BY."""
    if isinstance(node, exp.Where | exp.Having | exp.Qualify):
        return node.this.flatten() if isinstance(node.this, exp.And) else (node.this,)
    if isinstance(node, exp.Group | exp.Order) and node.expressions:
        return node.expressions
    return (node,)


def _edit(clause: str, old: tuple[str, ...], new: tuple[str, ...]) -> ClauseEdit | None:
    removed, added = _without(old, new), _without(new, old)
    if removed or added:
        return ClauseEdit(clause, removed, added)
    if old != new and clause.removeprefix("PART 1 ") not in _UNORDERED:
        return ClauseEdit(clause, old, new)
    return None


def _without(left: Iterable[str], right: Iterable[str]) -> tuple[str, ...]:
    return tuple((Counter(left) - Counter(right)).elements())


def _word_delta(before: str, after: str) -> str:
    old, new = before.split()[:_MOST_WORDS], after.split()[:_MOST_WORDS]
    words: list[str] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            words += [f"-{_clipped(w)}" for w in old[a:b]] + [f"+{_clipped(w)}" for w in new[c:d]]
    return " ".join(words[: 2 * _MOST_ITEMS])


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST_ITEM else text[: _LONGEST_ITEM - 1] + "…"

"""Repairs with one sensible outcome, made without a model (design: Python decides what it can).

A program is read (`slips`), respelled for its dialect (`respell`), and then its problems are met
one by one with the fixes of `fixes`; a change stays only if the check finds less to complain of.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from lynx_dspy.engines.fixes import FIXES
from lynx_dspy.engines.names import frames
from lynx_dspy.engines.problems import CERTAIN, Kind, Problem
from lynx_dspy.engines.respell import respell
from lynx_dspy.engines.slips import readings
from lynx_dspy.engines.static import parsed, problems
from lynx_dspy.values import Schema

_MAX_CHANGES = 16
_MAX_TRIES = 80
_MAX_NODES = 20_000
_MAX_LENGTH = 6_000
_UNREADABLE = (10_000, 0)
_WEIGHTS = {Kind.TABLE: 100, Kind.ENGINE: 1}
"""An unknown table hides its unknown columns; the engine complains when we have nothing to say."""


@dataclass(frozen=True, slots=True)
class Mend:
    """A program after its repairs; `changes` says what was changed, a line each."""

    code: str
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _State:
    """One stage of a repair: the text, its tree, what is wrong with it, what was done so far."""

    code: str
    tree: exp.Expr | None
    problems: tuple[Problem, ...]
    changes: tuple[str, ...] = ()

    @property
    def badness(self) -> tuple[int, int]:
        """Errors, weighed by what they may hide; then doubts that are certain."""
        if self.tree is None:
            return _UNREADABLE
        errors = sum(_WEIGHTS.get(p.kind, 2) for p in self.problems if p.is_error)
        return errors, sum(p.kind in CERTAIN for p in self.problems)


def mend(code: str, schema: Schema) -> Mend:
    """`code` with all repairs that have one sensible outcome; unchanged if there are none.

    Never raises, asks no model and runs nothing. A program without errors comes back as it is.
    """
    start = best = _state(code, schema)
    if len(code) > _MAX_LENGTH:
        return Mend(code)
    for note, text, dialect in readings(code, schema.dialect, isinstance(start.tree, exp.Query)):
        if best.badness == (0, 0) or (dialect != schema.dialect and not _foreign(best)):
            break
        state = _read(text, dialect, schema, note)
        if state is not None and state.badness < best.badness:
            best = state
    return Mend(best.code, best.changes)


def _foreign(state: _State) -> bool:
    """True if another dialect may be why the program does not compile."""
    kinds = {p.kind for p in state.problems}
    return state.tree is None or bool(kinds & {Kind.FUNCTION, Kind.ENGINE, Kind.STATEMENT})


def _state(
    code: str, schema: Schema, tree: exp.Expr | None = None, changes: tuple[str, ...] = ()
) -> _State:
    tree = tree if tree is not None else parsed(code, schema.dialect)
    found = problems(tree, schema, code) if tree is not None else []
    return _State(code, tree, tuple(found), changes)


def _read(text: str, dialect: str, schema: Schema, note: str) -> _State | None:
    """The program as read from one dialect: its names mended, then spelled, then mended again.

    Names come first: what a spelling means may depend on the type of a column.
    """
    tree = parsed(text, dialect)
    if not isinstance(tree, exp.Query):
        return None
    plain = text if dialect == schema.dialect else written(tree, schema.dialect)
    state = _state(plain or text, schema, changes=(note,) if note else ())
    if state.tree is None:
        state = _spelled(replace(state, tree=tree), schema)
    return _improved(_spelled(_improved(state, schema), schema), schema)


def _spelled(state: _State, schema: Schema) -> _State:
    """The state respelled for the dialect, if that is no worse."""
    if state.tree is None or state.badness == (0, 0):
        return state
    tree, changes = respell(state.tree.copy(), schema)
    code = written(tree, schema.dialect)
    if not code:
        return state
    told = tuple(f"{c.before} -> {c.after}" for c in changes) or ("spelled for the dialect",)
    spelled = _state(code, schema, changes=(*state.changes, *told))
    return spelled if spelled.badness < state.badness else state


def written(tree: exp.Expr, dialect: str) -> str:
    """The tree as text; empty if sqlglot cannot write it."""
    try:
        return tree.sql(dialect, unsupported_level=ErrorLevel.IGNORE)
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError):
        return ""


def _improved(state: _State, schema: Schema) -> _State:
    """The fixpoint of all fixes, one accepted change at a time."""
    size = sum(1 for _ in state.tree.walk()) if state.tree else 1
    tries = min(_MAX_TRIES, _MAX_NODES // size)
    for _ in range(_MAX_CHANGES):
        for candidate in itertools.islice(_candidates(state, schema), tries):
            tries -= 1
            if candidate.badness < state.badness:
                state = candidate
                break
        else:
            break
    return state


def _candidates(state: _State, schema: Schema) -> Iterator[_State]:
    """Every fix tried on every problem, each on its own copy of the tree."""
    if state.tree is None or state.badness == (0, 0):
        return
    places = {id(node): place for place, node in enumerate(state.tree.walk())}
    ties = tautologies(state.tree)
    for problem in state.problems:
        for fix in FIXES.get(problem.kind, ()):
            tree = state.tree.copy()
            note = fix(_moved(problem, tree, places, schema), schema)
            code = written(tree, schema.dialect) if note else ""
            if note and code and tautologies(tree) <= ties:
                yield _state(code, schema, changes=(*state.changes, note))


def tautologies(tree: exp.Expr) -> int:
    """Comparisons of a column with itself: what a fix left of a join condition."""
    pairs = (node for node in tree.find_all(exp.EQ) if isinstance(node.this, exp.Column))
    return sum(node.this == node.expression for node in pairs)


def _moved(problem: Problem, tree: exp.Expr, places: dict[int, int], schema: Schema) -> Problem:
    """The problem in a copy of its tree: nodes keep their place in the walk."""
    if problem.node is None or problem.frame is None:
        return problem
    nodes = list(tree.walk())
    select = nodes[places[id(problem.frame.select)]]
    frame = next(f for f in frames(tree, schema) if f.select is select)
    return replace(problem, node=nodes[places[id(problem.node)]], frame=frame)

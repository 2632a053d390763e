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
from sqlglot.tokenizer_core import TokenType

from lynx_dspy.engines.calls import rewritten
from lynx_dspy.engines.fixes import FIXES
from lynx_dspy.engines.framing import frames
from lynx_dspy.engines.problems import CERTAIN, Kind, Problem
from lynx_dspy.engines.quoting import requoted
from lynx_dspy.engines.respell import respell
from lynx_dspy.engines.shadow import COMPILED
from lynx_dspy.engines.slips import readings, tokens_of
from lynx_dspy.engines.static import parsed, problems, script
from lynx_dspy.values import Schema

_MAX_CHANGES = 16
_MAX_TRIES = 80
_MAX_PROBLEMS = 24
_MAX_NODES = 20_000
_MAX_LENGTH = 6_000
_MAX_NESTING = 6
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
    if len(code) > _MAX_LENGTH or script(code, schema.dialect).preamble:
        return Mend(code)
    start = best = _state(code, schema)
    for note, text, dialect in readings(code, schema.dialect, isinstance(start.tree, exp.Query)):
        if best.badness == (0, 0) or (dialect != schema.dialect and not _foreign(best, schema)):
            break
        state = _read(text, dialect, schema, note)
        if state is not None and state.badness < best.badness:
            best = state
    return Mend(best.code, best.changes)


def _foreign(state: _State, schema: Schema) -> bool:
    """True if another dialect may be why the program does not compile.

    Without a compiler, whole programs are read as another dialect only if they cannot be read
    otherwise: nothing would tell a wrong reading from a right one.
    """
    if schema.dialect not in COMPILED:
        return state.tree is None
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
    if schema.dialect not in COMPILED and lost(text, dialect, plain, schema.dialect):
        return None
    plain, told = rewritten(plain, schema.dialect)
    state = _state(plain or text, schema, changes=((note, *told) if note else told))
    if state.tree is None:
        state = _spelled(replace(state, tree=tree), schema)
    state = _requoted(state, schema)
    return _improved(_spelled(_improved(state, schema), schema), schema)


def _requoted(state: _State, schema: Schema) -> _State:
    """The state with all names quoted as they are stored: where case decides, often all lack it.

    An inner name that gets its quotes changes what an outer one must be, hence the rounds.
    """
    first = state
    for _ in range(_MAX_NESTING):
        wrong = [p for p in state.problems if p.kind is Kind.SPELLED]
        if not wrong or state.tree is None:
            break
        for item in wrong:
            requoted(item, schema)
        notes = [f"name {p.finding.name} -> {p.finding.candidates[0]}" for p in wrong]
        changes = tuple(dict.fromkeys((*state.changes, *notes)))
        state = _state(written(state.tree, schema.dialect), schema, changes=changes)
    if state is first or state.badness < first.badness:
        return state
    return _state(first.code, schema, changes=first.changes)


def _spelled(state: _State, schema: Schema) -> _State:
    """The state respelled for the dialect, if that is no worse."""
    if state.tree is None or state.badness == (0, 0):
        return state
    kinds = {p.kind for p in state.problems}
    if schema.dialect not in COMPILED and (Kind.CONSTRUCT not in kinds or Kind.FUNCTION in kinds):
        return state
    tree, changes = respell(state.tree.copy(), schema)
    code = written(tree, schema.dialect)
    if not code:
        return state
    told = tuple(f"{c.before} -> {c.after}" for c in changes) or ("spelled for the dialect",)
    spelled = _state(code, schema, changes=(*state.changes, *told))
    return spelled if spelled.badness < state.badness else state


_KEPT = frozenset({TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING})


def lost(text: str, dialect: str, new: str, target: str) -> bool:
    """True if a name, number or text of a program is not in its translation."""
    words = {token.text.casefold() for token in tokens_of(new, target)}
    before = tokens_of(text, dialect)
    for token, after in itertools.pairwise([*before, *before[-1:]]):
        called = after.token_type is TokenType.L_PAREN
        if token.token_type in _KEPT and not called and token.text.casefold() not in words:
            return True
    return False


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
    for problem in state.problems[:_MAX_PROBLEMS]:
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

"""What to do when edits stop helping: a named strategy that was not tried yet (paper, III-B).

Python chooses it from what the attempts have in common and from the schema's keys; the model is
then asked to carry it out, not to reword the same program.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlglot import exp

from lynx_dspy.engines.names import nearest
from lynx_dspy.grounding.keys import joins, neighbours
from lynx_dspy.modules.clauses import query
from lynx_dspy.modules.delta import Failing, failing
from lynx_dspy.values import Attempt, FailureClass, ForeignKey, Schema, Status

_LONGEST_PATH = 4
_MOST_COLUMNS = 8


@dataclass(frozen=True, slots=True)
class Strategy:
    """`order` is the sentence that the model is told."""

    name: str
    order: str


@dataclass(frozen=True, slots=True)
class _Impasse:
    """What is known where the loop stands still."""

    attempts: Sequence[Attempt]
    schema: Schema
    failing: Failing
    tree: exp.Query | None

    def tables(self) -> list[str]:
        """Schema tables that the latest program reads, in the order of its text."""
        return _read_by(self.tree, self.schema)

    def tried(self) -> set[str]:
        """Schema tables that any attempt has read."""
        trees = (query(a.code, self.schema.dialect) for a in self.attempts)
        return {name for tree in trees for name in _read_by(tree, self.schema)}


def next_strategy(
    attempts: Sequence[Attempt], schema: Schema, tried: Sequence[str] = ()
) -> Strategy:
    """The first strategy for this class of failure that applies and is not among `tried`."""
    if told := TOLD.get(schema.dialect):
        return next((s for s in told if s.name not in tried), told[-1])
    current = attempts[-1]
    tree = query(current.code, schema.dialect)
    impasse = _Impasse(attempts, schema, failing(current, schema.dialect), tree)
    for name in _order(current):
        strategy = None if name in tried else _STRATEGIES[name](impasse)
        if strategy is not None:
            return strategy
    return _START_OVER


def _order(current: Attempt) -> tuple[str, ...]:
    if current.outcome.status is Status.EMPTY:
        return ("drop-clause", "other-join-path", "other-table", "decompose")
    return _ORDER[current.failure_class or FailureClass.SEMANTIC]


def _other_table(impasse: _Impasse) -> Strategy | None:
    """A table that no attempt read and that holds the missing name, or one that is joined to it."""
    tried, schema = impasse.tried(), impasse.schema
    wanted = impasse.failing.name.rpartition(".")[2]
    fresh = [t for t in schema.tables if t.name not in tried]
    if wanted:
        holding = [t for t in fresh if nearest(wanted, (c.name for c in t.columns), 0.75)]
        holding += [t for t in fresh if t not in holding and nearest(wanted, [t.name], 0.75)]
    else:
        near = {other for name in tried for other in neighbours(schema).get(name, ())}
        holding = [t for t in fresh if t.name in near]
    if not holding:
        return None
    table = holding[0]
    names = ", ".join(c.name for c in table.columns[:_MOST_COLUMNS])
    return Strategy("other-table", f"Read table {table.name} ({names}), which was not tried yet.")


def _other_join_path(impasse: _Impasse) -> Strategy | None:
    """Another way along the keys between two tables that the program joins."""
    names = impasse.tables()
    for left, right in pairwise(names):
        path = _detour(left, right, impasse.schema, set(names) - {left, right})
        if path:
            steps = " AND ".join(_condition(key) for key in path)
            return Strategy("other-join-path", f"Join {left} and {right} otherwise: {steps}.")
    return None


def _decompose(impasse: _Impasse) -> Strategy | None:
    """Steps in a WITH, if no attempt wrote any and there is something to take apart."""
    trees = [query(a.code, impasse.schema.dialect) for a in impasse.attempts]
    if any(tree.find(exp.CTE) for tree in trees if tree is not None):
        return None
    tree = impasse.tree
    if tree is not None and not tree.find(exp.Join, exp.Subquery, exp.AggFunc):
        return None
    order = "Write it in steps: one WITH query that selects and joins the rows, a last SELECT "
    return Strategy("decompose", order + "that groups, orders and limits them.")


def _drop_clause(impasse: _Impasse) -> Strategy | None:
    """The failing part left out, or the last condition of a program without rows."""
    part = impasse.failing
    clause, item = part.clause, part.item
    if not item or clause in ("SELECT", "FROM"):
        clause, item = _last_condition(impasse.tree, impasse.schema.dialect)
    if not item:
        return None
    return Strategy("drop-clause", f"Leave out this part of {clause}: {item}")


_START_OVER = Strategy("start-over", "Write the query anew from the question, unlike the programs.")

TOLD: dict[str, tuple[Strategy, ...]] = {
    "pandas": (
        Strategy(
            "decompose", "Write it in steps: give the rows, the groups and the answer a name."
        ),
        Strategy("as-query", 'Write it as one DuckDB query: result = sql("SELECT ...").'),
        Strategy("start-over", "Write the program anew from the question, unlike the programs."),
    )
}
"""Strategies for programs that are no SQL, in the order in which they are told."""

_STRATEGIES: dict[str, Callable[[_Impasse], Strategy | None]] = {
    "other-table": _other_table,
    "other-join-path": _other_join_path,
    "decompose": _decompose,
    "drop-clause": _drop_clause,
}

_ORDER = {
    FailureClass.SYNTAX: ("decompose", "drop-clause", "other-table", "other-join-path"),
    FailureClass.SCHEMA: ("other-table", "other-join-path", "drop-clause", "decompose"),
    FailureClass.SEMANTIC: ("other-join-path", "decompose", "other-table", "drop-clause"),
}
"""What is tried first for each class of failure."""


def _read_by(tree: exp.Expr | None, schema: Schema) -> list[str]:
    nodes: Iterator[exp.Table] = tree.find_all(exp.Table, bfs=False) if tree else iter(())
    tables = (schema.table(node.name) for node in nodes)
    return list(dict.fromkeys(table.name for table in tables if table is not None))


def _last_condition(tree: exp.Expr | None, dialect: str) -> tuple[str, str]:
    for clause, argument in (("HAVING", "having"), ("WHERE", "where")):
        node = tree.args.get(argument) if tree is not None else None
        if node is not None:
            last = list(node.this.flatten())[-1] if isinstance(node.this, exp.And) else node.this
            return clause, last.sql(dialect)
    return "", ""


def _detour(left: str, right: str, schema: Schema, shut: set[str]) -> tuple[ForeignKey, ...]:
    """The shortest path of keys from one table to another that is not one direct key.

    A second key between the same two tables counts as another way; `shut` tables are not passed.
    """
    keys = [_named_as(key, schema) for key in joins(schema)]
    direct = [key for key in keys if {key.table, key.ref_table} == {left, right}]
    if len(direct) > 1:
        return (direct[-1],)
    queue: deque[tuple[str, tuple[ForeignKey, ...]]] = deque([(left, ())])
    seen = {left, *shut}
    while queue:
        here, path = queue.popleft()
        for key in keys:
            if here not in (key.table, key.ref_table) or key in direct:
                continue
            there = key.ref_table if key.table == here else key.table
            if there == right:
                return (*path, key)
            if there not in seen and len(path) + 2 < _LONGEST_PATH:
                seen.add(there)
                queue.append((there, (*path, key)))
    return ()


def _named_as(key: ForeignKey, schema: Schema) -> ForeignKey:
    """The key with the tables' own spelling; keys may be declared in another case."""
    table, other = schema.table(key.table), schema.table(key.ref_table)
    return replace(key, table=table.name, ref_table=other.name) if table and other else key


def _condition(key: ForeignKey) -> str:
    pairs = zip(key.columns, key.ref_columns, strict=True)
    return " AND ".join(f"{key.table}.{a} = {key.ref_table}.{b}" for a, b in pairs)

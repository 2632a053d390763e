"""Demos of single stages: short, unlike each other, and spread over what may be asked."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from lynx_dspy.grounding.identifiers import words
from lynx_dspy.grounding.render import render
from lynx_dspy.metrics.linking import names_used, parsed
from lynx_dspy.modules.nearest import Fields, Shot
from lynx_dspy.optimize.recipes import View
from lynx_dspy.tokens import estimate
from lynx_dspy.values import Schema

CARRIED: dict[str, tuple[str, ...]] = {
    "generator.unknown_terms": ("evidence", "question"),
    "generator.align": ("concepts", "question"),
    "generator.distill": ("knowledge", "question"),
    "generator.intent": ("definitions", "question"),
    "generator.ground": ("intent",),
    "generator.formulate": ("intent", "question"),
    "critic.reflect": ("history",),
    "critic.diagnose": ("previous", "current", "delta"),
    "reviser.repair": ("question", "program", "failure", "suggestion"),
    "verifier.explain": ("program",),
    "verifier.compare": ("explanation", "intent", "question"),
}
"""Inputs that a demo of a stage shows as they were. All others are long, and are left out."""

SCHEMA_INPUT: dict[str, str] = {
    "generator.ground": "structure",
    "generator.formulate": "grounding",
    "verifier.explain": "structure",
}
"""Inputs that hold a schema: a demo shows those tables and columns that its program uses."""

_SAMPLES = 2
"""Values shown of a column: enough to see its form."""

_SCHEMA_TOKENS = 2_000
"""Never reached by the few columns that one program uses."""

_CLAUSES: dict[str, tuple[type[exp.Expr], ...]] = {
    "join": (exp.Join,),
    "filter": (exp.Where,),
    "group": (exp.Group,),
    "having": (exp.Having,),
    "order": (exp.Order,),
    "limit": (exp.Limit,),
    "distinct": (exp.Distinct,),
    "subquery": (exp.Subquery, exp.Exists),
    "with": (exp.With,),
    "union": (exp.SetOperation,),
    "window": (exp.Window,),
    "case": (exp.Case, exp.If),
    "aggregate": (exp.AggFunc,),
    "arithmetic": (exp.Div, exp.Mul, exp.Sub),
}

_PHRASES = {
    "join": "joins them",
    "filter": "filters the rows",
    "group": "groups them",
    "having": "keeps some groups",
    "aggregate": "aggregates",
    "order": "sorts",
    "limit": "keeps the first rows",
}


@dataclass(frozen=True, slots=True)
class Demo:
    """One call of a stage that is worth showing.

    `inputs` and `outputs` are those that it shows; `schema` is the cut schema, shown in the view
    `used`. `label` says whose output it is (harvested or gold), `kind` what it is an example of
    (an error class for a repair), `traits` what its program does.
    """

    stage: str
    inputs: Fields
    outputs: Fields
    question: str
    database: str
    label: str
    kind: str = ""
    schema: str = ""
    shape: str = ""
    traits: frozenset[str] = frozenset()

    def shown(self, view: View) -> Shot:
        """As it stands in a prompt."""
        name = SCHEMA_INPUT.get(self.stage, "")
        schema = {name: self.schema} if view == "used" and self.schema else {}
        return Shot({**schema, **self.inputs, **self.outputs}, self.question, self.database)


def carried(stage: str, inputs: Mapping[str, Any], most: int) -> Fields:
    """The inputs that a demo shows: what is neither empty nor longer than `most` tokens."""
    found = {name: inputs[name] for name in CARRIED[stage] if inputs.get(name)}
    return {name: value for name, value in found.items() if estimate(str(value)) <= most}


def cut(schema: Schema, code: str, style: str) -> str:
    """The text of the tables and columns that `code` uses; empty if it does not parse."""
    tree = parsed(code, schema)
    if tree is None:
        return ""
    names = names_used(tree, schema)
    tables = tuple(
        replace(
            table,
            columns=tuple(
                replace(column, samples=column.samples[:_SAMPLES])
                for column in table.columns
                if f"{table.name}.{column.name}".casefold() in names.columns
            ),
        )
        for table in schema.tables
        if table.name.casefold() in names.tables
    )
    kept = {table.name: {c.name for c in table.columns} for table in tables if table.columns}
    keys = tuple(
        key
        for key in schema.foreign_keys
        if set(key.columns) <= kept.get(key.table, set())
        and set(key.ref_columns) <= kept.get(key.ref_table, set())
    )
    small = replace(schema, tables=tuple(t for t in tables if t.columns), foreign_keys=keys)
    return render(small, _SCHEMA_TOKENS, style=style).text if small.tables else ""


def shape_of(code: str, dialect: str) -> str:
    """The query with names and values taken out: equal for queries of one pattern."""
    tree = _tree(code, dialect)
    if tree is None:
        return ""
    plain = tree.copy()
    for node in list(plain.find_all(exp.Identifier, exp.Literal)):
        if isinstance(node, exp.Literal):
            node.replace(exp.Literal.string("?"))
        else:
            node.replace(exp.to_identifier("x"))
    return str(plain.sql(dialect=dialect))


def traits_of(code: str, dialect: str) -> frozenset[str]:
    """The clauses of a query, and whether it joins more than two tables.

    >>> sorted(traits_of("SELECT COUNT(*) FROM t WHERE a > 1 LIMIT 3", "sqlite"))
    ['aggregate', 'filter', 'limit']
    """
    tree = _tree(code, dialect)
    if tree is None:
        return frozenset()
    found = {name for name, kinds in _CLAUSES.items() if tree.find(*kinds) is not None}
    if len(list(tree.find_all(exp.Join))) > 1:
        found.add("joins")
    return frozenset(found)


def analysis_of(code: str, dialect: str) -> str:
    """One sentence on what a query does, for golds, which nobody has explained.

    >>> analysis_of("SELECT COUNT(*) FROM a JOIN b ON a.x = b.x", "sqlite")
    'It reads a and b, joins them, aggregates.'
    """
    tree = _tree(code, dialect)
    tables = [] if tree is None else sorted({t.name for t in tree.find_all(exp.Table)})
    traits = traits_of(code, dialect)
    does = [phrase for name, phrase in _PHRASES.items() if name in traits]
    return ", ".join([f"It reads {' and '.join(tables) or 'no table'}", *does]) + "."


def unlike(demos: Iterable[Demo], likeness: float) -> list[Demo]:
    """The demos without those that nearly repeat an earlier one of their stage.

    A demo repeats another if it belongs to the same database and has a program of the same shape
    and a question with `likeness` of its words in common.
    """
    kept: list[Demo] = []
    homes: defaultdict[tuple[str, str, str], list[frozenset[str]]] = defaultdict(list)
    for demo in demos:
        bag = frozenset(words(demo.question))
        before = homes[demo.stage, demo.database, demo.shape]
        if all(_alike(bag, other) < likeness for other in before):
            before.append(bag)
            kept.append(demo)
    return kept


def varied(
    demos: Sequence[Demo], size: int, tokens: int, view: View, chance: random.Random, spread: int
) -> list[Demo]:
    """At most `size` demos of one stage within `tokens`, drawn at random and unlike each other.

    Each time the best of `spread` drawn demos is taken: the one whose database, kind and clauses
    are least present, and whose program has a shape of its own.
    """
    left = list(demos)
    chance.shuffle(left)
    chosen: list[Demo] = []
    while left and len(chosen) < size:
        drawn = left[:spread]
        best = max(drawn, key=lambda demo: _news(demo, chosen))
        left.remove(best)
        cost = best.shown(view).tokens
        if cost <= tokens:
            tokens -= cost
            chosen.append(best)
    return chosen


def _news(demo: Demo, chosen: Collection[Demo]) -> tuple[bool, int]:
    """What a demo adds to those that are chosen."""
    seen = frozenset[str]().union(*(_features(other) for other in chosen))
    own_shape = not demo.shape or all(demo.shape != other.shape for other in chosen)
    return own_shape, len(_features(demo) - seen)


def _features(demo: Demo) -> frozenset[str]:
    return demo.traits | {f"database {demo.database}", f"kind {demo.kind}", f"label {demo.label}"}


def _alike(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / max(1, len(first | second))


def _tree(code: str, dialect: str) -> exp.Expr | None:
    return parsed(code, Schema(dialect, ()))

"""Gold programs broken in one place, as models break them; each mutation says what it did."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace

from sqlglot import exp

from bench.golds import Gold
from lynx_dspy.engines.folding import QUALIFIED, stored_as
from lynx_dspy.engines.framing import frames
from lynx_dspy.engines.names import Frame, cte_of, home
from lynx_dspy.engines.static import script
from lynx_dspy.values import Column, Schema, Table

Mutation = Callable[[exp.Expr, Schema, random.Random], bool]
"""Breaks the tree in place; False if it holds nothing to break in this way."""


def mutants(gold: Gold, seed: int = 0) -> Iterator[tuple[str, str]]:
    """(kind, program): the gold broken in each way that applies to it."""
    tree = script(gold.code, gold.schema.dialect).query
    if tree is None or script(gold.code, gold.schema.dialect).preamble:
        return
    for kind, mutation in MUTATIONS.items():
        broken = tree.copy()
        if mutation(broken, gold.schema, random.Random(f"{seed} {kind} {gold.id}")):
            yield kind, broken.sql(gold.schema.dialect, comments=False)
    yield "fence and label left in", f"Here is the query:\n```sql\n{gold.code}\n```\nIt answers it."


def harvested(gold: Gold) -> Schema | None:
    """A schema of just what a gold uses, where no metadata is at hand; None if that is unclear."""
    dialect = gold.schema.dialect
    tree = script(gold.code, dialect).query
    found: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    for frame in frames(tree, Schema(dialect, ())) if tree is not None else ():
        for source in frame.sources:
            if _is_base(source.node):
                found[_parts(source.node, dialect)] |= {}
        if not _take(frame, found, dialect):
            return None
    tables = tuple(
        Table(p[-1], tuple(Column(c, "") for c in names), "", ".".join(p[:-1]), path=p)
        for p, names in found.items()
    )
    return Schema(dialect, tables) if tables and all(t.columns for t in tables) else None


def _take(frame: Frame, found: dict[tuple[str, ...], dict[str, None]], dialect: str) -> bool:
    open_sources = [s for s in frame.sources if s.columns is None]
    for column in frame.select.find_all(exp.Column):
        if home(column) is not frame.select or isinstance(column.this, exp.Star):
            continue
        first = column.parts[0].name
        source = frame.source(first) if column.table else None
        name = column.parts[1 if source else 0]
        if source is None and (frame.holders(first) or first.casefold() in frame.outputs):
            continue
        if source is None and (len(open_sources) != 1 or frame.parent is not None):
            return False
        holder = source or open_sources[0]
        if _is_base(holder.node):
            found[_parts(holder.node, dialect)][stored_as(name, dialect)] = None
    return True


def _is_base(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        return False
    return bool(node.args.get("db")) or cte_of(node) is None


def _parts(node: exp.Expr, dialect: str) -> tuple[str, ...]:
    parts = node.parts if isinstance(node, exp.Table) else []
    return tuple(stored_as(part, dialect) for part in parts)


def _columns(tree: exp.Expr, schema: Schema) -> list[tuple[exp.Column, Frame]]:
    """Columns of base tables with their frames."""
    by_select = {id(f.select): f for f in frames(tree, schema)}
    return [
        (column, by_select[id(select)])
        for column in tree.find_all(exp.Column)
        if (select := home(column)) is not None
        and isinstance(column.this, exp.Identifier)
        and any(s.table and s.table.column(column.name) for s in by_select[id(select)].sources)
        and column.name.casefold() not in by_select[id(select)].outputs
    ]


def _shorter(name: str, rng: random.Random) -> str:
    place = rng.randrange(1, len(name) - 1)
    return name[:place] + name[place + 1 :]


def _column_letter(tree: exp.Expr, schema: Schema, rng: random.Random) -> bool:
    known = {c.name.casefold() for t in schema.tables for c in t.columns}
    options = [c for c, f in _columns(tree, schema) if len(c.name) > 4 and _closed(f)]
    for column in rng.sample(options, len(options)):
        name = _shorter(column.name, rng)
        if name.casefold() not in known and name != column.name:
            column.this.set("this", name)
            return True
    return False


def _closed(frame: Frame) -> bool:
    return all(s.columns is not None for f in frame.lineage for s in f.sources)


def _table_letter(tree: exp.Expr, schema: Schema, rng: random.Random) -> bool:
    options = [
        s.node
        for f in frames(tree, schema)
        for s in f.sources
        if s.table and len(s.table.name) > 4 and not s.node.name.endswith("*")
    ]
    if not options:
        return False
    node = rng.choice(options)
    if not node.alias:
        node.set("alias", exp.TableAlias(this=node.this.copy()))
    node.this.set("this", _shorter(node.name, rng))
    return not any(t.parts[-1].casefold() == node.name.casefold() for t in schema.tables)


def _wrong_alias(tree: exp.Expr, schema: Schema, rng: random.Random) -> bool:
    options = [
        (c, s)
        for c, f in _columns(tree, schema)
        for s in f.sources
        if c.table and len(c.parts) == 2 and _closed(f) and s.alias and not s.has(c.name)
    ]
    if options:
        column, source = rng.choice(options)
        column.set("table", exp.to_identifier(source.alias))
    return bool(options)


def _alias_undefined(tree: exp.Expr, schema: Schema, rng: random.Random) -> bool:
    options = [c for c, f in _columns(tree, schema) if c.table and len(c.parts) == 2 and _closed(f)]
    if options:
        rng.choice(options).set("table", exp.to_identifier("t99"))
    return bool(options)


def _qualifier_dropped(tree: exp.Expr, schema: Schema, rng: random.Random) -> bool:
    options = [
        c
        for c, f in _columns(tree, schema)
        if c.table and len(f.holders(c.name)) > 1 and c.name.casefold() not in f.shared
        if not c.find_ancestor(exp.Order, exp.Group, exp.Unnest)
    ]
    if options:
        rng.choice(options).set("table", None)
    return bool(options)


def _quotes_dropped(tree: exp.Expr, schema: Schema, rng: random.Random) -> bool:
    options = [
        c.this
        for c, f in _columns(tree, schema)
        if c.this.args.get("quoted")
        and stored_as(exp.to_identifier(c.name), schema.dialect) != c.name
        and _closed(f)
        and c.name.isidentifier()
    ]
    if options and schema.dialect == "snowflake":
        rng.choice(options).set("quoted", False)
    return bool(options) and schema.dialect == "snowflake"


def _namespace_dropped(tree: exp.Expr, schema: Schema, rng: random.Random) -> bool:
    options = [
        s.node for f in frames(tree, schema) for s in f.sources if s.table and s.node.args.get("db")
    ]
    if not options or schema.dialect not in QUALIFIED:
        return False
    node = rng.choice(options)
    node.set("db", None)
    node.set("catalog", None)
    return True


def _group_key_dropped(tree: exp.Expr, schema: Schema, rng: random.Random) -> bool:
    for frame in frames(tree, schema):
        group, outputs = frame.select.args.get("group"), frame.select.expressions
        keys = group.expressions if group else []
        plain = [e for e in outputs if isinstance(e, exp.Column)]
        named = [k for k in keys if isinstance(k, exp.Column) and any(k == p for p in plain)]
        if named and len(keys) > 1 and _closed(frame) and not isinstance(tree, exp.SetOperation):
            rng.choice(named).pop()
            return schema.dialect not in ("sqlite", "duckdb", "mysql")
    return False


MUTATIONS: dict[str, Mutation] = {
    "letter of a column dropped": _column_letter,
    "letter of a table dropped": _table_letter,
    "column under another alias": _wrong_alias,
    "alias that is not defined": _alias_undefined,
    "qualifier dropped": _qualifier_dropped,
    "quotes dropped": _quotes_dropped,
    "namespace dropped": _namespace_dropped,
    "group key dropped": _group_key_dropped,
}


def with_schema(gold: Gold) -> Gold | None:
    """The gold with a schema that can tell names apart; None if there is none."""
    if gold.schema.tables:
        return gold
    schema = harvested(gold)
    return (
        replace(gold, schema=schema, group=gold.group.split(",")[0] + ", own names")
        if schema
        else None
    )

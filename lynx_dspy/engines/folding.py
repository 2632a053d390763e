"""Case rules of names: what an identifier is stored as, and which table a qualified name means.

Facts: Snowflake and Oracle store a bare name in upper case, PostgreSQL and Redshift in lower case;
a quoted name is stored as it is written (docs.snowflake.com/sql-reference/identifiers-syntax,
postgresql.org/docs/current/sql-syntax-lexical). The other dialects compare columns without case.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from sqlglot import exp

from lynx_dspy.engines.identity import by_identity
from lynx_dspy.grounding.identifiers import shown
from lynx_dspy.values import Schema, Table

_FOLD: dict[str, Callable[[str], str]] = {
    "snowflake": str.upper,
    "oracle": str.upper,
    "postgres": str.lower,
    "redshift": str.lower,
}
QUALIFIED = frozenset({"bigquery", "snowflake"})
"""Dialects in which a program must name tables with their namespace."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")


def stored_as(name: exp.Expr, dialect: str) -> str:
    """How the engine stores or looks up an identifier.

    >>> stored_as(exp.to_identifier("Total"), "snowflake")
    'TOTAL'
    """
    fold = _FOLD.get(dialect)
    return name.name if fold is None or name.args.get("quoted") else fold(name.name)


def identifier(name: str, dialect: str) -> exp.Identifier:
    """The identifier that means exactly the stored `name`, quoted only where it must be."""
    fold = _FOLD.get(dialect)
    bare = _PLAIN.fullmatch(name) is not None and (fold is None or fold(name) == name)
    quoted = not bare or shown(name, dialect) != name
    return exp.Identifier(this=name, quoted=quoted)


def full_name(table: Table, dialect: str) -> str:
    """The name that a program should give the table."""
    parts = table.parts if dialect in QUALIFIED else table.parts[-1:]
    if dialect not in QUALIFIED and table.path:
        parts = table.path
    if dialect == "bigquery" and len(parts) > 1:
        return f"`{'.'.join(parts)}`"
    return ".".join(identifier(part, dialect).sql(dialect) for part in parts)


def is_exact(schema: Schema) -> bool:
    """True if case matters in the dialect and the schema's names surely have their stored case.

    A Snowflake schema wholly in lower case, as people write one by hand, says nothing on case.
    """
    return schema.dialect in _FOLD and _Index.of(schema).exact


@dataclass(frozen=True, eq=False)
class _Index:
    """Tables of one schema by their last name part, folded."""

    tables: dict[str, tuple[Table, ...]]
    groups: tuple[Table, ...]
    exact: bool

    @staticmethod
    @by_identity(16)
    def of(schema: Schema) -> _Index:
        found: dict[str, list[Table]] = {}
        for table in schema.tables:
            found.setdefault(table.parts[-1].casefold(), []).append(table)
            if table.name.casefold() != table.parts[-1].casefold():
                found.setdefault(table.name.casefold(), []).append(table)
        fold = _FOLD.get(schema.dialect, str.casefold)
        names = (n for t in schema.tables for n in (*t.parts, *(c.name for c in t.columns)))
        exact = any(n == fold(n) and n != n.swapcase() for n in names)
        groups = tuple(t for t in schema.tables if "*" in t.parts[-1])
        return _Index({k: tuple(v) for k, v in found.items()}, groups, exact)


def matches(schema: Schema, node: exp.Table) -> tuple[Table, ...]:
    """The tables that a name may mean, without regard to case: those whose full name ends in it.

    A wildcard means its members; a member of a table that stands for a group means that group.
    """
    wanted = tuple(part.name.casefold() for part in node.parts)
    index = _Index.of(schema)
    if wanted[-1].endswith("*"):
        stem = wanted[-1][:-1]
        named = tuple(
            t for name, tables in index.tables.items() if name.startswith(stem) for t in tables
        )
    else:
        named = index.tables.get(wanted[-1], ()) or tuple(
            t for t in index.groups if fnmatchcase(wanted[-1], t.parts[-1].casefold())
        )
    return tuple({id(t): t for t in named if _fits(t, wanted[:-1])}.values())


def _fits(table: Table, spaces: tuple[str, ...]) -> bool:
    """True if the qualifiers of a name are the end of the table's own, as far as both go."""
    own = tuple(part.casefold() for part in table.parts[:-1])
    length = min(len(own), len(spaces))
    return not length or own[-length:] == spaces[-length:]


def named_alike(schema: Schema, node: exp.Table) -> tuple[Table, ...]:
    """The tables of this last name in any namespace."""
    return matches(schema, exp.Table(this=node.this.copy()))

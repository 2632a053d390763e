"""Any other database that SQLAlchemy reaches: what its own inspector and driver can do.

There is no limit on the server and no cancel here: the process that runs a program is ended, with
its connection. Nothing is committed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine, inspect
from sqlalchemy.engine import Inspector
from sqlalchemy.engine.reflection import ObjectKind
from sqlalchemy.exc import SQLAlchemyError

from lynx_dspy.engines.server_address import Address
from lynx_dspy.engines.server_schema import Catalogue, Place, Relation, schema
from lynx_dspy.engines.vendors import Query, Vendor
from lynx_dspy.values import Column, Limits, Schema

_UNKNOWN_SIZE = 2**62
_Found = Mapping[tuple[str | None, str], Any]


def _begin(limits: Limits) -> tuple[str, ...]:
    return ()


def _message(error: BaseException) -> str:
    return str(getattr(error, "orig", None) or error)


def _introspect(engine: Engine, query: Query, name: str) -> Schema:
    """Tables, views, comments and keys of the default schema, each kind asked for at once."""
    seen = inspect(engine)
    home = seen.default_schema_name or ""
    columns: _Found = seen.get_multi_columns(kind=ObjectKind.ANY)
    views = set(seen.get_view_names())
    comments = _comments(seen)
    relations = [
        Relation(_place(key, home), comments.get(key[1], ""), key[1] in views, bytes=_UNKNOWN_SIZE)
        for key in columns
    ]
    primary: _Found = seen.get_multi_pk_constraint()
    foreign: _Found = seen.get_multi_foreign_keys()
    read = Catalogue(
        Address(engine.url).dialect,
        name,
        home,
        relations,
        [(_place(key, home), _column(c)) for key, found in columns.items() for c in found],
        [
            (_place(key, home), column)
            for key, bond in primary.items()
            for column in (bond or {}).get("constrained_columns", ())
        ],
        [
            (f"{key[1]} {i}", _place(key, home), own, (b["referred_schema"] or home, b[_TO]), other)
            for key, bonds in foreign.items()
            for i, b in enumerate(bonds)
            for own, other in zip(b["constrained_columns"], b["referred_columns"], strict=True)
        ],
    )
    return schema(read, query, engine.url.username or "")


_TO = "referred_table"


def _place(key: tuple[str | None, str], home: str) -> Place:
    return (key[0] or home, key[1])


def _column(found: Mapping[str, Any]) -> Column:
    kind = str(found["type"])
    return Column(found["name"], kind, found.get("comment") or "", bool(found["nullable"]))


def _comments(seen: Inspector) -> dict[str, str]:
    try:
        found: _Found = seen.get_multi_table_comment(kind=ObjectKind.ANY)
    except (NotImplementedError, SQLAlchemyError):
        return {}
    return {key[1]: (said or {}).get("text") or "" for key, said in found.items()}


VENDOR = Vendor(
    name="other", begin=_begin, message=_message, introspect=_introspect, autocommit=False
)

"""A schema that a person writes in YAML; docs/how-to/schemas.md shows the format.

    dialect: postgres
    tables:
      orders:
        description: one row an order
        namespace: sales
        primary_key: id
        columns:
          id: integer
          customer_id: {type: integer, references: customers.id, description: who paid}

Every complaint names the file, the line and the key.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.sources.ddl import known_dialect
from lynx_dspy.grounding.sources.naming import distinct_names
from lynx_dspy.grounding.sources.reading import Reading, line, samples
from lynx_dspy.values import Column, ForeignKey, Schema, Table

_DIALECT = "sqlite"
_FILE = ("name", "dialect", "tables")
_TABLE = ("name", "description", "namespace", "primary_key", "rows", "view", "columns")
_COLUMN = ("name", "type", "description", "nullable", "values", "references")
_MOST_VALUES = 12

Entries = list[tuple[str, ScalarNode, Node]]


def parse_yaml(text: str, source: str) -> Node:
    """The nodes of a YAML document, with their lines. Raises `BadInput` that names the line."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise BadInput(f"{source}{where} is not YAML: {line(error.problem or '')}.") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise BadInput(f"{source} is not YAML: {line(str(error))[:120]}.") from None
    if node is None:
        raise BadInput(f"{source} is empty. Write tables: with the tables of the database.")
    return node


def plain(node: Node) -> Any:
    """The value of a node as YAML's safe types. Raises `BadInput` where it has none."""
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_document(node)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadInput(f"Line {node.start_mark.line + 1}: {line(str(error))[:120]}.") from None
    finally:
        loader.dispose()


def has_keys(node: Node, names: Iterable[str]) -> bool:
    """True if the document is a mapping with one of these keys at its top."""
    known = set(names)
    return isinstance(node, MappingNode) and any(key.value in known for key, _ in node.value)


def read_yaml(node: Node, source: str, dialect: str = "", name: str = "") -> Reading:
    """The schema that a document describes. Raises `BadInput` that names line and key."""
    reader = _Reader(source)
    top = dict((k, v) for k, _, v in reader.entries(node, "the file", _FILE))
    if "tables" not in top:
        reader.fail(node, "it has no key 'tables'")
    dialect = dialect or (reader.text(top["dialect"], "dialect") if "dialect" in top else "")
    tables = [reader.table(key, value) for key, value in reader.named(top["tables"], "tables")]
    if not tables:
        reader.fail(top["tables"], "'tables' has no table")
    named = reader.text(top["name"], "name") if "name" in top else name
    held = distinct_names(tables)
    keys = tuple(reader.foreign_keys(tables, held))
    return Reading(
        Schema(known_dialect(dialect or _DIALECT), held, keys, named), tuple(reader.notes)
    )


@dataclass(frozen=True, slots=True)
class _Reference:
    node: Node
    table: int
    column: str
    target: str


@dataclass(slots=True)
class _Reader:
    source: str
    references: list[_Reference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _tables: int = 0

    def fail(self, node: Node, what: str) -> NoReturn:
        raise BadInput(f"{self.source}, line {node.start_mark.line + 1}: {what}.")

    def entries(self, node: Node, owner: str, known: Iterable[str] = ()) -> Entries:
        """The keys and values of a mapping, each key once and, if `known` is given, known."""
        if not isinstance(node, MappingNode):
            self.fail(node, f"{owner} must be a mapping of keys, not {_kind(node)}")
        seen: dict[str, int] = {}
        found: Entries = []
        known = tuple(known)
        for key, value in node.value:
            name = self.text(key, f"a key of {owner}")
            if name in seen:
                self.fail(key, f"{owner} has the key {name!r} twice, first in line {seen[name]}")
            if known and name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else "."
                self.fail(key, f"{owner} has no key {name!r}{hint} Known: {', '.join(known)}")
            seen[name] = key.start_mark.line + 1
            found.append((name, key, value))
        return found

    def named(self, node: Node, owner: str) -> Iterator[tuple[str, Node]]:
        """Names with what they stand for: a mapping, or a list whose items have a `name`."""
        if isinstance(node, SequenceNode):
            for item in node.value:
                if isinstance(item, ScalarNode):
                    yield self.text(item, f"an item of {owner}"), _EMPTY
                    continue
                own = {k: v for k, _, v in self.entries(item, f"an item of {owner}")}
                if "name" not in own:
                    self.fail(item, f"an item of {owner} has no key 'name'")
                yield self.text(own["name"], "name"), item
            return
        yield from ((name, value) for name, _, value in self.entries(node, owner))

    def text(self, node: Node, key: str) -> str:
        if not isinstance(node, ScalarNode):
            self.fail(node, f"{key!r} must be text, not {_kind(node)}")
        return "" if node.tag.endswith(":null") else str(node.value).strip()

    def texts(self, node: Node, key: str) -> tuple[str, ...]:
        """A list of texts, or one text."""
        if isinstance(node, SequenceNode):
            return tuple(self.text(item, key) for item in node.value)
        return (self.text(node, key),)

    def flag(self, node: Node, key: str) -> bool:
        if not node.tag.endswith(":bool"):
            self.fail(node, f"{key!r} must be true or false")
        return bool(plain(node))

    def count(self, node: Node, key: str) -> int:
        value = plain(node) if node.tag.endswith(":int") else -1
        if not isinstance(value, int) or value < 0:
            self.fail(node, f"{key!r} must be a whole number")
        return value

    def table(self, name: str, node: Node) -> Table:
        owner = f"table {name}"
        own = {k: v for k, _, v in self.entries(node, owner, _TABLE)}
        if "columns" not in own:
            self.fail(node, f"{owner} has no key 'columns'")
        columns = tuple(
            self.column(owner, key, value) for key, value in self.named(own["columns"], "columns")
        )
        if not columns:
            self.fail(own["columns"], f"{owner} has no columns")
        primary = self.texts(own["primary_key"], "primary_key") if "primary_key" in own else ()
        self._known(own.get("primary_key", node), owner, primary, columns)
        self._tables += 1
        return Table(
            name=name,
            columns=columns,
            description=self._read(own, "description", self.text, ""),
            namespace=self._read(own, "namespace", self.text, ""),
            primary_key=primary,
            row_count=self._read(own, "rows", self.count, None),
            is_view=self._read(own, "view", self.flag, False),
        )

    def column(self, owner: str, name: str, node: Node) -> Column:
        if isinstance(node, ScalarNode):
            return Column(name, self.text(node, name))
        own = {k: v for k, _, v in self.entries(node, f"column {name} of {owner}", _COLUMN)}
        if "references" in own:
            target = self.text(own["references"], "references")
            self.references.append(_Reference(own["references"], self._tables, name, target))
        return Column(
            name=name,
            type=self._read(own, "type", self.text, ""),
            description=line(self._read(own, "description", self.text, "")),
            nullable=self._read(own, "nullable", self.flag, True),
            samples=self._read(own, "values", self.values, ()),
        )

    def values(self, node: Node, key: str) -> tuple[str, ...]:
        if not isinstance(node, SequenceNode):
            self.fail(node, f"{key!r} must be a list of stored values, not {_kind(node)}")
        return samples(map(plain, node.value), _DIALECT, _MOST_VALUES)

    def _read(
        self, own: Mapping[str, Node], key: str, how: Callable[[Node, str], Any], otherwise: Any
    ) -> Any:
        return how(own[key], key) if key in own else otherwise

    def _known(
        self, node: Node, owner: str, names: Iterable[str], columns: Iterable[Column]
    ) -> None:
        known = [column.name for column in columns]
        for name in names:
            if name not in known:
                self.fail(node, f"primary_key of {owner} names {name!r}, which is no column of it")

    def foreign_keys(self, tables: list[Table], held: Iterable[Table]) -> Iterator[ForeignKey]:
        """What `references: table.column` say; the table may be qualified."""
        named = list(held)
        for ref in self.references:
            table, _, column = ref.target.rpartition(".")
            fits = [t for t in named if _is_called(t, table) and t.column(column)]
            if len(fits) != 1:
                owner = f"{tables[ref.table].name}.{ref.column}"
                count = "no" if not fits else "more than one"
                self.fail(
                    ref.node,
                    f"'references' of {owner} is {ref.target!r}, which means {count} table.column "
                    "of this file",
                )
            target = fits[0].column(column)
            assert target is not None
            yield ForeignKey(named[ref.table].name, (ref.column,), fits[0].name, (target.name,))


_EMPTY = ScalarNode("tag:yaml.org,2002:null", "")


def _is_called(table: Table, name: str) -> bool:
    full = ".".join(table.parts).casefold()
    return full == name.casefold() or full.endswith(f".{name.casefold()}")


def _kind(node: Node) -> str:
    if isinstance(node, MappingNode):
        return "a mapping"
    return "a list" if isinstance(node, SequenceNode) else "a single value"

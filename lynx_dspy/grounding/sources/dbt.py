"""dbt: `target/manifest.json`, and the `schema.yml` files that describe models and sources.

Read as dbt documents them: the manifest's nodes and sources with columns, relation_name and tests;
in YAML `models`, `seeds`, `snapshots` and `sources` with columns and data tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.sources.naming import distinct_names
from lynx_dspy.grounding.sources.nested import short_type
from lynx_dspy.grounding.sources.reading import Reading, line
from lynx_dspy.values import Column, ForeignKey, Schema, Table

YAML_SECTIONS = ("models", "seeds", "snapshots", "sources")
_TABLES = ("model", "seed", "snapshot", "source")
_VIEWS = ("view", "materialized_view")

_Record = Mapping[str, Any]


def is_manifest(value: Any) -> bool:
    """True for the content of a dbt manifest."""
    return isinstance(value, dict) and "nodes" in value and isinstance(value.get("metadata"), dict)


def read_manifest(manifest: Mapping[str, Any], dialect: str = "", name: str = "") -> Reading:
    """The models, seeds, snapshots and sources of a manifest that describe their columns.

    Primary keys are `unique` and `not_null` tests on one column, or constraints; foreign keys are
    `relationships` tests. What has no columns, or no table (ephemeral), is noted. Raises `BadInput`
    if nothing is left.
    """
    meta = manifest["metadata"]
    found = _Found(dialect or str(meta.get("adapter_type") or "sqlite"))
    nodes = [*_dicts(manifest.get("nodes")), *_dicts(manifest.get("sources"))]
    tests = [n for n in nodes if n.get("resource_type") == "test"]
    for node in nodes:
        if node.get("resource_type") in _TABLES:
            found.add(str(node.get("unique_id")), node, _manifest_table(node))
    for test in tests:
        found.test(test)
    return found.reading(name or str(meta.get("project_name") or ""))


def read_schema_yml(value: Mapping[str, Any], dialect: str = "", name: str = "") -> Reading:
    """The models and sources of a dbt `schema.yml`. Raises `BadInput` if it describes none.

    A model's schema is not in the file, so its namespace is empty; a source's is. Data types are
    known only where they are written.
    """
    found = _Found(dialect or "sqlite")
    for section in ("models", "seeds", "snapshots"):
        for model in _dicts(value.get(section)):
            found.add(f"ref:{model.get('name')}", model, _yml_table(model, ()))
    for source in _dicts(value.get("sources")):
        place = (source.get("database"), source.get("schema") or source.get("name"))
        for table in _dicts(source.get("tables")):
            key = f"source:{source.get('name')}.{table.get('name')}"
            found.add(key, table, _yml_table(table, place))
    for key, record in list(found.records.items()):
        for column in _columns_of(record):
            found.yml_tests(key, column)
    return found.reading(name)


@dataclass(slots=True)
class _Found:
    dialect: str
    tables: dict[str, Table] = field(default_factory=dict)
    records: dict[str, _Record] = field(default_factory=dict)
    unique: dict[str, set[str]] = field(default_factory=dict)
    strict: dict[str, set[str]] = field(default_factory=dict)
    links: list[tuple[str, str, str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, key: str, record: _Record, table: Table) -> None:
        if _config(record).get("materialized") == "ephemeral":
            self.notes.append(f"{table.name}: ephemeral, so there is no table")
        elif not table.columns:
            self.notes.append(f"{table.name}: no columns are described; left out")
        else:
            self.tables[key] = table
            self.records[key] = record

    def test(self, node: _Record) -> None:
        """One data test of a manifest."""
        about = _record(node.get("test_metadata"))
        arguments = _record(about.get("kwargs"))
        column = str(node.get("column_name") or arguments.get("column_name") or "")
        targets = [str(t) for t in _list(_record(node.get("depends_on")).get("nodes"))]
        own = str(node.get("attached_node") or (targets[-1] if targets else ""))
        kind = about.get("name")
        if kind == "relationships":
            others = [t for t in targets if t != own] or [own]
            self.links.append((own, column, others[0], str(arguments.get("field") or "")))
        elif kind in ("unique", "not_null"):
            place = self.unique if kind == "unique" else self.strict
            place.setdefault(own, set()).add(column)

    def yml_tests(self, key: str, column: _Record) -> None:
        """The data tests of a column in YAML, called `tests` before dbt 1.8."""
        name = str(column.get("name"))
        for test in [*_list(column.get("data_tests")), *_list(column.get("tests"))]:
            kind, body = next(iter(test.items())) if isinstance(test, dict) and test else (test, {})
            if kind in ("unique", "not_null"):
                place = self.unique if kind == "unique" else self.strict
                place.setdefault(key, set()).add(name)
            elif kind == "relationships" and isinstance(body, dict):
                body = _record(body.get("arguments")) or body
                other = _referred(str(body.get("to") or ""))
                self.links.append((key, name, other, str(body.get("field") or "")))

    def reading(self, name: str) -> Reading:
        if not self.tables:
            why = f" ({self.notes[0]})" if self.notes else ""
            raise BadInput(f"{name or 'The dbt file'} describes no table with columns{why}.")
        keyed = {key: self._with_keys(key, table) for key, table in self.tables.items()}
        tables = distinct_names(keyed.values())
        names = {key: table.name for key, table in zip(keyed, tables, strict=True)}
        keys = tuple(dict.fromkeys(self._foreign_keys(names)))
        return Reading(Schema(self.dialect, tables, keys, name), tuple(self.notes))

    def _with_keys(self, key: str, table: Table) -> Table:
        strict = {c.casefold() for c in self.strict.get(key, ())}
        sole = [
            c.name
            for c in table.columns
            if c.name.casefold() in strict
            and c.name.casefold() in {u.casefold() for u in self.unique.get(key, ())}
        ]
        columns = tuple(
            replace(c, nullable=c.nullable and c.name.casefold() not in strict)
            for c in table.columns
        )
        declared = table.primary_key or (tuple(sole) if len(sole) == 1 else ())
        return replace(table, columns=columns, primary_key=declared)

    def _foreign_keys(self, names: Mapping[str, str]) -> Iterator[ForeignKey]:
        for own, column, other, field_ in self.links:
            if own in names and other in names and column and field_:
                yield ForeignKey(names[own], (column,), names[other], (field_,))
            else:
                self.notes.append(f"a relationship of {own or '?'}.{column or '?'} leads nowhere")


def _manifest_table(node: _Record) -> Table:
    name = str(node.get("identifier") or node.get("alias") or node.get("name"))
    path = tuple(str(p) for p in (node.get("database"), node.get("schema"), name) if p)
    return _made(node, path, _columns_of(node))


def _yml_table(record: _Record, place: Iterable[Any]) -> Table:
    name = str(record.get("identifier") or record.get("alias") or record.get("name"))
    path = (*(str(p) for p in place if p), name)
    return _made(record, path, _columns_of(record))


def _made(record: _Record, path: tuple[str, ...], columns: Iterable[_Record]) -> Table:
    return Table(
        name=path[-1],
        columns=tuple(_column(c) for c in columns),
        description=line(record.get("description")),
        namespace=".".join(path[:-1]),
        primary_key=_constraint(record),
        is_view=_config(record).get("materialized") in _VIEWS,
        path=path,
    )


def _column(column: _Record) -> Column:
    constraints = [c.get("type") for c in _dicts(column.get("constraints"))]
    return Column(
        name=str(column["name"]),
        type=short_type(line(column.get("data_type"))),
        description=line(column.get("description")),
        nullable="not_null" not in constraints,
    )


def _constraint(record: _Record) -> tuple[str, ...]:
    for constraint in _dicts(record.get("constraints")):
        if constraint.get("type") == "primary_key":
            return tuple(str(c) for c in _list(constraint.get("columns")))
    return tuple(
        str(column["name"])
        for column in _columns_of(record)
        if any(c.get("type") == "primary_key" for c in _dicts(column.get("constraints")))
    )


def _columns_of(record: _Record) -> list[_Record]:
    return [c for c in _dicts(record.get("columns")) if c.get("name")]


def _config(record: _Record) -> _Record:
    return _record(record.get("config"))


def _referred(text: str) -> str:
    """The key of `ref('model')` or `source('name', 'table')`."""
    call, _, inside = text.partition("(")
    names = [part.strip(" '\")") for part in inside.split(",")]
    return f"{call.strip()}:{'.'.join(names if call.strip() == 'source' else names[-1:])}"


def _record(value: Any) -> _Record:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dicts(value: Any) -> list[_Record]:
    items = value.values() if isinstance(value, dict) else _list(value)
    return [item for item in items if isinstance(item, dict)]

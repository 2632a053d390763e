"""BigQuery datasets as a `Schema`, from the records of their tables: reading these is free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from lynx_dspy.engines.cloud_schema import partitioned, with_note
from lynx_dspy.errors import DatabaseError
from lynx_dspy.grounding.sources.naming import distinct_names
from lynx_dspy.values import Column, ForeignKey, Schema, Table

if TYPE_CHECKING:
    from google.cloud import bigquery

_AT_ONCE = 16
_NAMES = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL", "RECORD": "STRUCT"}
_VIEWS = ("VIEW", "MATERIALIZED_VIEW")


def datasets(
    client: bigquery.Client, project: str, dataset: str, seconds: float
) -> tuple[str, ...]:
    """The full names of the datasets that are read, sorted."""
    if dataset:
        return (f"{project}.{dataset}",)
    found = client.list_datasets(project, timeout=seconds)
    return tuple(sorted(f"{project}.{item.dataset_id}" for item in found))


def read_tables(
    client: bigquery.Client, project: str, dataset: str, seconds: float
) -> Iterator[bigquery.Table]:
    """The records of all tables, several requests at a time; what goes meanwhile is left out."""
    from google.api_core.exceptions import NotFound

    def read(reference: bigquery.TableReference) -> bigquery.Table | None:
        try:
            return client.get_table(reference, timeout=seconds)
        except NotFound:
            return None

    names = datasets(client, project, dataset, seconds)
    listed = [item for name in names for item in client.list_tables(name, timeout=seconds)]
    with ThreadPoolExecutor(_AT_ONCE, "lynx-bigquery") as pool:
        for table in pool.map(read, (item.reference for item in listed)):
            if table is not None:
                yield table


def schema(records: Iterable[bigquery.Table], name: str) -> Schema:
    """Raises `DatabaseError` if there is no table."""
    found = [record for record in records if record.schema]
    if not found:
        raise DatabaseError(f"{name} holds no tables that this login can see. Name another.")
    tables = distinct_names(map(_table, found))
    named = {_key(table.parts): table.name for table in tables}
    keys = tuple(key for record in found for key in _foreign_keys(record, named))
    return Schema("bigquery", tables, keys, name)


def _table(record: bigquery.Table) -> Table:
    constraints = record.table_constraints
    primary = constraints.primary_key if constraints else None
    parts = (record.project, record.dataset_id, record.table_id)
    return Table(
        name=record.table_id,
        columns=tuple(c for field in record.schema for c in columns(field)),
        description=with_note(record.description, _layout(record)),
        namespace=".".join(parts[:-1]),
        primary_key=tuple(primary.columns) if primary else (),
        row_count=record.num_rows if record.table_type == "TABLE" else None,
        is_view=record.table_type in _VIEWS,
        path=parts,
    )


def columns(field: bigquery.SchemaField, prefix: str = "") -> Iterator[Column]:
    """A column and, behind it, its fields under dotted names, as in the Spider 2.0 metadata."""
    name, repeated = f"{prefix}{field.name}", field.mode == "REPEATED"
    kind = _type(field)
    yield Column(
        name,
        f"ARRAY<{kind}>" if repeated else kind,
        " ".join((field.description or "").split()),
        nullable=field.mode != "REQUIRED",
    )
    for inner in field.fields:
        yield from columns(inner, f"{name}.")


def _type(field: bigquery.SchemaField) -> str:
    kind = _NAMES.get(field.field_type, field.field_type)
    if kind == "RANGE" and field.range_element_type:
        return f"RANGE<{field.range_element_type.element_type}>"
    sizes = (field.precision, field.scale) if field.precision else (field.max_length,)
    given = ", ".join(str(size) for size in sizes if size)
    return f"{kind}({given})" if given else kind


def _layout(record: bigquery.Table) -> str:
    time, numbers = record.time_partitioning, record.range_partitioning
    by = ""
    if time is not None:
        by = f"{time.field or '_PARTITIONTIME'} ({time.type_})"
    elif numbers is not None:
        by = numbers.field
    required = bool(record.require_partition_filter)
    return partitioned(by, record.clustering_fields or (), required)


def _foreign_keys(record: bigquery.Table, named: dict[str, str]) -> Iterator[ForeignKey]:
    constraints = record.table_constraints
    own = _key((record.project, record.dataset_id, record.table_id))
    for key in (constraints.foreign_keys if constraints else None) or ():
        other = key.referenced_table
        target = named.get(_key((other.project, other.dataset_id, other.table_id)))
        if target is not None:
            pairs = [(c.referencing_column, c.referenced_column) for c in key.column_references]
            here, there = zip(*pairs, strict=True)
            yield ForeignKey(named[own], here, target, there)


def _key(parts: Iterable[str]) -> str:
    return ".".join(parts)

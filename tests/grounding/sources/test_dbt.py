"""dbt's manifest and schema.yml give tables, descriptions and keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.sources import read
from lynx_dspy.values import ForeignKey

SCHEMA_YML = """\
version: 2
sources:
  - name: raw
    database: lake
    schema: landing
    tables:
      - name: users
        columns: [{name: id, data_tests: [unique, not_null]}]
models:
  - name: orders
    description: one row an order
    columns:
      - name: id
        data_type: bigint
        tests: [unique, not_null]
      - name: user_id
        description: who paid
        data_tests:
          - relationships: {to: "source('raw', 'users')", field: id}
      - name: parent
        tests:
          - relationships:
              arguments: {to: ref('orders'), field: id}
  - name: undocumented
"""


def node(name: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"unique_id": f"{kind}.shop.{name}", "name": name, "resource_type": kind} | fields


def manifest(path: Path, *nodes: dict[str, Any], sources: tuple[dict[str, Any], ...] = ()) -> Path:
    value = {
        "metadata": {"adapter_type": "snowflake", "project_name": "shop"},
        "nodes": {n["unique_id"]: n for n in nodes},
        "sources": {n["unique_id"]: n for n in sources},
    }
    path.write_text(json.dumps(value))
    return path


def test_schema_yml_gives_models_and_sources_with_keys() -> None:
    reading = read(SCHEMA_YML)
    tables = {t.name: t for t in reading.schema.tables}
    assert tables["users"].parts == ("lake", "landing", "users")
    orders = tables["orders"]
    assert (orders.description, orders.primary_key) == ("one row an order", ("id",))
    assert (orders.columns[0].type, orders.columns[1].description) == ("bigint", "who paid")
    assert reading.schema.foreign_keys == (
        ForeignKey("orders", ("user_id",), "users", ("id",)),
        ForeignKey("orders", ("parent",), "orders", ("id",)),
    )
    assert reading.notes == ("undocumented: no columns are described; left out",)


def test_a_manifest_gives_full_names_types_and_tests(tmp_path: Path) -> None:
    columns = {"ID": {"name": "ID", "data_type": "NUMBER", "description": "the key"}}
    link = node(
        "rel",
        "test",
        column_name="USER_ID",
        attached_node="model.shop.orders",
        test_metadata={"name": "relationships", "kwargs": {"field": "ID", "to": "ref('users')"}},
        depends_on={"nodes": ["model.shop.users", "model.shop.orders"]},
    )
    path = manifest(
        tmp_path / "manifest.json",
        node(
            "orders",
            "model",
            database="DB",
            schema="MART",
            alias="ORDERS",
            config={"materialized": "view"},
            columns=columns | {"USER_ID": {"name": "USER_ID"}},
        ),
        node("tmp", "model", config={"materialized": "ephemeral"}, columns=columns),
        link,
        sources=(node("users", "source", identifier="USERS", schema="RAW", columns=columns),),
    )
    text = path.read_text().replace("source.shop.users", "model.shop.users")
    path.write_text(text)
    reading = read(tmp_path)
    assert (reading.schema.dialect, reading.schema.name) == ("snowflake", "shop")
    orders, users = reading.schema.tables
    assert (orders.parts, orders.is_view) == (("DB", "MART", "ORDERS"), True)
    assert users.parts == ("RAW", "USERS")
    assert reading.schema.foreign_keys == (ForeignKey("ORDERS", ("USER_ID",), "USERS", ("ID",)),)
    assert "ephemeral" in reading.notes[0]


def test_a_manifest_without_columns_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="describes no table with columns") as error:
        read(manifest(tmp_path / "manifest.json", node("a", "model", columns={})))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "junk", ["models: 3\n", "models: [1, {name: x, columns: 5}]\n", "sources: {a: b}\n"]
)
def test_junk_under_a_known_key_is_one_line(tmp_path: Path, junk: str) -> None:
    path = tmp_path / "schema.yml"
    path.write_text(junk)
    with pytest.raises(BadInput, match="describes no table"):
        read(path)

"""A schema written by hand: every form is taken, every mistake is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.sources import read, read_schema
from lynx_dspy.values import ForeignKey

WHOLE = """\
name: shop
dialect: postgres
tables:
  orders:
    description: one row
      an order
    namespace: main.sales
    primary_key: [id]
    rows: 12
    view: no
    columns:
      id: integer
      customer_id: {type: integer, references: crm.customers.id, nullable: false}
      state:
        type: text
        description: where it is
        values: [paid, sent, 2024-01-01]
  customers:
    namespace: crm
    columns:
      - {name: id, type: integer}
      - note
"""


def test_every_field_reaches_the_schema() -> None:
    schema = read_schema(WHOLE)
    assert (schema.name, schema.dialect) == ("shop", "postgres")
    orders, customers = schema.tables
    assert (orders.parts, orders.row_count) == (("main", "sales", "orders"), 12)
    assert (orders.description, orders.primary_key) == ("one row an order", ("id",))
    assert (orders.columns[1].nullable, orders.columns[2].samples[0]) == (False, "'paid'")
    assert [c.name for c in customers.columns] == ["id", "note"]
    assert schema.foreign_keys == (ForeignKey("orders", ("customer_id",), "customers", ("id",)),)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("    rows: 12", "    row: 12", 9, "table orders has no key 'row'; did you mean 'rows'?"),
        ("rows: 12", "rows: many", 9, "'rows' must be a whole number"),
        ("view: no", "view: perhaps", 10, "'view' must be true or false"),
        ("crm.customers.id", "crm.clients.id", 13, "'references' of orders.customer_id"),
        ("[paid, sent, 2024-01-01]", "paid", 17, "'values' must be a list"),
        ("primary_key: [id]", "primary_key: [key]", 8, "names 'key', which is no column"),
        ("namespace: crm\n    columns", "namespace: crm\n    colums", 20, "'columns'"),
        ("state:", "id:", 14, "has the key 'id' twice, first in line 12"),
        ("      - note", "      - {type: text}", 22, "has no key 'name'"),
        ("    view: no", "    view: [no", 11, "is not YAML"),
        ("name: shop", "- shop", 2, "is not YAML"),
    ],
)
def test_a_mistake_is_named_with_file_line_and_key(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    assert old in WHOLE
    path = tmp_path / "shop.yml"
    path.write_text(WHOLE.replace(old, new, 1))
    with pytest.raises(BadInput) as error:
        read(path)
    text = str(error.value)
    assert f"shop.yml, line {line}" in text
    assert words in text
    assert "\n" not in text


@pytest.mark.parametrize(
    "text", ["", "  \n", "tables:\n", "tables: []\n", "tables: 3\n", "- a\n", "a\n\x00"]
)
def test_what_describes_no_tables_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"x\.yaml") as error:
        read(path)
    assert "\n" not in str(error.value)


def test_no_object_is_made_of_a_tag() -> None:
    text = "tables:\n  t:\n    columns:\n      a: {values: [!!python/object/apply:os.getcwd []]}\n"
    with pytest.raises(BadInput):
        read(text)


@given(st.text(max_size=60))
def test_any_text_is_a_schema_or_one_line(text: str) -> None:
    try:
        read(f"tables:\n{text}")
    except BadInput as error:
        assert "\n" not in str(error)

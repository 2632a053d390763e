"""Sources become one schema; where they differ is a value."""

from __future__ import annotations

from lynx_dspy.grounding.sources import merge, read_schema
from lynx_dspy.values import ForeignKey, Schema

LIVE = read_schema(
    "CREATE TABLE Orders (Id INTEGER PRIMARY KEY, Customer INTEGER, Note TEXT);\n"
    "CREATE TABLE Customers (Id INTEGER PRIMARY KEY, -- kept\n Name TEXT);"
)


def sheet(text: str) -> Schema:
    return read_schema("tables:\n" + text)


def test_a_description_enriches_what_the_database_has() -> None:
    said = sheet(
        "  orders:\n"
        "    description: one a basket\n"
        "    columns:\n"
        "      customer: {type: int, references: customers.id, values: [7]}\n"
        "  customers:\n"
        "    columns: {id: integer}\n"
    )
    merged = merge(LIVE, said)
    assert merged.conflicts == ()
    orders, customers = merged.schema.tables
    assert (orders.name, orders.description) == ("Orders", "one a basket")
    assert orders.columns[1].samples == ("7",)
    assert customers.columns[0].description == "kept"
    assert merged.schema.foreign_keys == (
        ForeignKey("Orders", ("Customer",), "Customers", ("Id",)),
    )
    assert merge(merged.schema, said).schema == merged.schema, "twice is once"


def test_differences_are_reported_and_the_database_is_right() -> None:
    said = sheet(
        "  orders:\n"
        "    primary_key: note\n"
        "    columns: {note: date, colour: text}\n"
        "  gone:\n"
        "    columns: {a: text}\n"
    )
    merged = merge(LIVE, said)
    assert merged.schema == LIVE
    assert [str(c) for c in merged.conflicts] == [
        "Orders.Note: type is TEXT, not date",
        "Orders.colour: described, but not in the database; left out",
        "Orders: primary key is Id, not note",
        "gone: described, but not in the database; left out",
    ]


def test_additive_sources_complete_each_other() -> None:
    merged = merge(LIVE, sheet("  gone:\n    columns: {a: text}\n"), additive=True)
    assert [t.name for t in merged.schema.tables] == ["Orders", "Customers", "gone"]


def test_a_bare_name_that_fits_two_tables_is_unclear() -> None:
    two = read_schema("CREATE TABLE a.t (x INT);\nCREATE TABLE b.t (x INT);", "postgres")
    merged = merge(two, sheet("  t:\n    columns: {x: {description: which}}\n"))
    assert merged.schema == two
    assert "a.t or b.t" in str(merged.conflicts[0])
    clear = merge(two, sheet("  t:\n    namespace: b\n    columns: {x: {description: this}}\n"))
    assert [t.columns[0].description for t in clear.schema.tables] == ["", "this"]
    assert clear.conflicts == ()

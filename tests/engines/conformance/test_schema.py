"""The catalogue as the canonical schema: names, keys, comments, counts, samples."""

from __future__ import annotations

import pytest
from conformance.kit import CITIES, Adapter

from lynx_dspy.engines.base import Database
from lynx_dspy.engines.static import check, has_errors
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.values import FailureClass, ForeignKey, Schema, Status, Table


@pytest.fixture(scope="module")
def schema(database: Database) -> Schema:
    return database.introspect()


def _table(schema: Schema, name: str) -> Table:
    found = schema.table(name)
    assert found is not None, [table.name for table in schema.tables]
    return found


@pytest.mark.capability("introspection")
def test_tables_columns_and_keys(adapter: Adapter, schema: Schema) -> None:
    orders = _table(schema, "orders")
    assert schema.dialect == adapter.dialect
    assert [c.name for c in orders.columns] == ["id", "customer_id", "amount", "placed_on"]
    assert orders.primary_key == ("id",)
    assert schema.foreign_keys == (ForeignKey("orders", ("customer_id",), "customers", ("id",)),)
    assert not _table(schema, "customers").columns[1].nullable
    assert _table(schema, "totals").is_view
    assert not orders.is_view


@pytest.mark.capability("introspection")
def test_names_in_any_script_keep_their_spelling(adapter: Adapter, schema: Schema) -> None:
    columns = _table(schema, "größe 城").columns
    assert [column.name for column in columns] == ["id", "Name des Orts", "ÉTENDUE"]


@pytest.mark.capability("row counts")
def test_small_tables_are_counted(adapter: Adapter, schema: Schema) -> None:
    assert _table(schema, "orders").row_count == 3
    assert _table(schema, "customers").row_count == 2


@pytest.mark.capability("comments")
def test_comments_are_descriptions(adapter: Adapter, schema: Schema) -> None:
    orders = _table(schema, "orders")
    amount = orders.column("amount")
    assert orders.description == "one row an order"
    assert amount is not None and amount.description == "in euros"


@pytest.mark.capability("partitions")
def test_a_partitioned_table_is_one_table_that_says_so(adapter: Adapter, schema: Schema) -> None:
    visits = _table(schema, "visits")
    assert "partitioned by RANGE (" in visits.description
    assert "2 partitions" in visits.description
    assert visits.row_count == 2
    assert not [t.name for t in schema.tables if t.name.startswith("visits_")]


@pytest.mark.capability("privileges")
def test_what_the_account_may_not_read_is_not_there(adapter: Adapter, schema: Schema) -> None:
    assert schema.table("salaries") is None


@pytest.mark.capability("sample values")
def test_values_are_sampled(adapter: Adapter, database: Database) -> None:
    sampled = abstract(database)
    names = _table(sampled, "customers").column("name")
    assert names is not None and set(names.samples) == {"'Ada'", "'Bo'"}
    cities = _table(sampled, "größe 城").column("Name des Orts")
    assert cities is not None and cities.distinct == len(CITIES)


@pytest.mark.capability("static check")
def test_the_static_check_knows_the_schema(adapter: Adapter, schema: Schema) -> None:
    assert not has_errors(check(f"SELECT amount FROM {adapter.orders}", schema))
    wrong = check(f"SELECT amuont FROM {adapter.orders}", schema)
    assert wrong[0].failure_class is FailureClass.SCHEMA
    assert "amount" in [name.lower() for name in wrong[0].candidates]


@pytest.mark.capability("explain")
def test_the_planner_is_asked_without_running(adapter: Adapter, database: Database) -> None:
    assert database.dry_run("SELECT COUNT(*) FROM orders;") == ()
    (finding,) = database.dry_run("SELECT amuont FROM orders")
    assert finding.failure_class is FailureClass.SCHEMA
    assert database.dry_run("DROP TABLE orders") == ()
    if adapter.judges_plans:
        (costly,) = database.dry_run(adapter.endless)
        assert costly.failure_class is FailureClass.SEMANTIC
        assert "rows" in costly.message


@pytest.mark.capability("error classes")
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("SELECT FROM WHERE id", FailureClass.SYNTAX),
        ("SELECT no_such_function_1(id) FROM orders", FailureClass.SYNTAX),
        ("SELECT amuont FROM orders", FailureClass.SCHEMA),
        ("SELECT * FROM oders", FailureClass.SCHEMA),
        ("SELECT id FROM orders JOIN customers ON TRUE", FailureClass.SCHEMA),
        ("SELECT (SELECT id FROM orders UNION SELECT 'x' UNION SELECT 'y'), COUNT(1, 2)", None),
    ],
)
def test_errors_are_classified(
    adapter: Adapter, database: Database, program: str, expected: FailureClass | None
) -> None:
    outcome = database.execute(program)
    assert outcome.status is Status.ERROR, outcome
    assert "\n" not in outcome.error
    assert not outcome.error.startswith("[")
    if expected:
        assert outcome.failure_class is expected, outcome.error

from pathlib import Path

import pytest

from lynx_dspy import connect, datasets
from lynx_dspy.errors import BadInput
from lynx_dspy.metrics.linking import Linking, linking, names_used, parsed
from lynx_dspy.values import Column, Schema, Table

DATA = Path(__file__).parents[2] / "../shared/data/spider"


def table(name: str, *columns: str) -> Table:
    return Table(name, tuple(Column(column, "TEXT") for column in columns))


SHOP = Schema(
    "sqlite",
    (table("Customer", "id", "name", "city"), table("orders", "id", "customer_id", "total")),
)


def used(sql: str) -> tuple[set[str], set[str], tuple[str, ...]]:
    tree = parsed(sql, SHOP)
    assert tree is not None
    names = names_used(tree, SHOP)
    return set(names.tables), set(names.columns), names.unknown


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT c.name FROM Customer AS c", {"customer.name"}),
        ("SELECT NAME FROM CUSTOMER", {"customer.name"}),
        ("SELECT count(*) FROM customer", set()),
        ("SELECT * FROM customer", {"customer.id", "customer.name", "customer.city"}),
        (
            "SELECT o.* FROM customer c, orders o",
            {"orders.id", "orders.customer_id", "orders.total"},
        ),
        ("SELECT total AS t FROM orders ORDER BY t", {"orders.total"}),
        ("WITH big AS (SELECT total AS t FROM orders) SELECT t FROM big", {"orders.total"}),
        (
            "SELECT name FROM customer c "
            "WHERE EXISTS (SELECT 1 FROM orders WHERE customer_id = c.id)",
            {"customer.name", "customer.id", "orders.customer_id"},
        ),
    ],
)
def test_columns_are_found_through_aliases_and_subqueries(sql: str, columns: set[str]) -> None:
    _, found, unknown = used(sql)
    assert found == columns
    assert unknown == ()


def test_invented_names_are_told() -> None:
    tables, _, unknown = used('SELECT c.nme, wrong, "text" FROM customer c JOIN orders o')
    assert tables == {"customer", "orders"}
    assert set(unknown) == {"customer.nme", "?.wrong"}
    assert used("SELECT amount FROM invoices") == (set(), set(), ("invoices",))


def test_shares_of_tables_and_columns() -> None:
    gold = "SELECT c.name FROM customer c JOIN orders o ON o.customer_id = c.id"
    assert linking(gold, gold, SHOP) == Linking(1, 1, 1, 1)
    found = linking(gold, "SELECT name, city FROM customer", SHOP)
    assert found == Linking(1, 0.5, 0.5, 1 / 3)
    assert linking(gold, ["orders", "Customer", "customer.NAME"], SHOP).column_precision == 1
    assert linking(gold, "SELECT * FROM (", SHOP) == Linking(1, 0, 1, 0)


def test_a_gold_that_does_not_parse_is_refused() -> None:
    with pytest.raises(BadInput, match="does not parse"):
        linking("SELECT FROM WHERE (", "SELECT 1", SHOP)


@pytest.mark.skipif(not DATA.is_dir(), reason="Spider 1.0 is not here")
def test_golds_use_known_names_only() -> None:
    loaded = datasets.load("spider", DATA)
    databases = {one.db: one.database for one in loaded}
    schemas = {db: connect(path).introspect() for db, path in databases.items()}
    for one in loaded:
        (gold,) = one.gold_sql
        tree = parsed(gold, schemas[one.db])
        assert tree is not None, gold
        names = names_used(tree, schemas[one.db])
        assert names.tables and not names.unknown, gold

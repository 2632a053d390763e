"""A database that is described from outside is the same database with a richer schema."""

from __future__ import annotations

import copy

from lynx_dspy.engines.base import Database
from lynx_dspy.engines.described import DescribedDatabase
from lynx_dspy.grounding.schema import abstract

TEXTS = {"Customers": {"": "people who buy", "CITY": "where they live"}}


def test_descriptions_reach_the_abstracted_schema(shop: Database) -> None:
    plain = abstract(shop)
    table = abstract(DescribedDatabase(shop, TEXTS)).table("customers")
    assert table and table.description == "people who buy"
    column = table.column("city")
    assert column and column.description == "where they live"
    assert column.samples, "values are still sampled"
    assert abstract(shop) == plain, "the plain database has kept its own schema"


def test_the_rest_is_passed_through(shop: Database) -> None:
    described = DescribedDatabase(shop, TEXTS)
    assert described.fingerprint() == DescribedDatabase(shop, TEXTS).fingerprint()
    assert described.fingerprint() != DescribedDatabase(shop, {}).fingerprint()
    assert described.execute("SELECT name FROM customers").row_count == 3
    assert described.query("SELECT 1") == [(1,)]
    assert (described.url, described.dialect) == (shop.url, "sqlite")
    assert copy.deepcopy(described) is described

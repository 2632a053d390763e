from __future__ import annotations

from collections.abc import Callable

import pytest

from lynx_dspy.engines.base import Database
from lynx_dspy.grounding.keys import joins, neighbours
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.values import Column, ForeignKey, Schema, Table

Make = Callable[[str], Database]


def found(make: Make, script: str) -> set[str]:
    keys = abstract(make(script)).foreign_keys
    assert all(0.5 <= k.confidence < 1 for k in keys if k.inferred)
    return {
        f"{k.table}.{k.columns[0]} {k.ref_table}.{k.ref_columns[0]}" for k in keys if k.inferred
    }


CUSTOMERS = """
CREATE TABLE customers ({key} INTEGER {pk}, name TEXT);
INSERT INTO customers VALUES (1001, 'A'), (1002, 'B'), (1003, 'C');
CREATE TABLE orders (id INTEGER PRIMARY KEY, {ref} INTEGER, total INTEGER);
INSERT INTO orders VALUES (1, 1001, 5), (2, 1001, 9), (3, {last}, 9);
"""


@pytest.mark.parametrize(
    ("key", "ref"),
    [
        ("id", "customer_id"),
        ("customer_id", "customer_id"),
        ("cust_id", "buying_cust_id"),
        ("cid", "cid"),
        ("CustomerID", "customerid"),
        ("id", "referring_customer_id"),
    ],
)
@pytest.mark.parametrize("pk", ["PRIMARY KEY", ""])
def test_names_and_values_that_agree_make_a_key(make: Make, key: str, ref: str, pk: str) -> None:
    script = CUSTOMERS.format(key=key, ref=ref, pk=pk, last=1003)
    assert found(make, script) == {f"orders.{ref} customers.{key}"}


def test_values_that_the_key_lacks_speak_against_it(make: Make) -> None:
    assert not found(make, CUSTOMERS.format(key="id", ref="customer_id", pk="", last=77))


def test_types_that_differ_speak_against_it(make: Make) -> None:
    script = CUSTOMERS.format(key="id", ref="customer_id", pk="", last=1003)
    assert not found(make, script.replace("customer_id INTEGER", "customer_id TEXT"))


def test_a_declared_key_is_not_inferred_again(make: Make) -> None:
    script = CUSTOMERS.format(key="id", ref="customer_id", pk="PRIMARY KEY", last=1003)
    declared = "customer_id INTEGER REFERENCES customers(id)"
    assert not found(make, script.replace("customer_id INTEGER", declared))


def test_a_column_named_after_a_table_needs_telling_values(make: Make) -> None:
    script = """
    CREATE TABLE airport (airport_code TEXT PRIMARY KEY);
    INSERT INTO airport VALUES ('TXL'), ('JFK');
    CREATE TABLE semester (semester_id INTEGER PRIMARY KEY);
    INSERT INTO semester VALUES (1), (2), (3);
    CREATE TABLE flight (from_airport TEXT, num_semesters INTEGER);
    INSERT INTO flight VALUES ('TXL', 1), ('JFK', 2);
    """
    assert found(make, script) == {"flight.from_airport airport.airport_code"}


def test_letters_that_all_tables_start_with_are_no_part_of_a_name(make: Make) -> None:
    script = """
    CREATE TABLE sbcustomer (sbcustid TEXT PRIMARY KEY);
    INSERT INTO sbcustomer VALUES ('C1'), ('C2');
    CREATE TABLE sbticker (sbtickerid TEXT PRIMARY KEY);
    INSERT INTO sbticker VALUES ('T1');
    CREATE TABLE sbtransaction (sbtxid TEXT PRIMARY KEY, sbtxcustid TEXT, sbtxtickerid TEXT);
    INSERT INTO sbtransaction VALUES ('X1', 'C1', 'T1'), ('X2', 'C2', 'T1');
    """
    assert found(make, script) == {
        "sbtransaction.sbtxcustid sbcustomer.sbcustid",
        "sbtransaction.sbtxtickerid sbticker.sbtickerid",
    }


def test_joins_leave_out_what_does_not_exist_and_repeats() -> None:
    columns = (Column("id", "INTEGER"), Column("b_id", "INTEGER"))
    keys = (
        ForeignKey("a", ("b_id",), "B", ("ID",)),
        ForeignKey("b", ("id",), "a", ("b_id",)),
        ForeignKey("a", ("gone",), "b", ("id",)),
        ForeignKey("a", ("b_id",), "elsewhere", ("id",)),
    )
    schema = Schema("sqlite", (Table("a", columns), Table("b", columns)), keys)
    assert list(joins(schema)) == [keys[0]]
    assert neighbours(schema) == {"a": ["b"], "b": ["a"]}

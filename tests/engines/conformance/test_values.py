"""Values come back as the Python values that they are, whatever the engine."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from conformance.kit import CITIES, VALUES, Adapter

from lynx_dspy.engines.base import Database
from lynx_dspy.values import Status


@pytest.mark.capability("{kind}")
@pytest.mark.parametrize("kind", VALUES)
def test_a_value_of_each_kind(adapter: Adapter, database: Database, kind: str) -> None:
    case = adapter.values[kind]
    outcome = database.execute(case.sql)
    assert outcome.status is Status.OK, outcome.error
    assert outcome.rows == (case.row,)
    assert [type(v) for v in outcome.rows[0]] == [type(v) for v in case.row]
    hash(outcome.rows)


@pytest.mark.capability("duplicate column names")
def test_two_columns_of_one_name_survive(adapter: Adapter, database: Database) -> None:
    outcome = database.execute(
        "SELECT a.id, b.id, a.id FROM orders a JOIN orders b ON b.id = a.id + 1 ORDER BY a.id"
    )
    assert [name.lower() for name in outcome.columns] == ["id", "id", "id"]
    assert outcome.rows == ((1, 2, 1), (2, 3, 2))


@pytest.mark.capability("unicode names")
def test_names_in_any_script(adapter: Adapter, database: Database) -> None:
    q = adapter.quoted
    outcome = database.execute(
        f"SELECT {q('Name des Orts')}, {q('ÉTENDUE')} FROM {q('größe 城')} AS t ORDER BY t.id"
    )
    assert outcome.columns == ("Name des Orts", "ÉTENDUE")
    assert outcome.rows == tuple((name, size) for _, name, size in CITIES)


@pytest.mark.capability("signs in literals")
@pytest.mark.parametrize("text", ["100%", "%s %(x)s %%", ":name ::x", "?", "$1", "{x}", "--", ";"])
def test_no_sign_in_a_literal_is_a_parameter(
    adapter: Adapter, database: Database, text: str
) -> None:
    assert database.execute(f"SELECT '{text}' AS a").rows == ((text,),)


@pytest.mark.capability("trailing marks")
@pytest.mark.parametrize("end", [";", " ;\n", " -- the end", " /* the end */", ";\n-- the end\n"])
def test_how_a_program_may_end(adapter: Adapter, database: Database, end: str) -> None:
    outcome = database.execute(f"SELECT COUNT(*) FROM orders{end}")
    assert outcome.rows == ((3,),), outcome.error


@pytest.mark.capability("empty results")
def test_no_rows_is_empty_and_keeps_the_columns(adapter: Adapter, database: Database) -> None:
    outcome = database.execute("SELECT id, amount FROM orders WHERE id < 0")
    assert outcome.status is Status.EMPTY
    assert [name.lower() for name in outcome.columns] == ["id", "amount"]


@pytest.mark.capability("stored values")
def test_stored_amounts_and_dates(adapter: Adapter, database: Database) -> None:
    outcome = database.execute("SELECT amount, placed_on FROM orders ORDER BY id")
    amounts = [float(amount) for amount, _ in outcome.rows]
    days = [day if isinstance(day, str) else day.isoformat() for _, day in outcome.rows]
    assert amounts == [12.5, 7.25, 9.0]
    assert days == ["2024-01-05", "2024-02-05", "2024-02-07"]
    kinds = {type(cell) for row in outcome.rows for cell in row}
    assert kinds <= {Decimal, float, dt.date, str}

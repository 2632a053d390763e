"""A folder of files as DataFrames: what programs see, and what becomes of those that fail."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

import lynx_dspy as lynx
from lynx_dspy.engines.base import Database
from lynx_dspy.errors import DatabaseError
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.values import FailureClass, Limits, Status


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("files")
    (place / "orders.csv").write_text(
        "order_id,total,placed_on,placed_at,paid,note\n"
        "1,5.5,2024-01-05,2024-01-05 10:00:00,true,a\n2,,2024-02-05,2024-02-05 00:00:00,false,\n"
    )
    (place / "order items.csv").write_text("order_id,class\n1,x\n2,y\n2,z\n")
    target = str(place / "prices.parquet")
    duckdb.sql("SELECT 1 AS id, 2.50::DECIMAL(10,2) AS price, 'ü' AS name").write_parquet(target)
    return place


@pytest.fixture(scope="module")
def frames(folder: Path) -> Iterator[Database]:
    with lynx.connect(f"frames:///{folder}") as database:
        yield database


def test_the_schema_is_that_of_the_files(frames: Database) -> None:
    schema = abstract(frames)
    assert schema.dialect == frames.dialect == "pandas"
    assert {t.name: t.row_count for t in schema.tables} == {
        "orders": 2, "order items": 3, "prices": 1,
    }  # fmt: skip
    assert frames.query('SELECT count(*) FROM "order items"') == [(3,)]


def test_types_are_those_that_pandas_users_expect(frames: Database) -> None:
    outcome = frames.execute("result = orders.dtypes.astype(str)")
    assert dict(outcome.rows) == {
        "order_id": "int64",
        "total": "float64",
        "placed_on": "datetime64[ms]",
        "placed_at": "datetime64[us]",
        "paid": "bool",
        "note": "str",
    }


def test_rows_come_back_as_plain_values(frames: Database) -> None:
    assert frames.execute("result = orders").rows == (
        (1, 5.5, datetime.date(2024, 1, 5), datetime.datetime(2024, 1, 5, 10), True, "a"),
        (2, None, datetime.date(2024, 2, 5), datetime.datetime(2024, 2, 5), False, None),
    )
    assert frames.execute("result = prices").rows == ((1, 2.5, "ü"),)
    assert frames.execute("result = tables['order items'].groupby('order_id').size()").rows == (
        (1, 1),
        (2, 2),
    )
    assert not isinstance(frames.execute("result = prices.price").rows[0][0], Decimal)


def test_sql_sees_tables_and_own_frames(frames: Database) -> None:
    code = "mine = orders[orders.paid]\nresult = sql('SELECT m.note, p.name FROM mine m, prices p')"
    assert frames.execute(code).rows == (("a", "ü"),)
    named = "result = sql('SELECT count(*) AS n FROM \"order items\"')"
    assert frames.execute(named).rows == ((3,),)
    for reaching in ("read_csv('/etc/passwd')", "glob('/*')", "read_text('/etc/passwd')"):
        outcome = frames.execute(f'result = sql("SELECT * FROM {reaching}")')
        assert not outcome.ran
        assert "disabled" in outcome.error


@pytest.mark.parametrize(
    ("code", "status", "failure", "told"),
    [
        ("result = orders['x']", Status.ERROR, FailureClass.SCHEMA, "KeyError: x (line 1"),
        ("result = orders.x", Status.ERROR, FailureClass.SCHEMA, "no attribute 'x'"),
        ("result = orders[['x']]", Status.ERROR, FailureClass.SCHEMA, "x"),
        ("result = nothing", Status.ERROR, FailureClass.SYNTAX, "'nothing' is not defined"),
        ("result = orders.note.frob()", Status.ERROR, FailureClass.SYNTAX, "frob"),
        ("result = (", Status.ERROR, FailureClass.SYNTAX, "never closed"),
        ("x = 1\n\ny = 1 / 0", Status.ERROR, FailureClass.SEMANTIC, "line 3: y = 1 / 0"),
        ("result = orders.note + 1", Status.ERROR, FailureClass.SEMANTIC, "Error"),
        ("x = 1\nprint(x)", Status.ERROR, FailureClass.SYNTAX, "it printed: 1"),
        ("result = print", Status.ERROR, FailureClass.SYNTAX, "builtin_function_or_method"),
        ("raise SystemExit(3)", Status.ERROR, FailureClass.SEMANTIC, "SystemExit"),
        ("import os\nresult = 1", Status.BLOCKED, FailureClass.SYNTAX, "import of os"),
        ("result = [0] * 10**11", Status.ERROR, FailureClass.SEMANTIC, "memory"),
        ("", Status.NO_PROGRAM, None, "no program"),
        ("result = sql('SELEC 1')", Status.ERROR, FailureClass.SYNTAX, "SELEC"),
        ("result = sql('SELECT nope FROM orders')", Status.ERROR, FailureClass.SCHEMA, "nope"),
    ],
)
def test_a_failure_has_a_class_and_one_line(
    frames: Database, code: str, status: Status, failure: FailureClass | None, told: str
) -> None:
    outcome = frames.execute(code)
    assert (outcome.status, outcome.failure_class) == (status, failure)
    assert told in outcome.error
    assert "\n" not in outcome.error


def test_no_rows_are_empty_and_endless_programs_time_out(frames: Database) -> None:
    assert frames.execute("result = orders[orders.total > 99]").status is Status.EMPTY
    late = frames.execute("while True: pass", Limits(timeout_seconds=0.5))
    assert late.status is Status.TIMEOUT
    assert late.error == "stopped after 0.5 s: the program takes too long"


def test_threads_that_ask_at_one_time_get_their_own_answers(frames: Database) -> None:
    given: dict[int, object] = {}

    def ask(number: int) -> None:
        given[number] = frames.execute(f"result = {number}").rows

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert given == {n: ((n,),) for n in range(3)}


def test_one_file_is_a_database_too(folder: Path) -> None:
    with lynx.connect(f"frames:///{folder / 'orders.csv'}") as database:
        assert database.execute("result = len(orders)").rows == ((2,),)


def test_a_folder_without_tables_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="holds no tables"):
        lynx.connect(f"frames:///{tmp_path}")


def test_a_file_that_went_away_is_no_fault_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    with lynx.connect(f"frames:///{tmp_path}") as database:
        before = database.fingerprint()
        (tmp_path / "a.csv").unlink()
        assert database.execute("result = 1").status is Status.UNAVAILABLE
        assert database.fingerprint() != before
    assert database.execute("result = 1").status is Status.UNAVAILABLE


def test_closing_twice_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    database = lynx.connect(f"frames:///{tmp_path}")
    database.close()
    database.close()

"""The closed loop over a database that is known by its metadata only: checked, mended, not run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest

import lynx_dspy as lynx
from lynx_dspy.config import FULL
from lynx_dspy.engines.base import Database
from lynx_dspy.engines.described import DescribedDatabase
from lynx_dspy.program import Lynx
from lynx_dspy.values import Ended, FailureClass, Status

CONFIG = FULL.with_(adapter="json", max_rounds=4, embedding_links=False)
TABLE = "`web-shop`.sales.orders"
CLEAN = f"SELECT country, COUNT(*) AS n FROM {TABLE} GROUP BY country"
UNKNOWN = f"SELECT land, COUNT(*) AS n FROM {TABLE} GROUP BY land"
UNREADABLE = f"SELECT country, COUNT(* AS n FROM {TABLE}"
FOREIGN = f"SELECT country, MEDIAN(id) AS n FROM {TABLE} GROUP BY country"


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Database]:
    """A Spider 2.0 metadata folder of BigQuery."""
    folder = tmp_path / "bigquery" / "shop" / "web-shop.sales"
    folder.mkdir(parents=True)
    record = {
        "table_name": "orders",
        "table_fullname": "web-shop.sales.orders",
        "column_names": ["id", "country", "placed_on"],
        "column_types": ["INT64", "STRING", "DATE"],
        "nested_column_names": ["id", "country", "placed_on"],
        "nested_column_types": ["INT64", "STRING", "DATE"],
        "sample_rows": [{"id": 1, "country": "Norway", "placed_on": "2024-05-03"}],
    }
    (folder / "orders.json").write_text(json.dumps(record))
    ddl = f"CREATE TABLE {TABLE} (id INT64, country STRING, placed_on DATE);"
    (folder / "DDL.csv").write_text(f'table_name,ddl\norders,"{ddl}"\n')
    with lynx.connect(f"metadata:{tmp_path / 'bigquery' / 'shop'}") as database:
        yield database


def ask(scripted: Any, database: Database, first: str, *repairs: str) -> tuple[Any, Any]:
    lm, engine = scripted(
        {
            "generator.align": [{"links": []}],
            "generator.intent": [{"intent": "count orders a country"}],
            "generator.ground": [{"grounding": "orders.country"}],
            "generator.formulate": [{"analysis": "", "code": first}],
            "critic.reflect": [{"summary": "S"}],
            "critic.diagnose": [{"suggestion": "use a column that exists"}],
            "reviser.repair": [{"analysis": "", "code": code} for code in repairs or (first,)],
        }
    )
    with dspy.context(lm=lm):
        answer = Lynx(config=CONFIG)(
            question="How many orders has each country?", database=database
        )
    return answer, engine


@pytest.mark.parametrize("broken", [UNKNOWN, UNREADABLE, FOREIGN])
def test_a_faulty_program_is_repaired_until_the_check_finds_nothing(
    scripted: Any, warehouse: Database, broken: str
) -> None:
    answer, engine = ask(scripted, warehouse, broken, CLEAN)
    assert answer.code == CLEAN
    assert answer.outcome.status is Status.UNAVAILABLE
    assert answer.ended is Ended.UNAVAILABLE
    assert [a.outcome.status for a in answer.attempts][-2:] == [Status.ERROR, Status.UNAVAILABLE]
    assert len(engine.prompts["reviser.repair"]) == 1
    assert answer.attempts[-2].outcome.error in engine.prompts["reviser.repair"][0]


def test_a_clean_program_asks_for_no_repair(scripted: Any, warehouse: Database) -> None:
    answer, engine = ask(scripted, warehouse, CLEAN)
    assert (answer.code, answer.outcome.status) == (CLEAN, Status.UNAVAILABLE)
    assert not engine.prompts["reviser.repair"]


def test_what_stays_faulty_ends_as_a_failure_with_its_reason(
    scripted: Any, warehouse: Database
) -> None:
    answer, _ = ask(scripted, warehouse, UNKNOWN)
    assert answer.outcome.status is Status.ERROR
    assert "land" in answer.outcome.error
    assert answer.attempts[-1].failure_class is FailureClass.SCHEMA
    assert answer.ended in (Ended.CYCLE, Ended.STAGNATION)


def test_a_description_does_not_make_an_engine(warehouse: Database, shop: Database) -> None:
    assert not warehouse.runs and not DescribedDatabase(warehouse, {}).runs
    assert shop.runs and DescribedDatabase(shop, {}).runs

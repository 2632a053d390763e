from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.grounding.folding import folded
from lynx_dspy.grounding.sources import read_schema
from lynx_dspy.values import Column, ForeignKey, Schema, Table

METADATA = Path(__file__).parents[2] / "../shared/data/spider2-lite/resource/databases"

DAY = (Column("day", "DATE"), Column("visits", "INTEGER"), Column("device", "STRING"))
SPACE = "shop-data.web"


def table(name: str, columns: tuple[Column, ...] = DAY, space: str = SPACE) -> Table:
    return Table(name, columns, namespace=space, row_count=10)


def schema(*tables: Table, dialect: str = "bigquery", keys: tuple[ForeignKey, ...] = ()) -> Schema:
    return Schema(dialect, tables, keys)


def test_a_table_a_day_is_a_wildcard_in_bigquery() -> None:
    days = [table(f"visits_2024010{n}") for n in range(1, 6)]
    known = folded(schema(*days, table("pages")))
    assert [t.name for t in known.schema.tables] == ["visits_*", "pages"]
    unit = known.schema.tables[0]
    assert unit.parts == ("shop-data", "web", "visits_*")
    assert unit.row_count == 50
    assert known.members("visits_*") == tuple(f"visits_2024010{n}" for n in range(1, 6))
    assert known.notes["visits_*"] == (
        "visits_* stands for 5 tables, visits_20240101 to visits_20240105: "
        "choose with _TABLE_SUFFIX BETWEEN '20240101' AND '20240105'"
    )


def test_elsewhere_the_last_member_stands_for_all() -> None:
    years = [table(f"GSOD{n}", space="NOAA.GSOD") for n in (2009, 2010, 998)]
    known = folded(schema(*years, dialect="snowflake"))
    assert [t.name for t in known.schema.tables] == ["GSOD2010"]
    assert known.notes["GSOD2010"] == (
        "GSOD2010 stands for GSOD998, GSOD2009, GSOD2010: several are read with UNION ALL"
    )


def test_the_order_of_columns_does_not_matter() -> None:
    known = folded(schema(table("a_1"), table("a_2", DAY[::-1])))
    assert len(known.schema.tables) == 1
    assert not known.groups["a_*"].partial


def test_columns_that_only_some_members_have_are_named() -> None:
    wide = (*DAY, Column("country", "STRING"))
    known = folded(schema(table("a_1"), table("a_2"), table("a_3", wide)))
    assert [c.name for c in known.schema.tables[0].columns] == [
        "day",
        "visits",
        "device",
        "country",
    ]
    assert known.notes["a_*"].endswith("not in all of them (in how many): country (1)")


def test_tables_of_other_columns_or_namespaces_stay_apart() -> None:
    other = (Column("id", "INTEGER"), Column("total", "REAL"))
    apart = schema(table("a_1"), table("a_2", other), table("a_3", space="elsewhere"))
    known = folded(apart)
    assert known.schema is apart and not known.groups


def test_what_precedes_the_first_differing_number_is_the_wildcard() -> None:
    census = [table(f"zip_2010_{n}yr") for n in (1, 5)]
    assert folded(schema(*census)).schema.tables[0].name == "zip_2010_*"
    digits = [table(f"{n}_visits") for n in (2023, 2024)]
    assert folded(schema(*digits)).schema.tables[0].name == "2024_visits"


def test_keys_lead_to_units_once() -> None:
    columns = (Column("id", "INTEGER"), Column("page_id", "INTEGER"))
    tables = (table("v_1", columns), table("v_2", columns), table("pages", columns))
    keys = tuple(ForeignKey(f"v_{n}", ("page_id",), "pages", ("id",)) for n in (1, 2))
    known = folded(schema(*tables, keys=keys))
    assert known.schema.foreign_keys == (ForeignKey("v_*", ("page_id",), "pages", ("id",)),)


@given(
    st.lists(st.from_regex(r"\A[a-c]{1,2}[0-9]{0,3}[ab]?\Z"), unique_by=str.casefold, max_size=12)
)
def test_every_table_is_in_exactly_one_unit(names: list[str]) -> None:
    for dialect in ("bigquery", "sqlite"):
        known = folded(schema(*(table(name) for name in names), dialect=dialect))
        units = [t.name for t in known.schema.tables]
        assert len(set(units)) == len(units)
        assert sorted(m for u in units for m in known.members(u)) == sorted(names)


@pytest.mark.skipif(not METADATA.exists(), reason="the shared data are not beside this repository")
def test_ga4_is_one_unit_and_noaa_a_sixth() -> None:
    ga4 = folded(read_schema(METADATA / "bigquery/ga4"))
    assert [t.name for t in ga4.schema.tables] == ["events_*"]
    assert len(ga4.groups["events_*"].members) == 92
    noaa = folded(read_schema(METADATA / "snowflake/NOAA_DATA"))
    assert len(noaa.schema.tables) <= 218 / 6

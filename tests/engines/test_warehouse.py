"""Programs for warehouses are checked and mended from the schema alone: no engine, no model."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynx_dspy.engines.mend import mend
from lynx_dspy.engines.static import check, has_errors
from lynx_dspy.values import Column, FailureClass, Finding, ForeignKey, Schema, Table

DATA = Path(__file__).parents[2] / "../shared/data/spider2-lite"
_FIELDS = (
    ("event_date", "STRING"), ("user_id", "INT64"), ("device", "STRUCT"),
    ("device.category", "STRING"), ("device.web", "STRUCT"), ("device.web.browser", "STRING"),
    ("params", "ARRAY<STRUCT>"), ("params.key", "STRING"), ("params.value", "STRUCT"),
    ("params.value.int_value", "INT64"), ("tags", "ARRAY<STRING>"),
)  # fmt: skip
_EVENTS = tuple(Column(name, kind) for name, kind in _FIELDS)


def _bigquery() -> Schema:
    days = tuple(Table(f"events_2024010{n}", _EVENTS, namespace="shop-raw.web") for n in (1, 2, 3))
    users = Table("users", (Column("id", "INT64"), Column("name", "STRING")), "", "shop-raw.crm")
    keys = (ForeignKey("events_20240101", ("user_id",), "users", ("id",)),)
    return Schema("bigquery", (*days, users), keys)


def _snowflake() -> Schema:
    gsod = Table("GSOD2020", (Column("stn", "TEXT"), Column("temp", "FLOAT")), "", "NOAA.GSOD")
    stations = Table("STATIONS", (Column("usaf", "TEXT"), Column("NAME", "TEXT")), "", "NOAA.GSOD")
    raw = Table("RAW", (Column("ID", "NUMBER"), Column("ITEMS", "VARIANT")), "", "NOAA.GSOD")
    return Schema("snowflake", (gsod, stations, raw))


def _plain(dialect: str) -> Schema:
    columns = (Column("id", "INT"), Column("total", "INT"), Column("day", "DATE"))
    orders = Table("orders", (*columns, Column("status", "TEXT")), primary_key=("id",))
    return Schema(dialect, (orders,))


E = "`shop-raw.web.events_20240101`"
RIGHT = [
    (_bigquery(), f"SELECT device.category, device.web.browser FROM {E}"),
    (_bigquery(), f"SELECT t.device.category FROM {E} AS t"),
    (_bigquery(), f"SELECT p.value.int_value, key FROM {E}, UNNEST(params) AS p"),
    (_bigquery(), f"SELECT (SELECT value.int_value FROM UNNEST(params) WHERE key = 'x') FROM {E}"),
    (_bigquery(), f"SELECT g, i FROM {E} LEFT JOIN UNNEST(tags) AS g WITH OFFSET AS i"),
    (_bigquery(), "SELECT COUNT(*) FROM `shop-raw.web.events_*` WHERE _TABLE_SUFFIX > '20240101'"),
    (_bigquery(), f"WITH a AS (SELECT device AS d FROM {E}) SELECT d.category FROM a"),
    (
        _bigquery(),
        f"DECLARE day STRING DEFAULT '1'; SELECT user_id FROM {E} WHERE event_date = day",
    ),
    (
        _bigquery(),
        f"SELECT * EXCEPT (tags) FROM {E} QUALIFY ROW_NUMBER() OVER (ORDER BY user_id) = 1",
    ),
    (_bigquery(), "SELECT d FROM UNNEST(GENERATE_DATE_ARRAY('2024-01-01', '2024-01-05')) AS d"),
    (_bigquery(), f"SELECT UPPER(event_date) AS n, COUNT(*) FROM {E} GROUP BY n"),
    (_bigquery(), f"SELECT DATE_TRUNC(PARSE_DATE('%Y%m%d', event_date), MONTH) FROM {E}"),
    (
        _snowflake(),
        'SELECT "stn", AVG("temp") AS t FROM NOAA.GSOD.GSOD2020 GROUP BY "stn" ORDER BY T',
    ),
    (
        _snowflake(),
        "SELECT f.value:k::TEXT FROM NOAA.GSOD.RAW r, LATERAL FLATTEN(input => r.items) f",
    ),
    (
        _snowflake(),
        'SELECT s.name FROM noaa.gsod.stations s JOIN noaa.gsod.raw r ON s."usaf" = r.id',
    ),
    (_snowflake(), "SELECT total AS x FROM (SELECT id AS total FROM NOAA.GSOD.RAW) WHERE x > 1"),
    (_plain("postgres"), "SELECT o.*, day + INTERVAL '1 day' FROM orders o"),
    (_plain("postgres"), "SELECT id, status, COUNT(*) FROM orders GROUP BY id"),
    (_plain("postgres"), "SELECT q.n FROM orders o CROSS JOIN LATERAL (SELECT o.total AS n) q"),
    (_plain("mysql"), "SELECT YEAR(day), COUNT(*) AS n FROM orders GROUP BY 1 HAVING n > 1"),
    (_plain("spark"), "SELECT e FROM orders LATERAL VIEW EXPLODE(SPLIT(status, ',')) v AS e"),
]


@pytest.mark.parametrize(("schema", "code"), RIGHT)
def test_right_programs_are_clean(schema: Schema, code: str) -> None:
    assert check(code, schema) == ()
    assert mend(code, schema).code == code


WRONG = [
    (_bigquery(), f"SELECT p.key FROM {E} AS e, UNNEST(e.prams) AS p", "schema", "params"),
    (_bigquery(), f"SELECT p.key FROM {E}, UNNEST(prams) AS p", "schema", "params"),
    (_bigquery(), f"SELECT p.key FROM {E} AS e, UNNEST(t9.params) AS p", "schema", "t9"),
    (_bigquery(), f"SELECT params.key FROM {E}", "schema", "is an ARRAY"),
    (_bigquery(), f"SELECT device.catgory FROM {E}", "schema", "nearest: category"),
    (_bigquery(), f"SELECT event_date.x FROM {E}", "schema", "has no field x"),
    (_bigquery(), "SELECT user_id FROM events_20240101", "schema", "lacks its namespace"),
    (_bigquery(), "SELECT 1 FROM `shop-raw.crm.events_20240101`", "schema", "no table"),
    (_bigquery(), f"SELECT UPPER(event_date) AS n FROM {E} WHERE n = 'A'", "schema", "alias n"),
    (_bigquery(), f"SELECT user_id, COUNT(*) FROM {E}", "syntax", "not in GROUP BY"),
    (_bigquery(), f"SELECT DATEDIFF(day, event_date, event_date) FROM {E}", "syntax", "DATE_DIFF"),
    (_bigquery(), f"SELECT user_id FROM {E} WHERE event_date ILIKE 'x'", "syntax", "ILIKE"),
    (
        _bigquery(),
        f"SELECT u.nme FROM {E} e JOIN `shop-raw.crm.users` u ON u.id = e.user_id",
        "schema",
        "nearest: name",
    ),
    (_snowflake(), "SELECT stn FROM NOAA.GSOD.GSOD2020", "schema", 'write "stn"'),
    (_snowflake(), 'SELECT "name" FROM NOAA.GSOD.STATIONS', "schema", "write NAME"),
    (_snowflake(), 'SELECT "stn" AS n FROM NOAA.GSOD.GSOD2020 WHERE "n" = 1', "schema", "n"),
    (_snowflake(), 'SELECT SAFE_DIVIDE("temp", 2) FROM NOAA.GSOD.GSOD2020', "syntax", "NULLIF"),
    (
        _postgres := _plain("postgres"),
        "SELECT total, COUNT(*) FROM orders GROUP BY status",
        "syntax",
        "not in GROUP BY",
    ),
    (
        _postgres,
        "SELECT id FROM orders QUALIFY ROW_NUMBER() OVER (ORDER BY id) = 1",
        "syntax",
        "QUALIFY",
    ),
    (_plain("mysql"), "SELECT DATE_TRUNC('month', day) FROM orders", "syntax", "DATE_FORMAT"),
]


@pytest.mark.parametrize(("schema", "code", "failure", "text"), WRONG)
def test_wrong_programs_are_found(schema: Schema, code: str, failure: str, text: str) -> None:
    found = check(code, schema)
    assert any(text in f.message and f.failure_class.value == failure for f in found), found


MENDED = [
    (_bigquery(), f"SELECT device.catgory FROM {E}", "device.category"),
    (
        _bigquery(),
        "SELECT user_id FROM events_20240101",
        "SELECT user_id FROM `shop-raw`.web.events_20240101",
    ),
    (_bigquery(), "SELECT usr_id FROM `shop.web.events_20240101`", "SELECT user_id FROM `shop-raw"),
    (
        _bigquery(),
        f"SELECT UPPER(event_date) AS n FROM {E} WHERE n = 'A'",
        "UPPER(event_date) = 'A'",
    ),
    (
        _bigquery(),
        f"SELECT DATEDIFF(day, event_date, NOW()) FROM {E}",
        "DATE_DIFF(CURRENT_TIMESTAMP, event_date, DAY)",
    ),
    (_bigquery(), f"```sql\nSELECT TOP 3 user_id FROM {E}\n```", "LIMIT 3"),
    (_bigquery(), f"SELECT user_id::STRING FROM {E}", "CAST(user_id AS STRING)"),
    (
        _bigquery(),
        f"SELECT e.user_id, users.name FROM {E} AS e",
        "JOIN `shop-raw`.crm.users ON e.user_id = users.id",
    ),
    (
        _snowflake(),
        "WITH a AS (SELECT stn FROM GSOD2020) SELECT a.stn FROM a",
        'WITH a AS (SELECT "stn" FROM NOAA.GSOD.GSOD2020) SELECT a."stn" FROM a',
    ),
    (
        _snowflake(),
        "SELECT DATE_SUB(CURRENT_DATE, INTERVAL 3 DAY)",
        "DATEADD(DAY, -3, CURRENT_DATE)",
    ),
    (
        _snowflake(),
        'SELECT g."tmp" FROM NOAA.GSOD.GSOD2020 AS g WHERE g."st" = 1',
        'SELECT g."temp" FROM NOAA.GSOD.GSOD2020 AS g WHERE g."stn" = 1',
    ),
    (
        _plain("postgres"),
        "SELECT IFNULL(total, 0), YEAR(day) FROM orders",
        "COALESCE(total, 0), EXTRACT(YEAR FROM day)",
    ),
    (
        _plain("postgres"),
        "SELECT id FROM orders QUALIFY ROW_NUMBER() OVER (ORDER BY id) = 1",
        "SELECT id FROM (SELECT",
    ),
    (_plain("spark"), "SELECT id, status, COUNT(*) FROM orders GROUP BY id", "GROUP BY id, status"),
]


@pytest.mark.parametrize(("schema", "code", "part"), MENDED)
def test_one_outcome_is_mended(schema: Schema, code: str, part: str) -> None:
    mended = mend(code, schema)
    assert part in mended.code
    assert mended.changes
    assert not has_errors(check(mended.code, schema))


@pytest.mark.parametrize(
    ("schema", "code"),
    [
        (_bigquery(), f"SELECT TO_CHAR(event_date, 'YYYY') FROM {E}"),
        (_bigquery(), f"SELECT params.key FROM {E}"),
        (_bigquery(), f"DECLARE n INT64; SELECT usr_id FROM {E}"),
        (_snowflake(), 'SELECT "x" FROM NOAA.GSOD.GSOD2020'),
    ],
)
def test_a_guess_is_not_made(schema: Schema, code: str) -> None:
    assert mend(code, schema).code == code


def test_a_finding_says_where() -> None:
    code = f"WITH a AS (\n  SELECT user_id\n  FROM {E}\n  WHERE devce.category = 'x'\n) SELECT 1"
    found = check(code, _bigquery())[0]
    assert (found.line, found.column, found.clause) == (4, 9, "WHERE of a")
    same = Finding(found.failure_class, found.message, found.name, found.candidates)
    assert same == found


def test_a_schema_in_lower_case_says_nothing_of_case() -> None:
    table = Table("orders", (Column("id", "INT"),), namespace="shop.raw")
    assert check("SELECT ID FROM SHOP.RAW.ORDERS", Schema("snowflake", (table,))) == ()


def test_names_that_several_namespaces_hold_are_not_guessed() -> None:
    twins = tuple(
        Table(f"{space}.T", (Column("A", "INT"),), namespace=f"D.{space}", path=("D", space, "T"))
        for space in ("X", "Y")
    )
    schema = Schema("snowflake", twins)
    assert check("SELECT a FROM d.x.t", schema) == ()
    found = check("SELECT a FROM t", schema)[0]
    assert found.candidates == ("D.X.T", "D.Y.T")
    assert mend("SELECT a FROM t", schema).changes == ()


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(RIGHT))
def test_a_column_without_a_letter_is_found(rng: random.Random, case: tuple[Schema, str]) -> None:
    """Whatever known column of a right program loses a letter, it is found, and never mended into a
    program that the check holds something against."""
    schema, code = case
    names = [c.name for t in schema.tables for c in t.columns if "." not in c.name]
    used = [n for n in names if f" {n} " in code.replace(",", " ") and len(n) > 3]
    if not used or "UNNEST(GENERATE" in code:
        return
    name = rng.choice(used)
    place = rng.randrange(1, len(name) - 1)
    broken = code.replace(f" {name}", f" {name[:place]}{name[place + 1 :]}_", 1)
    found = check(broken, schema)
    assert has_errors(found)
    assert found[0].failure_class in (FailureClass.SCHEMA, FailureClass.SYNTAX)
    mended = mend(broken, schema)
    if mended.changes:
        assert len(check(mended.code, schema)) <= len(found)


_WORDS = (
    *("SELECT", "FROM", "WHERE", "(", ")", ",", "*", "UNNEST", "params", "AS", "p", ".", "key"),
    *("`shop-raw.web.events_*`", '"stn"', ":", "LATERAL", "FLATTEN", "QUALIFY", "GROUP BY", "::"),
    *("NOAA.GSOD.GSOD2020", "COUNT", "=", "1", ";", "DATEDIFF", "DECLARE", "orders", "id"),
)


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from([_bigquery(), _snowflake(), _plain("postgres"), _plain("spark")]),
    st.lists(st.sampled_from(_WORDS), max_size=14).map(" ".join) | st.text(max_size=60),
)
def test_any_text_can_be_checked_and_mended(schema: Schema, code: str) -> None:
    assert isinstance(check(code, schema), tuple)
    assert isinstance(mend(code, schema).code, str)


@pytest.mark.skipif(not DATA.is_dir(), reason="shared data is not at hand")
def test_spider2_golds_have_no_errors() -> None:
    """Without metadata tables are unknown; all else is checked: scopes, functions, groups."""
    dialects = {"bq": "bigquery", "ga": "bigquery", "sf": "snowflake", "lo": "sqlite"}
    wrong = []
    for path in sorted((DATA / "evaluation_suite/gold/sql").glob("*.sql"))[::3]:
        found = check(path.read_text(encoding="utf-8"), Schema(dialects[path.stem[:2]], ()))
        wrong += [(path.stem, f.message) for f in found if _counts(f)]
    assert wrong == []


def _counts(finding: Finding) -> bool:
    known = not finding.message.startswith("no table ")
    return known and finding.failure_class is not FailureClass.SEMANTIC

"""Calls are rewritten one by one, only by a rule that fits, and never lose an argument."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.engines.calls import REWRITES, date_format, rewritten
from lynx_dspy.engines.functions import LACKING

OFFICIAL = (
    Path(__file__).parents[2] / "../shared/data/spider2-lite/resource/syntax/bigquery_functions"
)
_ARGUMENTS = {
    "unit": "day", "quoted": "month", "number": "INTERVAL 3 DAY", "per": "INTERVAL 3 DAY",
    "before": "2", "typed": "c AS INT", "mysql": "'%Y-%m'", "bigquery": "'%Y-%m'",
    "postgres": "'YYYY-MM'",
}  # fmt: skip


@pytest.mark.parametrize("dialect", REWRITES)
def test_rules_cure_only_what_is_lacking(dialect: str) -> None:
    assert REWRITES[dialect].keys() <= LACKING[dialect].keys()


@pytest.mark.parametrize("dialect", REWRITES)
def test_every_rule_gives_sql_of_its_dialect(dialect: str) -> None:
    for name, rules in REWRITES[dialect].items():
        for count, template in rules:
            arguments = [_argument(template, place) for place in range(count)]
            code = f"SELECT {name}({', '.join(arguments)}) FROM t"
            new, notes = rewritten(code, dialect)
            assert notes, code
            assert f"{name}(" not in new.replace(f"_{name}(", "") or name in template
            sqlglot.parse_one(new, read=dialect)


def _argument(template: str, place: int) -> str:
    forms = [form for form in _ARGUMENTS if f"{{{place}:{form}}}" in template]
    return _ARGUMENTS[forms[0]] if forms else f"c{place}"


@pytest.mark.parametrize(
    ("dialect", "call"),
    [
        ("bigquery", "DATEDIFF(a, b, c, d)"),
        ("bigquery", "DATEDIFF(col, a, b)"),
        ("bigquery", "SPLIT_PART(s, '-', n)"),
        ("bigquery", "TO_DATE(s, 'Q')"),
        ("bigquery", "fn.LEN(s)"),
        ("bigquery", "LISTAGG(s, ',') WITHIN GROUP (ORDER BY s)"),
        ("snowflake", "DATE_ADD(d, n)"),
        ("postgres", "DATEDIFF('day', a, b)"),
    ],
)
def test_a_call_that_no_rule_fits_stays(dialect: str, call: str) -> None:
    assert rewritten(f"SELECT {call} FROM t", dialect) == (f"SELECT {call} FROM t", ())


def test_calls_within_calls_and_texts_that_only_look_like_calls() -> None:
    code = "SELECT IFF(LEN(s) > 1, 'LEN(s)', s) FROM t -- LEN(s)"
    assert rewritten(code, "bigquery")[0] == (
        "SELECT IF(LENGTH(s) > 1, 'LEN(s)', s) FROM t -- LEN(s)"
    )


@given(st.sampled_from(sorted(REWRITES)), st.text(max_size=80))
def test_any_text_comes_back(dialect: str, code: str) -> None:
    assert isinstance(rewritten(code, dialect)[0], str)


def test_a_format_without_counterpart_is_refused() -> None:
    with pytest.raises(ValueError, match="no date format"):
        date_format("Q", "postgres", "bigquery")


@pytest.mark.skipif(not OFFICIAL.is_dir(), reason="shared data is not at hand")
def test_bigquery_really_lacks_what_we_say() -> None:
    listed = json.loads((OFFICIAL / "bigquery_functions.json").read_text())
    names = {name.upper() for part in listed for name in part["functions"]}
    assert len(names) > 300
    assert names & LACKING["bigquery"].keys() == set()

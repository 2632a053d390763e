"""What a model wrote leads to the one element meant, or to what it could mean."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.grounding.identifiers import full_name, shown
from lynx_dspy.grounding.resolver import Candidates, Place, resolve, split_name
from lynx_dspy.grounding.sources.naming import distinct_names
from lynx_dspy.values import Column, Schema, Table


def table(path: str, *columns: str) -> Table:
    parts = tuple(path.split("."))
    made = tuple(Column(c, "STRING") for c in columns)
    return Table(parts[-1], made, namespace=".".join(parts[:-1]), path=parts)


GA4 = Schema(
    "bigquery",
    distinct_names(
        [
            table("web-data.ga4.events", "user_id", "params", "params.value", "params.value.int"),
            table("web-data.old.events", "user_id"),
            table("web-data.ga4.users", "id", "e-mail"),
        ]
    ),
)
MIXED = Schema("snowflake", (table("DB.S.T", "Sample", "SAMPLE", "only"),))


def test_a_path_of_any_length_and_quoting_leads_to_its_table() -> None:
    events = GA4.tables[0]
    for written in (
        "`web-data.ga4.events`",
        "`web-data`.ga4.events",
        "ga4.events",
        "GA4.Events",
        '"ga4"."events"',
    ):
        assert resolve(GA4, written) is events, written
    assert resolve(GA4, "users") is GA4.tables[2]


def test_homonyms_are_candidates_as_a_program_should_write_them() -> None:
    assert resolve(GA4, "events") == Candidates(
        ("`web-data`.ga4.events", "`web-data`.old.events"), exact=True
    )


def test_columns_are_found_by_table_by_themselves_and_by_the_end_of_a_path() -> None:
    found = resolve(GA4, "ga4.events.params.value.int")
    assert isinstance(found, Place)
    assert found.column.name == "params.value.int"
    assert resolve(GA4, "value.int") == found
    assert resolve(GA4, "PARAMS.VALUE.INT") == found
    mail = resolve(GA4, "users.`e-mail`")
    assert isinstance(mail, Place)
    assert mail.table.name == "users"
    shared = resolve(GA4, "user_id")
    assert isinstance(shared, Candidates)
    assert (len(shared.names), shared.exact) == (2, True)


def test_exact_spelling_wins_over_another_case() -> None:
    exact = resolve(MIXED, "T.Sample")
    assert isinstance(exact, Place)
    assert exact.column.name == "Sample"
    unclear = resolve(MIXED, "T.sample")
    assert isinstance(unclear, Candidates)
    assert unclear.names == ('DB.S.T."Sample"', 'DB.S.T."SAMPLE"')


def test_what_is_misspelt_has_near_candidates() -> None:
    for written, near in (("user", "`web-data`.ga4.users"), ("ga4.users.mail", "e-mail`")):
        found = resolve(GA4, written)
        assert isinstance(found, Candidates)
        assert found.names
        assert found.names[0].endswith(near)
        assert not found.exact


def test_within_a_table_only_its_columns_are_meant() -> None:
    users = GA4.tables[2]
    found = resolve(GA4, "id", table=users)
    assert isinstance(found, Place)
    assert found.table is users
    assert isinstance(resolve(GA4, "user_id", table=users), Candidates)


def test_nothing_means_nothing() -> None:
    for written in ("", " . ", '""', "…"):
        assert isinstance(resolve(GA4, written), Candidates)


names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)


@given(names.filter(lambda n: n.strip() == n), st.sampled_from(["sqlite", "postgres", "snowflake"]))
def test_every_name_that_is_shown_leads_back(name: str, dialect: str) -> None:
    schema = Schema(dialect, (Table(name, (Column(name, "T"),), path=("s", name)),))
    own = schema.tables[0]
    assert resolve(schema, full_name(own, dialect)) is own
    place = resolve(schema, f"{full_name(own, dialect)}.{shown(name, dialect)}")
    assert isinstance(place, Place)


@given(st.text(max_size=40))
def test_any_text_can_be_split(text: str) -> None:
    assert all(part.strip() for part in split_name(text))

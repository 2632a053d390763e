from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from lynx_dspy.engines import connect
from lynx_dspy.engines.base import Database
from lynx_dspy.grounding.linking import link, open_concepts, tables_for
from lynx_dspy.grounding.schema import abstract, with_descriptions
from lynx_dspy.values import Column, ForeignKey, Link, Schema, Table

DATA = Path(__file__).parents[2] / "../shared/data"

SCHOOL = """
CREATE TABLE students (student_id INTEGER PRIMARY KEY, full_name TEXT, birth_date TEXT, city TEXT);
INSERT INTO students VALUES (11, 'Ann Lee', '2001-02-03', 'Málaga');
INSERT INTO students VALUES (12, 'Bo Ray', '2000-01-01', 'Oslo');
CREATE TABLE courses (course_id INTEGER PRIMARY KEY, title TEXT, creditPoints INTEGER);
INSERT INTO courses VALUES (21, 'Linear Algebra', 6), (22, 'Biology', 3);
CREATE TABLE enrolments (student_id INTEGER, course_id INTEGER, grade TEXT);
INSERT INTO enrolments VALUES (11, 21, 'A'), (12, 22, 'B');
CREATE TABLE buildings (building_id INTEGER PRIMARY KEY, floors INTEGER);
INSERT INTO buildings VALUES (31, 2), (32, 4);
CREATE TABLE menus (dish TEXT, price REAL);
INSERT INTO menus VALUES ('soup', 3.5), ('pie', 4.5);
"""


@pytest.fixture
def school(make: Callable[[str], Database]) -> Database:
    return make(SCHOOL)


def ask(database: Database, question: str, evidence: str = "") -> list[Link]:
    return link(question, evidence, abstract(database), database)


def places(links: list[Link]) -> set[tuple[str, str]]:
    return {(one.table, one.column) for one in links}


def test_names_are_linked_across_plural_and_camel_case(school: Database) -> None:
    links = ask(school, "How many credit points has each course?")
    assert {("courses", ""), ("courses", "creditPoints")} <= places(links)
    assert links[0].evidence == "lexical"
    assert {one.table for one in links} == {"courses"} | {"enrolments"}


def test_a_stored_value_is_linked_with_its_spelling(school: Database) -> None:
    for question in ("Who lives in MALAGA?", "students of 'malaga'", "people from malaga"):
        (found,) = [one for one in ask(school, question) if one.value]
        assert (found.table, found.column, found.value) == ("students", "city", "Málaga")
        assert found.evidence == "value"


def test_values_of_several_words_and_parts_of_them(school: Database) -> None:
    assert ("courses", "title") in places(ask(school, "grades in linear algebra"))
    assert ("courses", "title") in places(ask(school, "grades in Algebra"))


def test_notes_are_linked_too(school: Database) -> None:
    links = ask(school, "Who is a freshman?", "A freshman has a birth_date after 2001.")
    assert ("students", "birth_date") in places(links)
    assert {one.evidence for one in links if one.column == "birth_date"} == {"documentation"}


def test_descriptions_are_linked(school: Database) -> None:
    schema = with_descriptions(abstract(school), {"menus": {"dish": "what the canteen serves"}})
    assert ("menus", "dish") in places(link("What does the canteen serve?", "", schema))


def test_meaning_is_linked_with_an_embedder(topics: Any) -> None:
    columns = (Column("earnings", "REAL"), Column("rain", "REAL"))
    schema = Schema("sqlite", (Table("ledger", columns),))
    assert link("total profit", "", schema) == []
    found = link("total profit", "", schema, embedder=topics)
    assert ("ledger", "earnings", "embedding") in {(x.table, x.column, x.evidence) for x in found}
    assert "rain" not in {x.column for x in found}


def test_links_are_sorted_distinct_and_bounded(school: Database) -> None:
    links = ask(school, "student names, course titles and grades in Oslo", "grade of a course")
    keys = [(x.table, x.column, x.value) for x in links]
    assert len(keys) == len(set(keys))
    assert [x.confidence for x in links] == sorted((x.confidence for x in links), reverse=True)
    assert all(0.3 <= x.confidence <= 1 for x in links)


def test_tables_on_the_way_are_kept_and_others_are_not(school: Database) -> None:
    links = ask(school, "Which students take the course Biology?")
    assert tables_for(links, abstract(school)) == ("students", "courses", "enrolments")


def test_without_links_all_tables_are_kept(school: Database) -> None:
    assert len(tables_for([], abstract(school))) == 5


def test_a_chain_longer_than_three_joins_is_not_closed() -> None:
    tables = tuple(Table(f"t{i}", (Column("id", "INT"),)) for i in range(7))
    keys = tuple(ForeignKey(f"t{i}", ("id",), f"t{i + 1}", ("id",)) for i in range(6))
    schema = Schema("sqlite", tables, keys)
    assert tables_for([Link("a", "t0"), Link("b", "t3")], schema) == ("t0", "t1", "t2", "t3")
    assert tables_for([Link("a", "t0"), Link("b", "t6")], schema) == ("t0", "t6")


def test_open_concepts_are_what_no_link_explains(school: Database) -> None:
    question = "Which students are at serious risk of failing the course?"
    assert open_concepts(question, ask(school, question)) == ("serious risk", "failing")


@given(question=st.text(max_size=80), evidence=st.text(max_size=80))
def test_any_text_is_only_data(question: str, evidence: str) -> None:
    table = Table("orders", (Column("id", "INT"), Column("état", "TEXT", "the state")))
    schema = Schema("sqlite", (table, Table("🙂", (Column("%", ""),))))
    links = link(question, evidence, schema)
    assert all(schema.table(x.table) for x in links)
    assert tables_for(links, schema)
    assert isinstance(open_concepts(question, links), tuple)


def tables_of(sql: str, schema: Schema) -> set[str]:
    """Names of the schema's tables that a gold query reads."""
    read = (
        schema.table(t.name) for t in sqlglot.parse_one(sql, dialect="sqlite").find_all(exp.Table)
    )
    return {table.name for table in read if table}


@pytest.mark.skipif(not DATA.exists(), reason="the shared data are not beside this repository")
def test_spider_tables_are_kept_with_far_fewer_shown() -> None:
    questions = json.loads((DATA / "spider/dev.json").read_text())[::3]
    complete = kept = 0.0
    started = time.process_time()
    for row in questions:
        name = row["db_id"]
        with connect(DATA / f"spider/database/{name}/{name}.sqlite") as database:
            schema = abstract(database)
            shown = tables_for(link(row["question"], "", schema, database), schema)
            complete += tables_of(row["query"], schema) <= set(shown)
            kept += len(shown) / len(schema.tables)
    assert complete / len(questions) >= 0.97
    assert kept / len(questions) <= 0.8
    assert (time.process_time() - started) / len(questions) < 0.1


@pytest.mark.skipif(not DATA.exists(), reason="the shared data are not beside this repository")
def test_held_out_sql_eval_tables_are_kept(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (DATA / "sql_eval/val.jsonl").read_text().splitlines()]
    complete = kept = 0.0
    for name in {row["db"] for row in rows}:
        path = tmp_path / f"{name}.sqlite"
        connection = sqlite3.connect(path)
        connection.executescript((DATA / f"sql_eval/databases/{name}.sql").read_text())
        connection.close()
        with connect(path) as database:
            schema = abstract(database)
            for row in (r for r in rows if r["db"] == name):
                links = link(row["question"], row["knowledge"], schema, database)
                shown = tables_for(links, schema)
                complete += tables_of(row["gold"][0], schema) <= set(shown)
                kept += len(shown) / len(schema.tables)
    assert complete / len(rows) >= 0.97
    assert kept / len(rows) <= 0.75

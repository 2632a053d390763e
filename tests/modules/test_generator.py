from __future__ import annotations

from pathlib import Path
from typing import Any

import dspy
import pytest

import lynx_dspy as lynx
from lynx_dspy import config
from lynx_dspy.config import LynxConfig
from lynx_dspy.engines.base import Database
from lynx_dspy.engines.metadata import MetadataDatabase
from lynx_dspy.grounding.embedding import default_embedder
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.lm.adapter import adapter_for
from lynx_dspy.modules.generator import Generator, read_links, structure, value_notes
from lynx_dspy.tokens import estimate
from lynx_dspy.values import Column, Link, Schema, Table

SCHEMA = Schema(
    "sqlite",
    (
        Table("customers", (Column("id", "INTEGER"), Column("group", "TEXT"))),
        Table("orders", (Column("id", "INTEGER"), Column("customer_id", "INTEGER"))),
    ),
)


def test_links_of_the_model_are_resolved_against_the_schema() -> None:
    lines = [
        "buyer -> customers",
        "buyer group -> Customers.GROUP = 'gold'",
        'quoted -> "customers"."group"',
        "nothing -> suppliers.id",
        "no column -> customers.colour",
        "no arrow",
    ]
    found = read_links(lines, SCHEMA)
    assert [(one.table, one.column) for one in found] == [
        ("customers", ""),
        ("customers", "group"),
        ("customers", "group"),
    ]
    assert {one.evidence for one in found} == {"model"}


def test_stored_values_are_written_as_conditions_of_the_dialect() -> None:
    links = [
        Link("gold", "customers", "group", "Gold's", "value", 1.0),
        Link("maybe", "customers", "group", "Maybe not", "value", 0.4),
        Link("customers", "customers"),
    ]
    assert value_notes(links, "sqlite") == "-- customers.\"group\" = 'Gold''s'"


def test_a_schema_that_fits_is_the_same_for_every_question() -> None:
    with config.using(LynxConfig(schema_tokens=400)):
        plain = structure(SCHEMA, ())
        linked = structure(SCHEMA, [Link("orders", "orders")])
    assert plain.text == linked.text


def test_a_schema_that_does_not_fit_shows_what_the_question_links_to() -> None:
    tables = tuple(
        Table(f"table_{i}", tuple(Column(f"column_{i}_{j}", "TEXT") for j in range(9)))
        for i in range(40)
    )
    large = Schema("sqlite", tables)
    with config.using(LynxConfig(schema_tokens=120)):
        text = structure(large, [Link("x", "table_33", "column_33_4")])
    assert "column_33_4" in text.text
    assert estimate(text.text) <= 120


@pytest.mark.parametrize(("above", "asked"), [(0, True), (10_000, False)])
def test_distilling_is_asked_only_where_it_saves(
    scripted: Any, shop: Database, above: int, asked: bool
) -> None:
    lm, engine = scripted(
        {
            "generator.unknown_terms": [{"terms": []}],
            "generator.align": [{"links": []}],
            "generator.distill": [{"semantic": "SHORT", "structural": "orders.total_cents"}],
            "generator.intent": [{"intent": "I"}],
            "generator.ground": [{"grounding": "G"}],
            "generator.formulate": [{"analysis": "", "code": "SELECT 1"}],
        }
    )
    documents = lynx.Documents.from_texts(
        {"money.md": "# Money\n\nRevenue is the sum of totals, in cents."}, embedder=None
    )
    with (
        config.using(LynxConfig(distill_above_tokens=above)),
        dspy.context(lm=lm, adapter=adapter_for(lm, "json")),
    ):
        draft = Generator()("What is the revenue?", shop, documents, "cents are 1/100")
    assert ("generator.distill" in engine.prompts) == asked
    assert draft.knowledge.semantic.startswith("cents are 1/100")
    assert ("SHORT" in draft.knowledge.semantic) == asked
    assert ("in cents" in draft.knowledge.semantic) != asked


def test_terms_that_are_looked_up_bring_their_passages(scripted: Any, shop: Database) -> None:
    lm, engine = scripted(
        {
            "generator.unknown_terms": [{"terms": ["quorbex"]}],
            "generator.align": [{"links": []}],
            "generator.intent": [{"intent": "I"}],
            "generator.ground": [{"grounding": "G"}],
            "generator.formulate": [{"analysis": "", "code": "SELECT 1"}],
        }
    )
    texts = {f"page{i}.md": f"# Customers {i}\n\nCustomers buy things {i}." for i in range(8)}
    texts["glossary.md"] = "# Terms\n\nA quorbex is a lapsed buyer."
    settings = LynxConfig(top_k=1, distill_above_tokens=10_000, jit_below=1.0)
    with (
        config.using(settings),
        dspy.context(lm=lm, adapter=adapter_for(lm, "json")),
    ):
        documents = lynx.Documents.from_texts(texts, embedder=None)
        draft = Generator()("How many customers buy things?", shop, documents, "")
    assert "lapsed buyer" not in engine.prompts["generator.unknown_terms"][0]
    assert "lapsed buyer" in draft.knowledge.semantic


def test_no_share_exceeds_its_budget(shop: Database) -> None:
    schema = abstract(shop)
    for budget in (40, 80, 200):
        with config.using(LynxConfig(schema_tokens=budget)):
            assert estimate(structure(schema, ()).text) <= budget


@pytest.mark.skipif(default_embedder() is None, reason="needs `lynx model pull minilm`")
def test_embedding_links_are_found_where_they_are_asked_for(scripted: Any, shop: Database) -> None:
    replies = {
        "generator.align": [{"links": []}],
        "generator.intent": [{"intent": "I"}],
        "generator.ground": [{"grounding": "G"}],
        "generator.formulate": [{"analysis": "", "code": "SELECT 1"}],
    }
    evidence = {}
    for asked in (False, True):
        lm, _ = scripted(replies)
        with (
            config.using(LynxConfig(embedding_links=asked)),
            dspy.context(lm=lm, adapter=adapter_for(lm, "json")),
        ):
            draft = Generator()("Which town does each purchaser live in?", shop, None, "")
        evidence[asked] = {one.evidence for one in draft.knowledge.links}
    assert "embedding" not in evidence[False]
    assert "embedding" in evidence[True]


METADATA = Path(__file__).parents[2] / "../shared/data/spider2-lite/resource/databases"
FOLDERS = (
    "bigquery/ga4",
    "snowflake/NOAA_DATA",
    "snowflake/_1000_GENOMES",
    "sqlite/f1",
)
INSTRUCTIONS = 350
"""Tokens of a stage's instructions and the adapter's words, at most."""


@pytest.mark.skipif(not METADATA.exists(), reason="the shared data are not beside this repository")
@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("budget", [200, 1_500])
def test_no_prompt_exceeds_its_budget_on_any_warehouse(
    scripted: Any, folder: str, budget: int
) -> None:
    lm, engine = scripted(
        {
            "generator.align": [{"links": []}],
            "generator.intent": [{"intent": "count the rows"}],
            "generator.ground": [{"grounding": "the table and its date"}],
            "generator.formulate": [{"analysis": "", "code": "SELECT 1"}],
        }
    )
    settings = LynxConfig(schema_tokens=budget, embedding_links=False)
    question = "How many page views and storms of zorgic stations were there in January 2021?"
    with (
        MetadataDatabase(str(METADATA / folder)) as database,
        config.using(settings),
        dspy.context(lm=lm, adapter=adapter_for(lm)),
    ):
        structural = Generator()(question, database, None, "").knowledge.structural
    assert "CREATE TABLE" in structural and estimate(structural) <= budget
    assert {"generator.align", "generator.ground"} <= engine.prompts.keys()
    room = INSTRUCTIONS + settings.syntax_tokens + estimate(question) * 2
    for stage, prompts in engine.prompts.items():
        assert max(map(estimate, prompts)) <= budget + room, stage
    (ground,) = engine.prompts["generator.ground"]
    assert structural in ground

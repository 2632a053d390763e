from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lynx_dspy.datasets import bird
from lynx_dspy.engines.base import Database
from lynx_dspy.grounding.described_passages import described_passages, with_descriptions_of
from lynx_dspy.grounding.documents import Documents
from lynx_dspy.grounding.schema import with_descriptions
from lynx_dspy.values import Column, Schema, Table

BIRD = Path(__file__).parents[2] / "../shared/data/bird_mini_dev"

SCHEMA = Schema(
    "sqlite",
    (
        Table(
            "client",
            (
                Column("income", "REAL", "Earnings of the buyer in euros"),
                Column("segment", "TEXT", "Segment."),
                Column("note", "TEXT", "# not a heading"),
                Column("id", "INTEGER"),
            ),
            "Everyone with an account.",
        ),
    ),
)


def test_each_description_is_a_passage_and_repeated_names_are_none() -> None:
    assert [(p.source, p.heading, p.text) for p in described_passages(SCHEMA)] == [
        ("client", "client", "Everyone with an account."),
        ("client.income", "client > income", "Earnings of the buyer in euros"),
        ("client.note", "client > note", "# not a heading"),
    ]


def test_documents_and_descriptions_are_searched_together_and_embedded_once(topics: Any) -> None:
    documents = Documents.from_texts({"sky.md": "Rain."}, embedder=topics)
    both = with_descriptions_of(SCHEMA, documents)
    assert both.retrieve("profit", 1)[0].source == "client.income"
    assert both.retrieve("weather", 1)[0].source == "sky.md"
    topics.texts.clear()
    again = with_descriptions_of(replace(SCHEMA), documents)
    assert again is both
    again.retrieve("profit", 1)
    assert topics.texts == ["profit"]


def test_other_documents_and_other_schemas_are_other_collections(topics: Any) -> None:
    ours, theirs = (Documents.from_texts([t], embedder=topics) for t in ("One.", "Two."))
    assert len(with_descriptions_of(SCHEMA, ours)) == len(with_descriptions_of(SCHEMA, theirs)) == 4
    assert with_descriptions_of(SCHEMA, ours) is not with_descriptions_of(SCHEMA, theirs)
    assert len(with_descriptions_of(replace(SCHEMA, tables=()), ours)) == 1


def test_comments_in_a_database_are_documents(make: Callable[[str], Database]) -> None:
    database = make("CREATE TABLE t (a INTEGER -- days since the last order\n)")
    found = with_descriptions_of(database.introspect()).retrieve("last order")
    assert [p.text for p in found] == ["days since the last order"]


@pytest.mark.skipif(not BIRD.is_dir(), reason="BIRD Mini-Dev is not at hand")
def test_bird_descriptions_are_documents() -> None:
    texts = bird.describe(BIRD, "superhero")
    tables = tuple(
        Table(name, tuple(Column(column, "TEXT") for column in columns))
        for name, columns in texts.items()
    )
    schema = with_descriptions(Schema("sqlite", tables), texts)
    found = Documents(described_passages(schema), embedder=None).retrieve("alignment of the hero")
    assert "alignment" in found[0].source

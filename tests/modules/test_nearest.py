"""Picked demos: the nearest, of the question's database first, never the question itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lynx_dspy as lynx
from lynx_dspy.engines.base import Database
from lynx_dspy.errors import ArtifactError
from lynx_dspy.modules import nearest
from lynx_dspy.modules.nearest import NearestDemos, Shot, answering

SHOTS = tuple(
    Shot({"grounding": f"{db} tables", "question": question, "code": f"SELECT {n}"}, question, db)
    for n, (question, db) in enumerate(
        [
            ("How many customers live in Oslo?", "shop"),
            ("How many customers live in Bergen?", "shop"),
            ("Which orders are unpaid?", "shop"),
            ("How many customers live in Rome?", "bank"),
        ]
    )
)


def picked(demos: NearestDemos, question: str, database: str = "shop") -> list[str]:
    with answering(question, database):
        return [fields["question"] for fields in demos.pick()]


def test_the_nearest_stands_last() -> None:
    demos = NearestDemos(SHOTS, k=2)
    assert picked(demos, "How many customers live in Trondheim? Oslo people") == [
        "How many customers live in Bergen?",
        "How many customers live in Oslo?",
    ]


def test_the_question_itself_is_never_handed_out() -> None:
    for question in (s.question for s in SHOTS):
        shouted = f"  {question.upper().rstrip('?')} "
        assert question not in picked(NearestDemos(SHOTS, k=9), shouted, "bank")


def test_demos_of_the_same_database_come_first() -> None:
    near = "How many customers live in Rome or Milan?"
    assert picked(NearestDemos(SHOTS, k=1), near) != ["How many customers live in Rome?"]
    free = NearestDemos(SHOTS, k=1, same_database_first=False)
    assert picked(free, near) == ["How many customers live in Rome?"]


def test_demos_of_the_same_database_do_not_repeat_its_schema() -> None:
    demos = NearestDemos(SHOTS, k=4, shared=("grounding",))
    with answering("Who lives in Rome?", "shop"):
        shown = {f["question"]: f.get("grounding") for f in demos.pick()}
    assert set(shown.values()) == {None, "bank tables"}


@given(st.integers(0, 200), st.integers(0, 6))
def test_number_and_tokens_are_kept(tokens: int, k: int) -> None:
    with answering("How many customers?", "shop"):
        found = NearestDemos(SHOTS, k=k, tokens=tokens).pick()
    assert len(found) <= k
    assert sum(Shot(fields, "", "").tokens for fields in found) <= tokens


def test_without_a_question_the_first_ones_are_picked() -> None:
    assert picked(NearestDemos(SHOTS, k=1, embedder="all-MiniLM-L6-v2"), "", "") == [
        SHOTS[0].question
    ]


class Lengths:
    """Questions of one length are one meaning."""

    name = "lengths"

    def encode(self, texts: Sequence[str]) -> Any:
        return np.array([[1.0, 0.0] if len(t) < 25 else [0.0, 1.0] for t in texts], np.float32)


def test_an_embedder_decides_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"lengths": Lengths()}
    monkeypatch.setattr(nearest, "embedder_of", found.get)
    demos = NearestDemos(SHOTS, k=1, embedder="lengths")
    assert picked(demos, "customers live") == ["Which orders are unpaid?"]
    elsewhere = NearestDemos(SHOTS, k=1, embedder="not here")
    assert picked(elsewhere, "customers in Bergen") == ["How many customers live in Bergen?"]


def test_a_program_keeps_its_demos_in_plain_json() -> None:
    program = lynx.Lynx()
    assert program.artifact_files() == {}
    program.generator.formulate.nearest = NearestDemos(SHOTS, k=3, shared=("grounding",))
    files = json.loads(json.dumps(program.artifact_files()))
    again = lynx.Lynx()
    again.restore_files(files)
    assert again.generator.formulate.nearest == program.generator.formulate.nearest
    assert program.deepcopy().generator.formulate.nearest is program.generator.formulate.nearest
    assert lynx.ablate(["demos"], again).artifact_files() == {}


@pytest.mark.parametrize(
    "bad",
    [
        {"generator.nothing": {}},
        {"generator.formulate": {"shots": 3}},
        {"generator.formulate": {"shots": [], "shared": [], "more": 1}},
    ],
)
def test_files_of_another_shape_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ArtifactError, match=r"demos\.json"):
        lynx.Lynx().restore_files({nearest.FILE: bad})


def test_schema_first_then_demos_then_the_question(scripted: Any, shop: Database) -> None:
    lm, engine = scripted({"generator.formulate": ["```sql\nSELECT 1\n```"]})
    config = lynx.LynxConfig(
        stages=frozenset({"generator.formulate"}),
        omitted_outputs=frozenset({"analysis"}),
        adapter="fenced",
        max_rounds=0,
    )
    program = lynx.Lynx(config=config)
    shots = (Shot({"question": "How many?", "code": "SELECT COUNT(*)"}, "How many?", "shop"),)
    program.generator.formulate.nearest = NearestDemos(shots, shared=("dialect", "grounding"))
    with lynx_context(lm):
        program(question="How many customers are there?", database=shop)
    [prompt] = engine.prompts["generator.formulate"]
    places = [
        prompt.index(text)
        for text in ("Dialect: sqlite", "CREATE TABLE", "Question: How many?\n", "SELECT COUNT(*)",
                     "Question: How many customers are there?")
    ]  # fmt: skip
    assert places == sorted(places)
    assert prompt.count("CREATE TABLE") == 2, "both tables, once"


def lynx_context(lm: Any) -> Any:
    import dspy

    return dspy.context(lm=lm)

"""Each name of `--without` changes the prompts or the calls."""

from __future__ import annotations

from typing import Any

import dspy
import pytest

import lynx_dspy as lynx
from lynx_dspy.ablations import ABLATIONS, ablate
from lynx_dspy.config import LynxConfig
from lynx_dspy.engines.base import Database
from lynx_dspy.errors import UnknownName
from lynx_dspy.program import Lynx

PAGE = "# Buyers\n\nA quorbex is a customer with at least one order.\n"
REPLIES: dict[str, list[Any]] = {
    "generator.unknown_terms": [{"terms": ["quorbex"]}],
    "generator.align": [{"links": ["quorbex -> customers.name"]}],
    "generator.distill": [{"semantic": "DISTILLED", "structural": "customers.name"}],
    "generator.intent": [{"intent": "INTENT"}],
    "generator.ground": [{"grounding": "GROUNDING"}],
    "generator.formulate": [{"analysis": "", "code": "SELECT frobnicate FROM customers"}],
    "critic.reflect": [{"summary": "SUMMARY"}],
    "critic.diagnose": [{"suggestion": "SUGGESTION"}],
    "reviser.repair": [
        {"analysis": "", "code": "SELECT grommet FROM orders"},
        {"analysis": "", "code": "SELECT widget FROM orders"},
        {"analysis": "", "code": "SELECT name FROM customers"},
    ],
    "verifier.explain": [{"explanation": "EXPLANATION"}],
    "verifier.compare": [{"consistent": True, "mismatch": ""}],
}


def run(
    scripted: Any, shop: Database, *without: str, candidates: int = 1
) -> tuple[Any, dict[str, list[str]]]:
    lm, engine = scripted(REPLIES)
    config = LynxConfig(adapter="json", distill_above_tokens=0, max_rounds=4, candidates=candidates)
    program = ablate(without, Lynx(config=config))
    documents = lynx.Documents.from_texts({"buyers.md": PAGE})
    with dspy.context(lm=lm):
        answer = program(
            question="How many quorbex did we see?",
            database=shop,
            documents=documents,
            evidence="EVIDENCE",
        )
    return answer, dict(engine.prompts)


def everything(prompts: dict[str, list[str]]) -> str:
    return "\n".join(text for texts in prompts.values() for text in texts)


def test_full_asks_every_stage_that_has_work(scripted: Any, shop: Database) -> None:
    answer, prompts = run(scripted, shop)
    assert set(prompts) >= set(REPLIES) - {"critic.reflect"}
    assert answer.outcome.ran


def test_without_ssd_saa(scripted: Any, shop: Database) -> None:
    _, prompts = run(scripted, shop, "ssd-saa")
    assert [s for s in prompts if s.startswith("generator.")] == ["generator.formulate"]
    assert "customer_id" in prompts["generator.formulate"][0]


def test_without_semantics(scripted: Any, shop: Database) -> None:
    _, prompts = run(scripted, shop, "semantics")
    assert "EVIDENCE" not in everything(prompts)
    assert "at least one order" not in everything(prompts)


def test_without_staged_reasoning(scripted: Any, shop: Database) -> None:
    _, prompts = run(scripted, shop, "staged-reasoning")
    assert "generator.intent" not in prompts
    assert "generator.ground" not in prompts
    assert "customer_id" in prompts["generator.formulate"][0]


def test_without_delta_memory(scripted: Any, shop: Database) -> None:
    _, prompts = run(scripted, shop, "delta-memory")
    assert not [s for s in prompts if s.startswith("critic.")]
    assert prompts["reviser.repair"][-1].count("-- ") >= 2


def test_without_revision(scripted: Any, shop: Database) -> None:
    answer, prompts = run(scripted, shop, "revision")
    assert "reviser.repair" not in prompts
    assert answer.code == "SELECT frobnicate FROM customers"


def test_without_verification(scripted: Any, shop: Database) -> None:
    answer, prompts = run(scripted, shop, "verification")
    assert not [s for s in prompts if s.startswith("verifier.")]
    assert not answer.verified


def test_without_jit(scripted: Any, shop: Database) -> None:
    _, prompts = run(scripted, shop, "jit")
    assert "generator.unknown_terms" not in prompts


def test_without_static_check(scripted: Any, shop: Database) -> None:
    answer, _ = run(scripted, shop, "static-check")
    assert not any(a.findings for a in answer.attempts if not a.outcome.ran)
    assert "static" not in {a.source for a in answer.attempts}
    assert answer.attempts[0].outcome.error == "no such column: frobnicate"


def test_without_candidates(scripted: Any, shop: Database) -> None:
    _, several = run(scripted, shop, candidates=3)
    _, one = run(scripted, shop, "candidates", candidates=3)
    assert len(several["generator.formulate"]) == 3
    assert len(one["generator.formulate"]) == 1


def test_without_demos() -> None:
    program = Lynx()
    program.generator.formulate.demos = [dspy.Example(question="q", code="SELECT 1")]
    ablate(["demos"], program)
    assert program.generator.formulate.demos == []


def test_every_ablation_has_a_test() -> None:
    names = {n.removeprefix("test_without_").replace("_", "-") for n in globals()}
    assert set(ABLATIONS) <= names


def test_all_at_once_still_answers(scripted: Any, shop: Database) -> None:
    answer, prompts = run(scripted, shop, *ABLATIONS)
    assert list(prompts) == ["generator.formulate"]
    assert answer.attempts


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(UnknownName, match=r"delta-memory.*static-check"):
        ablate(["delta_memory"])

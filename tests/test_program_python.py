"""The closed loop over Python programs: scripted replies, real DataFrames, the real sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dspy
import pytest

import lynx_dspy as lynx
from lynx_dspy.ablations import ABLATIONS, ablate
from lynx_dspy.config import EMBEDDED, FULL, STAGES, LynxConfig
from lynx_dspy.engines.base import Database
from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.optimize.plainjson import digest_of
from lynx_dspy.optimize.prompts import prompts_hash, rendered
from lynx_dspy.optimize.states import module_graph
from lynx_dspy.program import Lynx
from lynx_dspy.values import FailureClass, Limits, Outcome, Row, Schema, Status

JSON = LynxConfig(adapter="json")
GOOD = (
    "sold = orders.merge(customers, on='customer_id')\n"
    "result = sold.groupby('city')['total'].sum().reset_index()"
)


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "customers.csv").write_text("customer_id,name,city\n1,Ada,Oslo\n2,Bo,Bergen\n")
    (folder / "orders.csv").write_text(
        "order_id,customer_id,total,placed_on\n1,1,5.5,2024-01-05\n2,1,7,2024-02-05\n"
        "3,2,9,2024-02-07\n"
    )
    with lynx.connect(f"frames:///{folder}") as database:
        yield database


def replies(**changed: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {
        "generator.unknown_terms": [{"terms": []}],
        "generator.align": [{"links": []}],
        "generator.distill": [{"semantic": "", "structural": ""}],
        "generator.intent": [{"intent": "INTENT totals by city"}],
        "generator.ground": [{"grounding": "GROUNDING orders.total, customers.city"}],
        "generator.formulate": [{"analysis": "", "code": GOOD}],
        "critic.reflect": [{"summary": ""}],
        "critic.diagnose": [{"suggestion": "use the join's own column"}],
        "reviser.repair": [{"analysis": "", "code": GOOD}],
        "verifier.explain": [{"explanation": "EXPLANATION sums by city"}],
        "verifier.compare": [{"items": [], "consistent": True, "mismatch": ""}],
    }
    for name, script in changed.items():
        found[next(key for key in found if key.endswith(f".{name}"))] = script
    return found


def ask(lm: dspy.LM, database: Database, program: Lynx | None = None, **inputs: Any) -> Any:
    program = program or Lynx(language="python", config=JSON)
    with dspy.context(lm=lm):
        return program(question="What is the total by city?", database=database, **inputs)


def test_a_right_program_is_run_and_verified(scripted: Any, frames: Database) -> None:
    lm, engine = scripted(replies())
    answer = ask(lm, frames)
    assert answer.outcome.rows == (("Bergen", 9.0), ("Oslo", 12.5))
    assert answer.verified and answer.language == "python"
    (formulate,) = engine.prompts["generator.formulate"]
    assert "DataFrame of its own name" in formulate and "SQL" not in formulate
    (explain,) = engine.prompts["verifier.explain"]
    assert "What is the total by city?" not in explain
    assert "CREATE TABLE orders" in explain


def test_a_failing_program_goes_through_critic_and_repair(scripted: Any, frames: Database) -> None:
    first = "sold = orders.merge(customers, on='customer_id')\nresult = sold.total / sold.city"
    second = "result = orders['no_such_thing_at_all']"
    lm, engine = scripted(
        replies(
            formulate=[{"analysis": "", "code": first}],
            repair=[{"analysis": "", "code": second}, {"analysis": "", "code": GOOD}],
        )
    )
    answer = ask(lm, frames)
    assert answer.outcome.rows == (("Bergen", 9.0), ("Oslo", 12.5))
    failures = [a.failure_class for a in answer.attempts]
    assert failures == [FailureClass.SEMANTIC, FailureClass.SCHEMA, None]
    assert "TypeError" in answer.attempts[0].outcome.error
    assert "line 2" in answer.attempts[0].outcome.error
    repair = engine.prompts["reviser.repair"]
    assert "Correct the failing step" in repair[0] and "TypeError" in repair[0]
    assert "has no column no_such_thing_at_all" in repair[1]
    assert "CREATE TABLE" in repair[1]  # K*_struct is what a wrong name is mended with
    assert "result -" in answer.attempts[1].delta and "schema" in answer.attempts[1].delta
    assert "critic.diagnose" in engine.prompts
    assert answer.patterns


def test_a_slip_is_mended_without_a_model(scripted: Any, frames: Database) -> None:
    slip = "import pandas as pd\norders = pd.read_csv('orders.csv')\nprint(orders['totl'].sum())"
    lm, engine = scripted(replies(formulate=[{"analysis": "", "code": slip}]))
    answer = ask(lm, frames)
    assert answer.outcome.rows == ((21.5,),)
    assert [a.source for a in answer.attempts] == ["formulate", "static"]
    assert "reviser.repair" not in engine.prompts


def test_a_program_that_reaches_out_is_blocked_and_mended(scripted: Any, frames: Database) -> None:
    bad = "import os\nresult = os.listdir('/')"
    lm, _ = scripted(replies(formulate=[{"analysis": "", "code": bad}]))
    answer = ask(lm, frames)
    assert answer.attempts[0].outcome.status is Status.BLOCKED
    assert answer.outcome.status is Status.OK


def test_the_fenced_form_asks_for_python_and_reads_it(scripted: Any, frames: Database) -> None:
    text = f"Analysis: sums\n```python\n{GOOD}\n```"
    said = {name: ["yes"] for name in STAGES}
    said["generator.formulate"] = [text]
    lm, engine = scripted(said)
    config = LynxConfig(adapter="fenced", stages=frozenset({"generator.formulate"}))
    answer = ask(lm, frames, Lynx(language="python", config=config))
    assert answer.code == GOOD and answer.outcome.status is Status.OK
    assert "```python" in engine.prompts["generator.formulate"][0]


def test_standing_still_gets_a_strategy_for_programs(scripted: Any, frames: Database) -> None:
    lm, engine = scripted(
        replies(
            formulate=[{"analysis": "", "code": "result = 1 / 0"}],
            repair=[{"analysis": "", "code": "result = 2 / 0"}],
        )
    )
    answer = ask(lm, frames)
    assert answer.outcome.status is Status.ERROR
    told = "\n".join(engine.prompts["critic.diagnose"])
    assert "Write it in steps" in told and "sql(" in told and "WITH query" not in told


@pytest.mark.parametrize("name", sorted(ABLATIONS))
def test_every_ablation_still_answers(name: str, scripted: Any, frames: Database) -> None:
    lm, _ = scripted(replies())
    program = ablate([name], Lynx(language="python", config=JSON))
    assert ask(lm, frames, program).outcome.rows == (("Bergen", 9.0), ("Oslo", 12.5))


class Memory(Database):
    """A database that is never asked for more than its dialect."""

    def __init__(self, dialect: str) -> None:
        self.url = self.name = "memory"
        self.dialect = dialect

    def introspect(self) -> Schema:
        raise AssertionError

    def execute(self, code: str, limits: Limits | None = None) -> Outcome:
        raise AssertionError

    def query(self, sql: str, parameters: Any = ()) -> list[Row]:
        raise AssertionError

    def fingerprint(self) -> str:
        raise AssertionError

    def close(self) -> None:
        return


@pytest.mark.parametrize(("language", "dialect"), [("python", "sqlite"), ("sql", "pandas")])
def test_a_language_that_does_not_fit_is_one_line(
    language: str, dialect: str, scripted: Any
) -> None:
    lm, _ = scripted({})
    with pytest.raises(BadInput, match="language="):
        ask(lm, Memory(dialect), Lynx(language=language, config=JSON))


def test_an_unknown_language_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="sql, python"):
        Lynx(language="R")


def test_python_has_the_same_predictors_by_the_same_names() -> None:
    python = Lynx(language="python")
    assert tuple(name for name, _ in python.named_predictors()) == STAGES
    differing = {
        path: kind
        for path, kind in module_graph(python).items()
        if module_graph(Lynx())[path] != kind
    }
    assert differing == {
        "generator.formulate": "PythonFormulate",
        "checker": "PythonChecker",
        "reviser.repair": "PythonRepair",
        "verifier.explain": "PythonExplain",
    }


SQL_PROMPTS = {
    ("full", "json"): "8b379cc35757efbd",
    ("full", "fenced"): "a7e1c6dfa4611ad5",
    ("full", "chat"): "024a2db8f3de4b66",
    ("embedded", "json"): "3788b32d6c96bfb1",
    ("embedded", "fenced"): "6817c5703dfe6723",
    ("embedded", "chat"): "eb585e0ebfc0ec19",
}
"""Hashes of every prompt of the SQL program as it was before there were languages."""


@pytest.mark.parametrize(("profile", "adapter"), SQL_PROMPTS)
def test_prompts_for_sql_are_what_they_were(profile: str, adapter: str) -> None:
    config = {"full": FULL, "embedded": EMBEDDED}[profile].with_(adapter=adapter)
    assert prompts_hash(rendered(Lynx(), config)) == SQL_PROMPTS[profile, adapter]


def test_the_module_graph_for_sql_is_what_it_was() -> None:
    assert digest_of(module_graph(Lynx())) == "909e326ec9716e4c"

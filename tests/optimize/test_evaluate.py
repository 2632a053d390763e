"""Evaluation: statuses apart, faults of a service never scored, and a report that adds up."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import dspy
import pytest

import lynx_dspy as lynx
from lynx_dspy import datasets
from lynx_dspy.errors import BadInput, ModelError
from lynx_dspy.optimize import asking
from lynx_dspy.optimize.asking import Patience
from lynx_dspy.optimize.evaluate import export
from lynx_dspy.optimize.questions import from_examples
from lynx_dspy.optimize.records import Record, Report, read_run

HASTY = Patience(retries=2, first_wait=0.01)


def records(out: Path) -> dict[str, Record]:
    return {r["id"]: r for r in read_run(out).records()}


def test_a_report_adds_up(counting: ModuleType, tmp_path: Path) -> None:
    lm = counting.model(counting.CountingEngine())
    report = lynx.evaluate(
        counting.program(), counting.questions(tmp_path, 28), lm=lm, out=tmp_path / "run"
    )
    wrong = sum(k % 4 == 1 or k % 7 == 3 for k in range(28))
    assert (report.n, report.scored) == (28, 28)
    assert report.scores["ex"].value == pytest.approx(1 - wrong / 28)
    assert report.scores["ex"].low < report.scores["ex"].value < report.scores["ex"].high
    assert report.statuses == {"ok": 24, "no_program": 4}
    assert report.by["difficulty"]["easy"].n == 14
    found = records(tmp_path / "run")
    assert report.tokens_per_question == pytest.approx(
        sum(r["usage"]["total_tokens"] for r in found.values()) / 28, abs=0.01
    )
    assert found["q0"]["scores"] == {
        "ex": 1.0, "ex_strict": 1.0, "soft_f1": 1.0, "soft_f1_cells": 1.0
    }  # fmt: skip
    assert found["q0"]["attempts"][0]["right"] is True
    assert found["q3"]["extracted"] is False
    written = json.loads((tmp_path / "run/report.json").read_text())
    assert Report.from_json(written) == report
    assert "EX" in (tmp_path / "run/report.md").read_text()
    errors = (tmp_path / "run/errors.md").read_text()
    assert errors.count("\n## ") == wrong
    assert "WHERE lacks `numbers.n >= 1`" in errors


def test_repairs_that_help_and_harm_are_counted(counting: ModuleType, tmp_path: Path) -> None:
    calls: dict[int, int] = {}

    def say(k: int) -> str:
        calls[k] = calls.get(k, 0) + 1
        right = counting.gold(k)
        return f"```sql\n{right if calls[k] == 2 else right.replace('numbers', 'number_s')}\n```"

    report = lynx.evaluate(
        lynx.ablate(["static-check"], counting.program()),
        counting.questions(tmp_path, 4),
        lm=counting.model(counting.CountingEngine(say)),
        out=tmp_path / "run",
    )
    assert report.changes["repair"].repaired == 4
    assert report.changes["repair"].broken == 0
    assert report.ex_by_round == [0.0, 1.0]
    assert report.rounds_mean == 1.0
    assert {use["round"] for use in records(tmp_path / "run")["q0"]["stages"]} <= {0, 1}


@pytest.mark.parametrize("workers", [1, 3])
def test_a_failing_service_is_asked_again_and_never_scored(
    counting: ModuleType, tmp_path: Path, workers: int
) -> None:
    failures = {2: 1, 5: 99}

    def say(k: int) -> str | Exception:
        if failures.get(k, 0) > 0:
            failures[k] -= 1
            return dspy.lm15.RateLimitError("slow down", retry_after=0.05)
        return str(counting.mostly_right(k))

    engine = counting.CountingEngine(say)
    arguments: dict[str, Any] = {"out": tmp_path / "run", "patience": HASTY, "workers": workers}
    examples = counting.questions(tmp_path, 8)
    report = lynx.evaluate(counting.program(), examples, lm=counting.model(engine), **arguments)
    assert report.unscored == {"unavailable": 1, "gold_broken": 0}
    assert report.scores["ex"].n == 7
    assert records(tmp_path / "run")["q5"]["scores"] == {}
    assert "asked too often" in records(tmp_path / "run")["q5"]["error"]

    failures.clear()
    again = lynx.evaluate(counting.program(), examples, lm=counting.model(engine), **arguments)
    assert again.unscored == {"unavailable": 0, "gold_broken": 0}
    assert again.n == 8
    assert len((tmp_path / "run/predictions.jsonl").read_text().splitlines()) == 9


def test_the_time_that_a_service_asks_for_is_waited(counting: ModuleType, tmp_path: Path) -> None:
    asked: list[float] = []

    def say(k: int) -> str | Exception:
        asked.append(time.monotonic())
        if len(asked) == 1:
            return dspy.lm15.RateLimitError("slow down", retry_after=0.3)
        return str(counting.mostly_right(k))

    lm = counting.model(counting.CountingEngine(say))
    examples = counting.questions(tmp_path, 1)
    # The wait is longer than the deadline and does not count against it.
    report = lynx.evaluate(counting.program(), examples, lm=lm, deadline=0.25)
    assert asked[1] - asked[0] >= 0.3
    assert report.statuses == {"ok": 1}


def test_a_service_that_is_gone_stops_the_run_and_keeps_what_is_done(
    counting: ModuleType, tmp_path: Path
) -> None:
    def say(k: int) -> str | Exception:
        return dspy.lm15.ServerError("down") if k >= 3 else str(counting.mostly_right(k))

    lm = counting.model(counting.CountingEngine(say))
    examples = counting.questions(tmp_path, 30)
    with pytest.raises(ModelError, match=r"5 questions in a row .*down.*run again"):
        lynx.evaluate(counting.program(), examples, lm=lm, out=tmp_path / "run", patience=HASTY)
    assert len(records(tmp_path / "run")) == 8


@pytest.mark.parametrize("workers", [1, 3])
def test_a_refused_key_stops_the_run_at_once(
    counting: ModuleType, tmp_path: Path, workers: int
) -> None:
    engine = counting.CountingEngine(lambda k: dspy.lm15.AuthError("no such key"))
    examples = counting.questions(tmp_path, 30)
    with pytest.raises(ModelError, match="refuses the key"):
        lynx.evaluate(counting.program(), examples, lm=counting.model(engine), workers=workers)


def test_a_question_past_its_deadline_is_a_timeout(counting: ModuleType, tmp_path: Path) -> None:
    class Slow(counting.CountingEngine):  # type: ignore[name-defined,misc]
        def complete(self, request: dspy.lm15.Request) -> dspy.lm15.Response:
            slow = "batch 1 " in "\n".join(m.text or "" for m in request.messages)
            time.sleep(3 if slow else 0)
            return super().complete(request)

    lm = counting.model(Slow())
    report = lynx.evaluate(
        counting.program(),
        counting.questions(tmp_path, 3),
        lm=lm,
        deadline=1.5,
        out=tmp_path / "run",
    )
    assert report.statuses == {"ok": 2, "timeout": 1}
    late = records(tmp_path / "run")["q1"]
    assert (late["status"], late["finish"], late["scores"]["ex"]) == ("timeout", "deadline", 0.0)
    assert late["usage"]["total_tokens"] == 120, "what was spent before the deadline counts"
    assert late["seconds"] < 5, "the call that ran on is the last one"


def test_golds_and_databases_that_fail_are_not_the_programs_fault(
    counting: ModuleType, tmp_path: Path
) -> None:
    good, broken, absent, odd = counting.questions(tmp_path, 4)
    broken = broken.copy(gold_sql=("SELECT nonsense FROM numbers",))
    absent = absent.copy(database="", reason="not in the download")
    odd = odd.copy(database=str(tmp_path / "none.sqlite"))
    lm = counting.model(counting.CountingEngine())
    report = lynx.evaluate(
        counting.program(), [good, broken, absent, odd], lm=lm, out=tmp_path / "run"
    )
    assert report.unscored == {"unavailable": 2, "gold_broken": 1}
    assert (report.n, report.scored, report.scores["ex"].value) == (4, 1, 1.0)
    found = records(tmp_path / "run")
    assert found["q1"]["status"] == "gold_broken"
    assert found["q2"]["error"] == "not in the download"
    assert "# Not scored" in (tmp_path / "run/errors.md").read_text()

    lynx.evaluate(counting.program(), [good, broken, absent, odd], lm=lm, out=tmp_path / "run")
    lines = (tmp_path / "run/predictions.jsonl").read_text().splitlines()
    assert len(lines) == 4, "the same fault is written once"


def test_any_program_may_be_evaluated(counting: ModuleType, tmp_path: Path) -> None:
    class Plain(dspy.Module):  # type: ignore[misc]
        def forward(self, question: str, **inputs: Any) -> dspy.Prediction:
            if "batch 1 " in question:
                raise KeyError("a mistake")
            return dspy.Prediction(code="SELECT COUNT(*) FROM numbers WHERE n >= 0")

    lm = counting.model(counting.CountingEngine())
    report = lynx.evaluate(Plain(), counting.questions(tmp_path, 2), lm=lm, out=tmp_path / "run")
    assert report.scores["ex"].value == 0.5
    assert records(tmp_path / "run")["q1"]["error"] == "KeyError: 'a mistake'"


def test_threads_carry_the_context(counting: ModuleType, tmp_path: Path) -> None:
    seen: set[tuple[str, str]] = set()

    class Curious(dspy.Module):  # type: ignore[misc]
        def forward(self, question: str, **inputs: Any) -> dspy.Prediction:
            time.sleep(0.02)
            seen.add((threading.current_thread().name, dspy.settings.note))
            return dspy.Prediction(code="SELECT 1")

    with dspy.context(note="carried"):
        lynx.evaluate(
            Curious(),
            counting.questions(tmp_path, 9),
            lm=counting.model(counting.CountingEngine()),
            workers=3,
        )
    assert {note for _, note in seen} == {"carried"}
    assert len(seen) == 3


def test_local_models_are_asked_one_at_a_time(counting: ModuleType, tmp_path: Path) -> None:
    busy = threading.Lock()

    def say(k: int) -> str:
        assert busy.acquire(blocking=False)
        time.sleep(0.01)
        busy.release()
        return str(counting.mostly_right(k))

    lm = counting.model(counting.CountingEngine(say), "local/counting")
    report = lynx.evaluate(counting.program(), counting.questions(tmp_path, 6), lm=lm, workers=4)
    assert report.statuses["ok"] == 5


def test_a_run_goes_on_only_as_it_was_begun(counting: ModuleType, tmp_path: Path) -> None:
    lm = counting.model(counting.CountingEngine())
    examples = counting.questions(tmp_path, 3)

    def go(program: Any, **changes: Any) -> Report:
        arguments = {"lm": lm, "out": tmp_path / "run"} | changes
        return lynx.evaluate(program, changes.pop("examples", examples), **arguments)

    go(counting.program())
    with pytest.raises(BadInput, match=r"run whose config differs \(top_k: 6 there, 7 now\)"):
        go(counting.program(top_k=7))
    with pytest.raises(BadInput, match=r"without differs \(\[\] there, \['jit'\] now\)"):
        go(counting.program(), without=("jit",))
    with pytest.raises(BadInput, match=r"lm differs \(name: test/counting there, test/other now"):
        go(counting.program(), lm=counting.model(counting.CountingEngine(), "test/other"))
    with pytest.raises(BadInput, match="dataset_hash differs"):
        lynx.evaluate(
            counting.program(), counting.questions(tmp_path, 4), lm=lm, out=tmp_path / "run"
        )


def test_places_that_cannot_be_written_are_told(counting: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    lm = counting.model(counting.CountingEngine())
    for place in ("file", "file/below"):
        with pytest.raises(BadInput, match="Cannot write to"):
            lynx.evaluate(
                counting.program(), counting.questions(tmp_path, 1), lm=lm, out=tmp_path / place
            )
    (tmp_path / "other").mkdir()
    (tmp_path / "other/run.json").write_text("{")
    with pytest.raises(BadInput, match="not whole JSON"):
        lynx.evaluate(
            counting.program(), counting.questions(tmp_path, 1), lm=lm, out=tmp_path / "other"
        )
    with pytest.raises(BadInput, match=r"holds no run\.json"):
        read_run(tmp_path)


def test_programs_are_exported_in_official_formats(counting: ModuleType, tmp_path: Path) -> None:
    examples = counting.questions(tmp_path, 4)
    lm = counting.model(counting.CountingEngine())
    lynx.evaluate(counting.program(), examples, lm=lm, out=tmp_path / "run")
    path = export(tmp_path / "run", from_examples(examples), "bird")
    assert json.loads(path.read_text())["0"] == f"{counting.gold(0)}\t----- bird -----\tnumbers"
    assert json.loads(path.read_text())["3"] == "\t----- bird -----\tnumbers"
    spider = export(tmp_path / "run", from_examples(examples), "spider")
    assert spider.read_text().splitlines()[0] == counting.gold(0)


def test_earlier_tries_are_billed_once() -> None:
    def call(cached: bool) -> asking.Call:
        return asking.Call("s", 0, 100, 20, cached, 0.1, "length")

    assert asking.stage_uses([call(True), call(False)], earlier=[call(False)]) == [
        {
            "stage": "s",
            "round": 0,
            "calls": 2,
            "prompt_tokens": 200,
            "completion_tokens": 40,
            "billed_tokens": 240,
            "seconds": 0.2,
            "cut": 2,
        }
    ]


def test_odd_text_of_a_model_is_judged_like_any_other(counting: ModuleType, tmp_path: Path) -> None:
    odd = [
        "SELECT COUNT(*) FROM numbers GROUP BY",
        "SELECT " + "(" * 2_000 + "1" + ")" * 2_000,
        "SELECT '\ud800' FROM numbers",
        "SELECT 1e999, x'00ff', NULL",
    ]

    class Odd(dspy.Module):  # type: ignore[misc]
        def forward(self, question: str, **inputs: Any) -> dspy.Prediction:
            return dspy.Prediction(code=odd[int(question.split()[-2].strip(","))])

    lm = counting.model(counting.CountingEngine())
    report = lynx.evaluate(Odd(), counting.questions(tmp_path, 4), lm=lm, out=tmp_path / "run")
    assert (report.n, report.scores["ex"].value) == (4, 0.0)
    assert set(report.failures) <= {"syntax", "semantic", "columns", "values", "blocked", "error"}


class Nosy(dspy.Module):  # type: ignore[misc]
    """Keeps what it is given and answers nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[dict[str, Any]] = []

    def forward(self, **inputs: Any) -> dspy.Prediction:
        schema = inputs["database"].introspect()
        self.given.append(inputs | {"schema": schema})
        return dspy.Prediction(code="")


def test_documents_of_the_question_are_handed_over(counting: ModuleType, tmp_path: Path) -> None:
    for name in ("a.md", "b.txt"):
        (tmp_path / name).write_text(f"# Title\nWhat {name} says.\n")
    paths = [tmp_path / "a.md", tmp_path / "b.txt"]
    plain, documented = counting.questions(tmp_path, 2)
    documented = documented.copy(documents=tuple(map(str, paths)), evidence="a hint")
    lost = documented.copy(id="lost", documents=(str(tmp_path / "none.md"),))
    nosy, lm = Nosy(), counting.model(counting.CountingEngine())
    report = lynx.evaluate(nosy, [plain, documented, lost], lm=lm)
    first, second = nosy.given
    assert first["documents"] is None
    assert {p.source for p in second["documents"].passages} == {"a.md", "b.txt"}
    assert second["evidence"] == "a hint"
    assert set(first) == {"question", "database", "documents", "evidence", "schema"}
    assert report.unscored["unavailable"] == 1


SQL_EVAL = Path(__file__).parents[2] / "../shared/data/sql_eval"


@pytest.mark.skipif(not SQL_EVAL.is_dir(), reason="sql_eval is not here")
def test_descriptions_of_the_benchmark_reach_the_program(counting: ModuleType) -> None:
    nosy, lm = Nosy(), counting.model(counting.CountingEngine())
    report = lynx.evaluate(nosy, "sql_eval", data=SQL_EVAL, limit=2, lm=lm)
    assert (report.dataset, report.split, report.n) == ("sql_eval", "val", 2)
    texts = datasets.describe("sql_eval", SQL_EVAL, nosy.given[0]["database"].name)
    shown = {c.description for t in nosy.given[0]["schema"].tables for c in t.columns} - {""}
    assert shown == {" ".join(text.split()) for table in texts.values() for text in table.values()}
    assert shown


def test_a_refused_call_leaves_the_finished_run_whole(counting: ModuleType, tmp_path: Path) -> None:
    lm, out = counting.model(counting.CountingEngine()), tmp_path / "run"
    examples = counting.questions(tmp_path, 2)
    lynx.evaluate(counting.program(), examples, lm=lm, out=out)
    with pytest.raises(BadInput):
        lynx.evaluate(counting.program(), examples, lm=lm, out=out, deadline=3)
    assert read_run(out).report
    (out / "run.json").unlink()
    with pytest.raises(BadInput, match=r"holds predictions\.jsonl but no run\.json"):
        lynx.evaluate(counting.program(), examples, lm=lm, out=out)


def test_a_run_may_grow(counting: ModuleType, tmp_path: Path) -> None:
    lm, out = counting.model(counting.CountingEngine()), tmp_path / "run"
    examples = counting.questions(tmp_path, 6)
    assert lynx.evaluate(counting.program(), examples, lm=lm, out=out, limit=2).n == 2
    assert lynx.evaluate(counting.program(), examples, lm=lm, out=out, ids=["q4"]).n == 3
    assert lynx.evaluate(counting.program(), examples, lm=lm, out=out).n == 6

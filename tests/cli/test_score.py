"""`lynx score`: official predictions in, official figures out."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from lynx_dspy import datasets
from lynx_dspy.cli import main
from lynx_dspy.optimize.records import read_run

DATA = Path(__file__).parents[2] / "../shared/data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the benchmarks are not here")


def score(capsys: pytest.CaptureFixture[str], name: str, data: Path, *more: str) -> dict:  # type: ignore[type-arg]
    assert main(["score", "--dataset", name, "--data", str(data), *more, "--json"]) == 0
    report: dict = json.loads(capsys.readouterr().out)  # type: ignore[type-arg]
    return report


@needs_data
def test_bird_gpt4_scores_as_by_the_official_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = DATA / "bird_mini_dev/predictions/predict_mini_dev_gpt-4_sqlite.json"
    out = tmp_path / "run"
    report = score(
        capsys, "bird", DATA / "bird_mini_dev", "--predictions", str(given), "--out", str(out),
        "--ves", "3",
    )  # fmt: skip
    values = {name: round(s["value"] * 100, 2) for name, s in report["scores"].items()}
    levels = {
        level: round(part["scores"]["ex"]["value"] * 100, 2)
        for level, part in report["by"]["difficulty"].items()
    }
    assert (report["n"], report["scored"]) == (500, 52)
    assert report["unscored"] == {"unavailable": 448, "gold_broken": 0}
    assert (values["ex"], values["soft_f1"]) == (76.92, 81.40)
    assert levels == {"simple": 85.71, "moderate": 80.77, "challenging": 58.33}
    assert 60 < values["r_ves"] < 95
    errors = (out / "errors.md").read_text()
    assert errors.count("\n## ") == 12
    assert "| gold, " in errors
    wrong = [r["failure"] for r in read_run(out).records() if r["failure"]]
    assert all(failure["gold"]["rows"] for failure in wrong)


@needs_data
def test_581_spider_golds_agree_with_themselves_in_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (DATA / "spider/dev_gold.sql").read_text().splitlines()
    given = tmp_path / "gold.txt"
    given.write_text("\n".join(line.split("\t")[0] for line in lines if line.strip()) + "\n")
    started = time.process_time()
    report = score(capsys, "spider", DATA / "spider", "--predictions", str(given))
    # The budget is 5 s of a quiet machine; processor time does not see the neighbours.
    assert time.process_time() - started < 5
    assert (report["n"], report["scores"]["ex"]["value"]) == (581, 1.0)
    assert report["linking"]["column_recall"] == 1.0


@needs_data
@pytest.mark.parametrize("split", ["val", "train"])
def test_sql_eval_golds_agree_with_themselves(
    split: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = datasets.load("sql_eval", DATA / "sql_eval", split, tmp_path / "db")
    given = tmp_path / "gold.jsonl"
    pairs = ({"id": one.id, "code": one.gold_sql[-1]} for one in examples)
    given.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    report = score(
        capsys, "sql_eval", DATA / "sql_eval", "--predictions", str(given), "--split", split
    )
    assert report["scores"]["ex"] | {"low": 0} == {
        "value": 1.0, "low": 0, "high": 1.0, "n": len(examples)
    }  # fmt: skip


@needs_data
def test_spider2_results_agree_with_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    for one in datasets.load("spider2", DATA / "spider2-lite"):
        if one.gold_csv:
            shutil.copy(one.gold_csv[-1], folder / f"{one.id}.csv")
    report = score(capsys, "spider2", DATA / "spider2-lite", "--predictions", str(folder))
    assert report["n"] == 547
    assert report["scores"]["ex"]["value"] == 1.0
    assert report["scores"]["ex"]["n"] == 146
    assert report["official"] == {"547": 146, "544": 146}


def test_predictions_of_another_length_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.txt").write_text("SELECT 1\n")
    fixed = ["score", "--dataset", "sample", "--data", "."]
    assert main([*fixed, "--predictions", str(tmp_path / "p.txt")]) == 2
    assert "holds 1 predictions for 20 questions" in capsys.readouterr().err
    assert main([*fixed, "--predictions", str(tmp_path / "none.txt")]) == 2
    assert capsys.readouterr().err.startswith("lynx: No predictions at ")


def test_missing_predictions_score_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = datasets.load("sample", ".")[0]
    (tmp_path / "p.jsonl").write_text(json.dumps({"id": first.id, "code": first.gold_sql[0]}))
    report = score(capsys, "sample", Path(), "--predictions", str(tmp_path / "p.jsonl"))
    assert report["scores"]["ex"]["value"] == pytest.approx(1 / 20)
    assert report["statuses"] == {"no_program": 19, "ok": 1}

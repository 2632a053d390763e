"""A compile with Optuna from the search to MLflow's pages: a server, its client and a browser."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from lynx_dspy.tracking import Logged, Store, track_compile

TESTS = Path(__file__).parent
WAITS = 300.0
"""Seconds that a page may take on a busy machine."""

FEW = {
    "trials": "4", "startup": "2", "rungs": "0.5,1", "labels": "gold", "demos": "0,3",
    "candidates": "1,2", "rescue_candidates": "0", "candidate_temperature": "0.8",
    "schema_tokens": "1500", "schema_style": "ddl", "syntax_tokens": "0", "max_rounds": "0",
    "stagnation_rounds": "3",
}  # fmt: skip


def neighbour(name: str, folder: Path) -> ModuleType:
    """A module that lies beside the tests."""
    sys.path.insert(0, str(folder))
    try:
        return __import__(name)
    finally:
        sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MlflowClient, Logged]]:
    """A study that was compiled and logged, and a client of the server that holds it."""
    compiling, folder = neighbour("compiling", TESTS / "optimize"), tmp_path_factory.mktemp("study")
    made = compiling.compiled(
        folder, "small/tuned", compiling.Pupil(needs=3), recipe="optuna", params=FEW
    )
    assert made.kept
    with neighbour("serving", TESTS).serving(folder) as address:
        found = track_compile(folder / "small/tuned", Store(address, folder))
        assert isinstance(found, Logged)
        yield MlflowClient(address), found


def children(client: MlflowClient, run: Run, kind: str) -> list[Run]:
    parent = f"tags.`mlflow.parentRunId` = '{run.info.run_id}' and tags.`lynx.kind` = '{kind}'"
    return list(client.search_runs([run.info.experiment_id], parent))


def test_the_trials_of_a_study_are_child_runs(
    logged: tuple[MlflowClient, Logged], tmp_path: Path
) -> None:
    client, found = logged
    run = client.get_run(found.run_id)
    trials = children(client, run, "trial")
    assert 1 <= len(trials) <= 4 and len(children(client, run, "baseline")) == 1
    assert {"trial", "candidates", "demos"} <= trials[0].data.params.keys()
    whole = [one for one in trials if "val/ex" in one.data.metrics]
    assert all("val_share/ex" in one.data.metrics for one in trials if one not in whole)
    best = max(whole, key=lambda one: one.data.metrics["val/ex"])
    assert best.data.metrics["val/ex"] == run.data.metrics["val/ex"] == 1.0
    assert best.data.params["demos"] == "3"
    assert run.data.params["recipe.winner.demos"] == "3"
    assert run.data.params["recipe.optuna.candidates"] == "1, 2"
    steps = [m.value for m in client.get_metric_history(found.run_id, "search/best_ex")]
    assert steps == sorted(steps) and len(steps) > 1
    assert run.data.metrics["val/seconds_per_question"] > 0
    names = [one.dataset.name for one in run.inputs.dataset_inputs]
    assert sorted(names) == ["examples/train", "examples/val"]

    files = {file.path for file in client.list_artifacts(found.run_id, "figures")}
    assert files == {"figures/search.png", "figures/search.svg"}
    table = json.loads(
        Path(client.download_artifacts(found.run_id, "questions.json", str(tmp_path))).read_text()
    )
    seconds = table["columns"].index("seconds")
    assert table["data"] and all(row[seconds] > 0 for row in table["data"])


def test_a_browser_shows_runs_and_metrics(
    logged: tuple[MlflowClient, Logged], tmp_path: Path
) -> None:
    seeing = neighbour("browsing", TESTS)
    program = seeing.chromium()
    if not program:
        pytest.skip("no Chromium is installed; make services installs it")
    client, found = logged
    run = client.get_run(found.run_id)
    page_of_experiment = found.url.partition("/runs/")[0] + "/runs"
    child = children(client, run, "trial")[0].info.run_name
    with seeing.browsing(program, tmp_path / "profile") as page:
        seen = page.shows(page_of_experiment, [run.info.run_name, "examples/"], WAITS)
        assert run.info.run_name in seen and "lynx-examples" in seen, seen
        metrics = ("val/ex", "val/baseline_ex", "search/best_ex")
        seen = page.shows(found.url, [*metrics, child], WAITS)
        lines = seen.splitlines()
        assert lines[lines.index("val/ex") + 1] == "1"
        assert child in seen and all(name in lines for name in metrics)
        assert "lynx.recipe" in seen and "Finished" in seen

"""Tracking against a real MLflow server on loopback: what is logged can be read back, or waits."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow import MlflowClient

import lynx_dspy as lynx
from lynx_dspy.errors import BadInput
from lynx_dspy.metrics.intervals import wilson
from lynx_dspy.optimize.artifact import save
from lynx_dspy.optimize.manifest import Backbone, Manifest, RecipeRun, Scores, SplitRecord, Used
from lynx_dspy.reporting.variants import chosen
from lynx_dspy.tracking import (
    Kept,
    Logged,
    Store,
    entry_of,
    track_ablation,
    track_compile,
    track_run,
)

_SPEC = importlib.util.spec_from_file_location(
    "runs_by_hand", Path(__file__).parent / "reporting/conftest.py"
)
assert _SPEC and _SPEC.loader
_BY_HAND = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_BY_HAND)
make_run = _BY_HAND.make_run
mixed = _BY_HAND.mixed

sys.path.insert(0, str(Path(__file__).parent))
from serving import free_port, serve, serving, stop  # noqa: E402

sys.path.pop(0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store; making its tables takes seconds."""
    store = Store(project=tmp_path_factory.mktemp("tables"))
    store.experiment("any")
    return store.folder / "store.db"


@pytest.fixture
def store(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store of one's own, in a file."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    found = Store(project=tmp_path)
    found.folder.mkdir()
    shutil.copyfile(tables, found.folder / "store.db")
    return found


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    """An artifact whose compile raised three of eight questions to six, beside its search."""
    rows = [
        {
            "split": "val", "id": f"q{n}", "db": "shop", "question": f"How many, {n}?",
            "code": "SELECT 1", "status": "ok", "scores": {"ex": float(n < 6), "soft_f1": 0.5},
            "baseline_ex": float(n < 3), "tokens": 100 + n, "calls": 2,
        }
        for n in range(8)
    ]  # fmt: skip
    scores = {
        name: Scores(ex=wilson(right, 8), soft_f1=wilson(4, 8), tokens_per_question=tokens)
        for name, right, tokens in (("baseline", 3, 60.0), ("compiled", 6, 103.5))
    }
    manifest = Manifest(
        variant="demos",
        backbone=Backbone(name="test/small"),
        recipe=RecipeRun(
            name="demos",
            params={"demos": {"sizes": [2, 4]}},
            seed=7,
            used=Used(lm_calls=30, tokens=900, seconds=12.5),
        ),
        splits={"val": SplitRecord(hash="v1", n=8, dataset="shop")},
        scores={"val": scores},
    )
    folder = save(lynx.Lynx(), tmp_path / "tiny/demos", manifest, rows)
    work = folder.parent / ".demos.work"
    work.mkdir()
    tried = [("baseline", 8, 0.375), ("demos-1", 4, 1.0), ("demos-2", 8, 0.75), ("d-3", 8, 0.5)]
    standings = [
        {
            "name": name, "program": name, "asked": asked, "scored": asked, "front": ex == 0.75,
            "scores": {"ex": ex, "soft_f1": ex, "tokens": 100.0}, "about": {"size": 2},
        }
        for name, asked, ex in tried
    ]  # fmt: skip
    (work / "search.json").write_text(json.dumps(standings))
    timed = {f"q{n}": {"seconds": 2.0, "ves": 0.5} for n in range(8)}
    (work / "times.json").write_text(json.dumps({"val": {"baseline": {}, "compiled": timed}}))
    return folder


def test_a_compile_is_read_back_from_the_server(
    server: str, artifact: Path, tmp_path: Path
) -> None:
    store = Store(server, tmp_path)
    logged = track_compile(artifact, store)
    assert isinstance(logged, Logged) and logged.url.startswith(store.uri)
    client = MlflowClient(store.uri)
    run = client.get_run(logged.run_id)
    assert run.info.status == "FINISHED"
    tags = {name: run.data.tags[f"lynx.{name}"] for name in ("backbone", "recipe", "variant")}
    assert tags == {"backbone": "test/small", "recipe": "demos", "variant": "demos"}
    assert client.get_experiment(run.info.experiment_id).name == "lynx-shop"
    assert run.data.params["recipe.demos.sizes"] == "2, 4" and run.data.params["seed"] == "7"
    assert run.data.metrics["val/ex"] == 0.75 and run.data.metrics["val/baseline_ex"] == 0.375
    assert run.data.metrics["search/lm_calls"] == 30
    assert run.data.metrics["val/ves"] == 0.5
    assert run.data.metrics["val/seconds_per_question"] == 2.0
    steps = client.get_metric_history(logged.run_id, "search/best_ex")
    assert [(m.step, m.value) for m in steps] == [(0, 0.375), (1, 0.75), (2, 0.75)]
    (data,) = run.inputs.dataset_inputs
    assert (data.dataset.name, data.dataset.digest, data.tags[0].value) == (
        "shop/val", "v1", "val"
    )  # fmt: skip

    copy = Path(client.download_artifacts(logged.run_id, "artifact", str(tmp_path)))
    assert lynx.load(copy).config == lynx.load(artifact).config
    assert {f.path for f in client.list_artifacts(logged.run_id)} == {
        "artifact", "questions.json", "scores.png", "figures"
    }  # fmt: skip
    children = client.search_runs(
        [run.info.experiment_id], f"tags.`mlflow.parentRunId` = '{logged.run_id}'"
    )
    kinds = sorted(child.data.tags["lynx.kind"] for child in children)
    assert kinds == ["baseline", *["candidate"] * 4]


def test_prompts_have_versions_and_are_those_of_the_artifact(
    store: Store, artifact: Path, tmp_path: Path
) -> None:
    track_compile(artifact, store)
    other = lynx.Lynx()
    formulate = other.generator.formulate
    formulate.signature = formulate.signature.with_instructions("Write one query.")
    changed = save(other, tmp_path / "tiny/other", Manifest(
        variant="gepa", backbone=Backbone(name="test/small"),
        splits={"val": SplitRecord(hash="v1", n=8, dataset="shop")},
    ))  # fmt: skip
    logged = track_compile(changed, store)
    client = MlflowClient(store.uri, store.uri)
    latest = client.load_prompt("prompts:/lynx.test-small.shop.generator.formulate@latest")
    prompts = json.loads((changed / "prompts.json").read_text())["prompts"]
    assert latest.version == 2 and latest.template == prompts["generator.formulate"]
    same = client.load_prompt("prompts:/lynx.test-small.shop.generator.ground@latest")
    assert same.version == 1, "a prompt that reads the same is no new version"
    assert isinstance(logged, Logged)
    linked = json.loads(client.get_run(logged.run_id).data.tags["mlflow.linkedPrompts"])
    assert {"name": latest.name, "version": "2"} in linked and len(linked) == len(prompts)


def test_the_same_work_is_logged_once(
    store: Store, make_run: Callable[..., Path], mixed: list[object]
) -> None:
    folder = make_run("once", mixed)
    assert track_run(folder, store) == track_run(folder, store)


def test_a_study_is_a_parent_with_a_run_a_variant(
    store: Store, make_run: Callable[..., Path], mixed: list[object], tmp_path: Path
) -> None:
    for part in ("full", "verification"):
        make_run(f"study/{part}", mixed, without=[] if part == "full" else [part], dataset="study")
    logged = track_ablation(tmp_path / "study", store)
    assert isinstance(logged, Logged)
    found = chosen(store.tracked(), dataset="study")
    assert sorted(v.variant for v in found) == ["un-compiled", "un-compiled w/o verification"]
    assert found[0].ex == {"q1": 1, "q2": 1, "q3": 1, "q4": 1, "q5": 0, "q6": 0}
    client = MlflowClient(store.uri)
    parents = {client.get_run(v.run_id).data.tags["mlflow.parentRunId"] for v in found}
    assert parents == {logged.run_id}


def test_what_a_server_that_is_down_did_not_take_is_sent_later(
    server: str, make_run: Callable[..., Path], mixed: list[object], tmp_path: Path
) -> None:
    down = Store(f"http://127.0.0.1:{free_port()}", tmp_path)
    folder = make_run("late", mixed, dataset="late")
    kept = track_run(folder, down)
    assert isinstance(kept, Kept) and kept.folder.is_dir() and kept.reason
    (still,) = down.sync()
    assert isinstance(still, Kept) and still.folder == kept.folder
    with pytest.raises(BadInput, match="Cannot read the MLflow store"):
        list(down.tracked())

    shutil.rmtree(folder)  # what waits needs nothing of what it was made from
    up = Store(server, tmp_path)
    (sent,) = up.sync()
    assert isinstance(sent, Logged) and not kept.folder.exists()
    assert not list(up.sync())
    (found,) = chosen(up.tracked(), dataset="late")
    assert (found.run_id, sum(found.ex.values())) == (sent.run_id, 4.0)
    files = {f.path for f in MlflowClient(server).list_artifacts(sent.run_id)}
    assert {"predictions.jsonl", "report.json", "figures", "questions.json"} <= files


def test_what_broke_off_midway_is_replaced(store: Store, artifact: Path) -> None:
    entry = entry_of(artifact)
    broken = replace(entry, files={**entry.files, "artifact": artifact / "nowhere"})
    assert broken.key == entry.key
    with pytest.raises(BadInput, match="nowhere"):
        store.track(broken)
    logged = store.track(entry)
    assert isinstance(logged, Logged)
    experiment = store.experiment("lynx-shop")
    runs = MlflowClient(store.uri).search_runs([experiment], "tags.`lynx.kind` = 'compile'")
    assert [run.info.run_id for run in runs] == [logged.run_id]


def test_the_pages_show_what_is_in_the_project(store: Store, artifact: Path) -> None:
    logged = track_compile(artifact, store)
    assert isinstance(logged, Logged)
    port = free_port()
    process = serve(store.ui_command(port), port)
    try:
        base = f"http://127.0.0.1:{port}"
        with urllib.request.urlopen(base, timeout=10) as page:
            assert b"<title>MLflow</title>" in page.read()
        shown = f"{base}/get-artifact?path=questions.json&run_uuid={logged.run_id}"
        with urllib.request.urlopen(shown, timeout=10) as table:
            assert json.load(table)["data"][0][:2] == ["val", "q0"]
        assert MlflowClient(base).get_run(logged.run_id).data.metrics["val/ex"] == 0.75
    finally:
        stop(process)


def test_nothing_tracked_yet_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(BadInput, match="Nothing is tracked in"):
        list(Store(project=tmp_path).tracked())

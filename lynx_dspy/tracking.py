"""MLflow: finished work in a store, and out of it again. The only file that imports mlflow.

The store is that of `MLFLOW_TRACKING_URI`, else an SQLite file of the project:

    ./lynx-mlflow/store.db      experiments (one a dataset), runs, prompts, traces
    ./lynx-mlflow/artifacts/    their files
    ./lynx-mlflow/spool/        what a store that was down did not take (`reporting/spool.py`)

Tracking never fails the work that it tracks: what cannot be logged is kept for `sync`.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lynx_dspy.errors import BadInput
from lynx_dspy.lm import redact
from lynx_dspy.optimize.artifact import MANIFEST
from lynx_dspy.optimize.folders import located
from lynx_dspy.optimize.records import RUN
from lynx_dspy.reporting import spool
from lynx_dspy.reporting.artifact_entries import entry_of_artifact
from lynx_dspy.reporting.entries import QUESTIONS, Entry
from lynx_dspy.reporting.run_entries import entry_of_run, entry_of_study
from lynx_dspy.reporting.variants import Tracked

# MLflow reads these when it is imported. Nothing is told to its makers, a server that is down is
# found out in seconds, not in minutes, pages are served without workers for jobs, and stdout is
# left to the commands.
for _name, _value in {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
}.items():
    os.environ.setdefault(_name, _value)

import mlflow  # noqa: E402
import mlflow.dspy  # noqa: E402
from mlflow import MlflowClient  # noqa: E402
from mlflow.entities import (  # noqa: E402
    Dataset,
    DatasetInput,
    InputTag,
    Metric,
    Param,
    Run,
)
from mlflow.exceptions import MlflowException  # noqa: E402

FOLDER = "lynx-mlflow"

_URI = "MLFLOW_TRACKING_URI"

_FAULTS = (MlflowException, OSError)  # those of `requests` are OSErrors
_FINISHED, _MOST_TEXT, _BATCH, _PAGE = "FINISHED", 5_000, 90, 500
_NO_PROMPT_NAME = re.compile(r"[^\w.-]+")
_TABLES, _LINKED_PROMPTS = "mlflow.loggedArtifacts", "mlflow.linkedPrompts"


@dataclass(frozen=True, slots=True)
class Logged:
    """An entry that is in the store."""

    name: str
    run_id: str
    url: str


@dataclass(frozen=True, slots=True)
class Kept:
    """An entry that the store did not take: where it waits, and why."""

    name: str
    folder: Path
    reason: str


class Store:
    """An MLflow store with the folder of this project beside it."""

    def __init__(self, uri: str = "", project: str | Path = ".") -> None:
        self.folder = Path(project).resolve() / FOLDER
        self.uri = uri or os.environ.get(_URI, "") or self._own()
        self.is_server = urlsplit(self.uri).scheme in ("http", "https")
        self.spool = self.folder / "spool"
        for name in ("mlflow", "alembic"):  # its notes on migrations are nobody's affair
            logging.getLogger(name).setLevel(logging.ERROR)

    @property
    def shown(self) -> str:
        """The store's address without a password."""
        return redact(self.uri)

    def track(self, entry: Entry) -> Logged | Kept:
        """Log an entry, unless it is there already; keep it if the store does not take it.

        Raises `BadInput` if it can be neither logged nor kept.
        """
        try:
            return self._log(entry)
        except _FAULTS as error:
            return Kept(entry.name, spool.keep(entry, self.spool), _one_line(error))

    def sync(self) -> Iterator[Logged | Kept]:
        """Send what is kept, oldest first; what the store does not take stays."""
        for place, entry in spool.waiting(self.spool):
            try:
                yield self._log(entry)
            except _FAULTS as error:
                yield Kept(entry.name, place, _one_line(error))
            else:
                spool.drop(place)

    def tracked(self) -> Iterator[Tracked]:
        """Every program with answers to questions, by split; newest runs first.

        Raises `BadInput` for a store that cannot be read or holds none.
        """
        if self.uri == self._own() and not (self.folder / "store.db").is_file():
            raise BadInput(
                f"Nothing is tracked in {self.folder}. Track a run with lynx track, or name a "
                "server in MLFLOW_TRACKING_URI."
            )
        try:
            for run in self._runs():
                if "lynx.questions" in run.data.tags and run.info.status == _FINISHED:
                    yield from self._tracked(run)
        except _FAULTS as error:
            raise BadInput(
                f"Cannot read the MLflow store {self.shown}: {_one_line(error)}"
            ) from None

    def experiment(self, name: str) -> str:
        """The id of an experiment, which is made if there is none of this name."""
        found = self._client.get_experiment_by_name(name)
        if found is not None:
            if found.lifecycle_stage == "deleted":
                self._client.restore_experiment(found.experiment_id)
            return str(found.experiment_id)
        place = None if self.is_server else (self.folder / "artifacts" / name).as_uri()
        return str(self._client.create_experiment(name, artifact_location=place))

    def ui_command(self, port: int) -> list[str]:
        """The command that serves MLflow's pages over a local store, on loopback only."""
        self.folder.mkdir(parents=True, exist_ok=True)
        where = ["--backend-store-uri", self.uri, "--default-artifact-root"]
        where += [(self.folder / "artifacts").as_uri(), "--workers", "1"]
        return [
            sys.executable,
            "-m",
            "mlflow",
            "ui",
            *where,
            "--host",
            "127.0.0.1",
            "-p",
            f"{port}",
        ]

    @property
    def _client(self) -> MlflowClient:
        if self.uri == self._own():
            self.folder.mkdir(parents=True, exist_ok=True)
        return MlflowClient(self.uri, self.uri)

    def _own(self) -> str:
        return f"sqlite:///{self.folder / 'store.db'}"

    def _log(self, entry: Entry) -> Logged:
        client, experiment = self._client, self.experiment(entry.experiment)
        done = self._same(client, experiment, entry.key)
        run_id = done or _written(client, experiment, entry)
        return Logged(entry.name, run_id, self._url(experiment, run_id))

    def _url(self, experiment: str, run_id: str) -> str:
        if not self.is_server:
            return self.shown
        return f"{self.shown.rstrip('/')}/#/experiments/{experiment}/runs/{run_id}"

    def _same(self, client: MlflowClient, experiment: str, key: str) -> str:
        """The finished run of an entry, or nothing; what broke off midway is removed."""
        found = client.search_runs([experiment], f"tags.`lynx.key` = '{key}'")
        for run in found:
            if run.info.status == _FINISHED:
                return str(run.info.run_id)
            parent = f"tags.`mlflow.parentRunId` = '{run.info.run_id}'"
            for one in (*client.search_runs([experiment], parent), run):
                client.delete_run(one.info.run_id)
        return ""

    def _runs(self) -> Iterator[Run]:
        client = self._client
        ids = [
            e.experiment_id for e in client.search_experiments(filter_string="name LIKE 'lynx-%'")
        ]
        token: str | None = None
        while ids:
            page = client.search_runs(
                ids, max_results=_PAGE, order_by=["attributes.start_time DESC"], page_token=token
            )
            yield from page
            token = page.token
            if not token:
                return

    def _tracked(self, run: Run) -> Iterator[Tracked]:
        with tempfile.TemporaryDirectory(prefix="lynx-") as folder:
            path = self._client.download_artifacts(run.info.run_id, QUESTIONS, folder)
            table = json.loads(Path(path).read_text("utf-8"))
        rows = [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]
        yield from Tracked.by_split(run.info.run_id, run.data.tags, run.data.metrics, rows)


def entry_of(folder: str | Path) -> Entry:
    """The entry of a finished run, an artifact or a study, whichever lies in `folder`.

    Raises `BadInput` for a folder that is none of them, or that is not finished.
    """
    place = located(Path(folder))
    if (place / MANIFEST).is_file():
        return entry_of_artifact(place)
    if (place / RUN).is_file():
        return entry_of_run(place)
    if any(place.glob(f"*/{RUN}")):
        return entry_of_study(place)
    raise BadInput(
        f"{folder} holds neither a run of lynx eval, nor an artifact of lynx compile, nor a study "
        "of lynx ablate. Name one of their --out folders."
    )


def track_run(folder: str | Path, store: Store | None = None) -> Logged | Kept:
    """Log a finished run of `lynx eval` or `lynx score`. Raises `BadInput`."""
    return (store or Store()).track(entry_of_run(folder))


def track_compile(folder: str | Path, store: Store | None = None) -> Logged | Kept:
    """Log a compiled artifact, with its baseline and candidates. Raises `ArtifactError`."""
    return (store or Store()).track(entry_of_artifact(folder))


def track_ablation(folder: str | Path, store: Store | None = None) -> Logged | Kept:
    """Log a study of `lynx ablate`: a parent with a child a variant. Raises `BadInput`."""
    return (store or Store()).track(entry_of_study(folder))


@contextmanager
def tracing(name: str, store: Store | None = None) -> Iterator[str]:
    """Inside, every call of a program is a trace with a span a stage; why not, else nothing.

    Only traces: MLflow's own logging of evaluations and compiles swallows errors of metrics. It
    must be entered in the thread that first called `dspy.configure`.
    """
    store, before = store or Store(), os.environ.get(_URI)
    try:
        mlflow.set_tracking_uri(store.uri)
        mlflow.set_experiment(experiment_id=store.experiment(f"lynx-{name}"))
    except _FAULTS as error:
        _give_back(before)
        yield f"No traces: the MLflow store {store.shown} cannot be used: {_one_line(error)}"
        return
    only_traces = {"log_traces_from_eval": False, "log_compiles": False, "log_evals": False}
    mlflow.dspy.autolog(log_traces=True, silent=True, **only_traces)
    try:
        yield ""
    finally:
        mlflow.dspy.autolog(disable=True)
        mlflow.flush_trace_async_logging()
        _give_back(before)


def _give_back(uri: str | None) -> None:
    """Traces go to the process's store, which is its user's before and after."""
    mlflow.set_tracking_uri(uri)  # type: ignore[arg-type]  # None takes it back


def _written(client: MlflowClient, experiment: str, entry: Entry, parent: str = "") -> str:
    """Write an entry as a run, the children too; the run's id.

    It is `FINISHED` when all is in the store, so that one that broke off can be told.
    """
    tags = {**entry.tags, "lynx.key": entry.key, "mlflow.source.name": "lynx"}
    if parent:
        tags["mlflow.parentRunId"] = parent
    if QUESTIONS in entry.files:
        tags[_TABLES] = json.dumps([{"path": QUESTIONS, "type": "table"}])
    run_id = str(client.create_run(experiment, tags=tags, run_name=entry.name).info.run_id)
    _log_values(client, run_id, entry)
    _log_inputs(client, run_id, entry)
    for place, source in entry.files.items():
        _log_file(client, run_id, place, source)
    if entry.prompts:
        named = {_prompt_name(entry, path): value for path, value in entry.prompts.items()}
        linked = [_registered(client, entry, name, value) for name, value in named.items()]
        client.set_tag(run_id, _LINKED_PROMPTS, json.dumps(linked))
    for child in entry.children:
        _written(client, experiment, child, parent=run_id)
    client.set_terminated(run_id, _FINISHED)
    return run_id


def _log_values(client: MlflowClient, run_id: str, entry: Entry) -> None:
    now = int(time.time() * 1_000)
    params = [Param(name, _clipped(value)) for name, value in entry.params.items()]
    metrics = [Metric(p.name, p.value, now, p.step) for p in entry.metrics]
    for some in _batches(params):
        client.log_batch(run_id, params=some)
    for others in _batches(metrics):
        client.log_batch(run_id, metrics=others)


def _log_inputs(client: MlflowClient, run_id: str, entry: Entry) -> None:
    inputs = [
        DatasetInput(
            Dataset(
                name=f"{one.dataset}/{one.context}",  # shared-out splits have one digest
                digest=one.hash,
                source_type="lynx",
                source=json.dumps({"dataset": one.dataset, "split": one.context}),
                profile=json.dumps({"num_rows": one.n}),
            ),
            [InputTag("mlflow.data.context", one.context)],
        )
        for one in entry.inputs
    ]
    if inputs:
        client.log_inputs(run_id, inputs)


def _log_file(client: MlflowClient, run_id: str, place: str, source: bytes | Path) -> None:
    folder, _, name = place.rpartition("/")
    if isinstance(source, Path) and source.is_dir():
        client.log_artifacts(run_id, str(source), place)
        return
    if isinstance(source, Path) and source.name == name:
        client.log_artifact(run_id, str(source), folder or None)
        return
    with tempfile.TemporaryDirectory(prefix="lynx-") as scratch:
        path = Path(scratch) / name
        path.write_bytes(source if isinstance(source, bytes) else source.read_bytes())
        client.log_artifact(run_id, str(path), folder or None)


def _prompt_name(entry: Entry, predictor: str) -> str:
    parts = ("lynx", entry.tags["lynx.backbone"], entry.tags["lynx.dataset"], predictor)
    return ".".join(_NO_PROMPT_NAME.sub("-", part) for part in parts)


def _registered(
    client: MlflowClient, entry: Entry, name: str, messages: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """The prompt as a new version, unless the latest reads the same; as runs are tied to it.

    MLflow's own tie goes by the process's store, not by the client's.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = client.load_prompt(f"prompts:/{name}@latest", allow_missing=True)
        if found is None or found.template != messages:
            tags = {n: v for n, v in entry.tags.items() if n in ("lynx.variant", "lynx.artifact")}
            found = client.register_prompt(
                name, [dict(m) for m in messages], entry.tags["lynx.artifact"], tags
            )
    return {"name": name, "version": str(found.version)}


def _batches(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), _BATCH):
        yield values[start : start + _BATCH]


def _clipped(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"


def _one_line(error: Exception) -> str:
    return redact(" ".join(str(error).split()))[:300]

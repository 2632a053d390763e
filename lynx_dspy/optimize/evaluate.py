"""Evaluation that resumes: a program over a dataset, or given predictions, to a report."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import dspy

from lynx_dspy import datasets
from lynx_dspy.datasets import predictions
from lynx_dspy.datasets.hashing import file_hash, files_hash
from lynx_dspy.datasets.predictions import Prediction
from lynx_dspy.datasets.spider import suite_of
from lynx_dspy.engines import connect
from lynx_dspy.engines.base import Database
from lynx_dspy.errors import BadInput, ModelError
from lynx_dspy.grounding.documents import Documents
from lynx_dspy.grounding.recent import Recent
from lynx_dspy.optimize import journal, recording
from lynx_dspy.optimize.asking import Gate, Patience, Program, Reply, ask
from lynx_dspy.optimize.judge import Judge, Unscored, judge_for, read_result
from lynx_dspy.optimize.pool import Databases, Lease, Open
from lynx_dspy.optimize.questions import Questions, from_dataset, from_examples
from lynx_dspy.optimize.records import PREDICTIONS, UNAVAILABLE, Record, Report
from lynx_dspy.optimize.runconfig import describe_run, settle, sources_hash
from lynx_dspy.optimize.runner import Finished, Watch, run
from lynx_dspy.values import Outcome, Status

if TYPE_CHECKING:
    from lynx_dspy.optimize.ray_pool import RayPool

THREADS = "threads"
"""The engine that needs nothing else; see `evaluate`."""

_SUITE_RULES = ("spider", "spider-distinct")
_LOCAL = "local/"
_EXPORTS = {
    "bird": "predictions.bird.json",
    "spider": "predictions.spider.txt",
    "spider2": "predictions.spider2",
}


Observe = Callable[[dspy.Example, dspy.Prediction], None]


def evaluate(
    program: dspy.Module,
    dataset: str | Sequence[dspy.Example] | Questions,
    *,
    lm: dspy.LM | None = None,
    out: str | Path | None = None,
    data: str | Path = "",
    split: str = "",
    limit: int | None = None,
    ids: Collection[str] | None = None,
    workers: int = 1,
    deadline: float | None = None,
    ves: int = 0,
    without: Sequence[str] = (),
    artifact: str | None = None,
    patience: Patience | None = None,
    watch: Watch | None = None,
    observe: Observe | None = None,
    described: Sequence[str | Path] = (),
    engine: str | RayPool = THREADS,
) -> Report:
    """Run `program` over `dataset` and score it by the dataset's own rule.

    `dataset` is a name of `datasets.DATASETS` with its folder `data`, or examples
    (`datasets.examples.example`). `lm` is that of `dspy.settings` if not given. With `out` each
    finished question is kept there, and the same call goes on where it ended. `workers` threads
    ask at a time, one for local models; `deadline` is in seconds a question; `ves` is the number
    of timings for r_ves and ves. `without` and `artifact` say what the program is, for the
    records. `watch` is told of the progress, `observe` is shown each answer before its record is
    kept. `described` are sources that describe the databases (`engines.described`). `engine` says
    who asks: `threads` of this process, or `workers` processes of a Ray cluster (`ray` for the one
    that `RAY_ADDRESS` names, that runs here, or a new one; `ray://HOST:PORT`; `ray_pool.opened`).
    Raises `BadInput` for what cannot be run and `ModelError` when the model cannot be used.
    """
    questions = _questions(dataset, data, split, limit, ids)
    model = lm if lm is not None else dspy.settings.lm
    if model is None:
        raise ModelError("No language model is set. Pass lm=lynx.lm(...), or use dspy.context.")
    config = describe_run(
        "eval",
        questions,
        program=program,
        lm=model,
        without=tuple(without),
        artifact=artifact,
        deadline=deadline,
        ves=ves,
        described=sources_hash(described),
    )
    terms = Terms(
        dataset=questions.dataset,
        data=str(questions.data) if questions.data is not None else None,
        described=tuple(map(str, described)),
        deadline=deadline,
        ves=ves,
        patience=patience or Patience(),
    )
    gate = Gate()
    with ExitStack() as stack:
        folder = stack.enter_context(_folder(out))
        labour = None
        if engine != THREADS:
            from lynx_dspy.optimize.ray_pool import opened

            pool = stack.enter_context(opened(engine, workers))
            labour = pool.labour(program, model, terms, observe)
        asking = stack.enter_context(asker(program, terms, gate, workers, observe))
        stack.enter_context(asking_of(model))
        return run(
            questions.examples,
            asking,
            folder,
            settle(folder, config),
            workers=1 if str(model.model).startswith(_LOCAL) else max(1, workers),
            gate=gate,
            watch=watch,
            labour=labour,
        )


def score(
    dataset: str | Sequence[dspy.Example] | Questions,
    file: str | Path,
    *,
    data: str | Path = "",
    split: str = "",
    out: str | Path | None = None,
    workers: int = 0,
    ves: int = 0,
    watch: Watch | None = None,
) -> Report:
    """Score predictions in an official format (`datasets.predictions`); no model is asked.

    A question without a prediction scores 0. `workers` programs run at a time, one a core by
    default, and one in all with `ves`. Raises `BadInput` for files that do not fit.
    """
    questions = _questions(dataset, data, split, None, None)
    given = predictions.read(file, questions.examples)
    config = describe_run("score", questions, ves=ves, predictions_hash=_hash(Path(file)))
    # Timings are taken alone: a neighbour on the other core would be timed with them.
    workers = 1 if ves else workers or os.cpu_count() or 1
    with _folder(out) as folder, Databases(max(8, 2 * workers)) as open_ones:
        by_id = {one.id: p for one, p in zip(questions.examples, given, strict=True)}
        return run(
            questions.examples,
            _Scoring(by_id, open_ones, ves),
            folder,
            settle(folder, config),
            workers=workers,
            gate=Gate(),
            watch=watch,
        )


def export(out: str | Path, questions: Questions, kind: str) -> Path:
    """Write the programs in `out` in an official format beside them; the path.

    A question that was not answered has an empty program. Raises `UnknownName`.
    """
    out = Path(out)
    codes = {line["id"]: line["code"] for line in journal.lines(out / PREDICTIONS)}
    path = out / _EXPORTS.get(kind, f"predictions.{kind}")
    programs = [codes.get(one.id, "") for one in questions.examples]
    predictions.write(path, questions.examples, programs, kind)
    return path


@dataclass(frozen=True, slots=True)
class Terms:
    """How questions are asked, but for the program and the model; plain values."""

    dataset: str = ""
    data: str | None = None
    described: tuple[str, ...] = ()
    deadline: float | None = None
    ves: int = 0
    patience: Patience = field(default_factory=Patience)


@contextmanager
def asker(
    program: Program, terms: Terms, gate: Gate, workers: int = 1, observe: Observe | None = None
) -> Iterator[Callable[[dspy.Example], Finished]]:
    """What asks and judges a question; `workers` threads may call it. Inside `asking_of` a model.

    It raises `ModelError` where waiting cannot help, and `Stopped` when the gate stops the run.
    """
    opener = _opener(terms.dataset, terms.data, terms.described)
    with Databases(max(8, 2 * workers), opener) as open_ones:
        yield _Asking(
            program,
            open_ones,
            gate,
            deadline=terms.deadline,
            ves=terms.ves,
            patience=terms.patience,
            observe=observe,
        )


def asking_of(model: dspy.LM) -> AbstractContextManager[None]:
    """The settings under which a run asks `model`.

    Retries are the runner's: waiting for a service must not count against the deadline.
    """
    settings = {"lm": model.copy(num_retries=0), "max_history_size": 1}
    return cast(AbstractContextManager[None], dspy.context(**settings))


@dataclass(slots=True)
class _Asking:
    """Asks the program one question and judges the answer."""

    program: Program
    databases: Databases
    gate: Gate
    deadline: float | None
    ves: int
    patience: Patience
    observe: Observe | None = None
    documents: Recent[Documents] = field(default_factory=lambda: Recent(size=8))

    def __call__(self, example: dspy.Example) -> Finished:
        if not example.database:
            return Finished(recording.not_asked(example, example.reason or "no database"))
        with ExitStack() as stack:
            try:
                leases = _leases(example, self.databases, stack)
                inputs = self._inputs(example, leases[0].database)
            except BadInput as error:
                return Finished(recording.not_asked(example, str(error)))
            reply = ask(
                self.program,
                inputs,
                deadline=self.deadline,
                patience=self.patience,
                gate=self.gate,
            )
            reply = _with_outcome(reply, leases[0].database)
            if self.observe is not None and reply.answer is not None:
                self.observe(example, reply.answer)
            record = recording.with_reply(recording.blank(example), reply)
            if record["status"] != UNAVAILABLE:
                record = self._judged(record, example, reply, leases)
            return Finished(record, reply.service_failed)

    def _inputs(self, example: dspy.Example, database: Database) -> Mapping[str, Any]:
        paths: tuple[str, ...] = example.documents
        documents = self.documents.get(paths, lambda: _opened(paths)) if paths else None
        return {
            "question": example.question,
            "database": database,
            "documents": documents,
            "evidence": example.evidence,
        }

    def _judged(
        self, record: Record, example: dspy.Example, reply: Reply, leases: Sequence[Lease]
    ) -> Record:
        answer = reply.answer
        attempts = answer.get("attempts") or () if answer is not None else ()
        known = recording.known_outcomes(attempts)
        if answer is not None and not answer.outcome.truncated:
            known[answer.code] = answer.outcome
        try:
            judge = judge_for(example, [lease.database for lease in leases], known)
            if answer is None:
                return recording.without_answer(record)
            schema = leases[0].schema
            record = recording.with_scores(record, example, judge, schema, self.ves)
            if (knowledge := answer.get("knowledge")) is not None and knowledge.links:
                names = recording.names_of(knowledge.links)
                record["linked"] = recording.linked(example.gold_sql, names, schema)
            return recording.judge_attempts(record, attempts, judge)
        except Unscored as fault:
            return recording.without_scores(record, fault)


@dataclass(slots=True)
class _Scoring:
    """Judges a given prediction."""

    given: Mapping[str, Prediction | None]
    databases: Databases
    ves: int

    def __call__(self, example: dspy.Example) -> Finished:
        record = recording.blank(example)
        prediction = self.given[example.id] or Prediction()
        with ExitStack() as stack:
            try:
                leases = _leases(example, self.databases, stack) if example.database else []
                judge = self._judge(example, prediction, [lease.database for lease in leases])
                outcome = judge.outcome(prediction.code)
                record = recording.with_outcome(record, prediction.code, outcome)
                schema = leases[0].schema if leases else None
                return Finished(recording.with_scores(record, example, judge, schema, self.ves))
            except Unscored as fault:
                return Finished(recording.without_scores(record, fault))
            except BadInput as error:
                return Finished(recording.not_asked(example, str(error)))

    def _judge(
        self, example: dspy.Example, prediction: Prediction, databases: Sequence[Database]
    ) -> Judge:
        known = {"": Outcome(Status.NO_PROGRAM, error="there is no prediction")}
        if prediction.csv:
            known[prediction.code] = read_result(Path(prediction.csv))
        return judge_for(example, databases, known)


def _questions(
    dataset: str | Sequence[dspy.Example] | Questions,
    data: str | Path,
    split: str,
    limit: int | None,
    ids: Collection[str] | None,
) -> Questions:
    if isinstance(dataset, Questions):
        return dataset
    if isinstance(dataset, str):
        return from_dataset(dataset, data, split, limit=limit, ids=ids)
    return from_examples(dataset, limit=limit, ids=ids)


def _leases(example: dspy.Example, databases: Databases, stack: ExitStack) -> list[Lease]:
    """The question's database, then the others of its suite."""
    urls = [example.database]
    if example.rule in _SUITE_RULES:
        own = Path(example.database).resolve()
        urls += [str(path) for path in suite_of(example.database) if path.resolve() != own]
    return [stack.enter_context(databases.lease(url, example.db)) for url in urls]


def _opener(dataset: str, data: str | None, sources: Sequence[str | Path] = ()) -> Open:
    """Opens databases with the descriptions that their benchmark and `sources` have of them."""

    def opened(url: str, db: str) -> Database:
        from lynx_dspy.engines.described import DescribedDatabase, described

        database = connect(url)
        if data is not None and not url.startswith("metadata:"):
            texts = datasets.describe(dataset, Path(data), db)
            database = DescribedDatabase(database, texts) if texts else database
        return described(database, sources, db)

    return opened


def _opened(paths: Sequence[str]) -> Documents:
    """Several documents as one collection."""
    files = (Documents.from_file(path, embedder=None) for path in paths)
    return Documents(passage for file in files for passage in file.passages)


def _with_outcome(reply: Reply, database: Database) -> Reply:
    """The reply of a program that only writes code, with what running it gives."""
    answer = reply.answer
    if answer is not None and answer.get("outcome") is None:
        answer.code = str(answer.get("code") or "")
        answer.outcome = database.execute(answer.code)
    return reply


def _hash(path: Path) -> str | None:
    if path.is_dir():
        return files_hash(p for p in path.iterdir() if p.is_file())
    return file_hash(path)


@contextmanager
def _folder(out: str | Path | None) -> Iterator[Path]:
    """The folder of the run; a temporary one if none is named."""
    if out is not None:
        yield Path(out)
        return
    with tempfile.TemporaryDirectory(prefix="lynx-run-") as folder:
        yield Path(folder)

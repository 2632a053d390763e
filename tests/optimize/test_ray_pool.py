"""Questions on Ray: each is finished once, whoever is lost; the figures are those of threads."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lynx_dspy as lynx
from lynx_dspy.errors import BadInput, ModelError, UnknownName
from lynx_dspy.optimize import ray_pool
from lynx_dspy.optimize.asking import Gate, Patience, SharedGate
from lynx_dspy.optimize.evaluate import Terms
from lynx_dspy.optimize.ray_pool import MOST_LOSSES, RayPool, _Round, opened
from lynx_dspy.optimize.ray_worker import Asker, Told, Valve, job_text
from lynx_dspy.optimize.records import read_run
from lynx_dspy.optimize.runner import Finished

HASTY = Patience(retries=2, first_wait=0.01)
SERVING = Path(__file__).parents[1] / "lm" / "serving.py"


class RayError(Exception):
    pass


class FakeRay:
    """Ray in one process: workers answer in any order, and are lost when `lost()` says so."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=type("X", (RayError,), {}))

    def __init__(self, lost: Callable[[str], bool], chance: random.Random) -> None:
        self.lost, self.chance = lost, chance
        self.alive = 0
        self.asked: list[str] = []

    def remote(self, kind: type) -> Any:
        self.kind = kind
        return self

    def options(self, **options: Any) -> Any:
        return SimpleNamespace(remote=lambda *given: FakeActor(self, self.kind))

    def wait(self, refs: list[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        done = [self.chance.choice(refs)] if refs else []
        return done, [ref for ref in refs if ref not in done]

    def get(self, ref: tuple[Any, str]) -> Told:
        actor, id = ref
        if actor.dead or self.lost(id):
            raise RayError(f"the worker of {id!r} has died")
        return Told({"id": id}) if id else Told()

    def kill(self, actor: Any, no_restart: bool) -> None:
        if not actor.dead and actor.kind is Asker:
            self.alive -= 1
        actor.dead = True

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}


class FakeActor:
    def __init__(self, ray: FakeRay, kind: type) -> None:
        self.kind, self.dead = kind, False
        ray.alive += kind is Asker
        self.begin = SimpleNamespace(remote=lambda job: (self, ""))
        self.ask = SimpleNamespace(remote=lambda fields: self._ask(ray, fields["id"]))

    def _ask(self, ray: FakeRay, id: str) -> tuple[FakeActor, str]:
        ray.asked.append(id)
        return self, id

    __hash__ = object.__hash__


def examples(n: int) -> list[dspy.Example]:
    names = ("db", "dialect", "difficulty", "question", "gold_sql", "gold_csv")
    fields = dict.fromkeys(names, "")
    return [dspy.Example(id=f"q{k}", **fields) for k in range(n)]


def asked(pool: RayPool, n: int) -> list[Finished]:
    return list(_Round(pool, "{}", None).asked(examples(n)))


@given(
    n=st.integers(0, 20),
    workers=st.integers(1, 6),
    seed=st.integers(0, 999),
    losses=st.dictionaries(st.integers(0, 19), st.integers(1, MOST_LOSSES - 1), max_size=6),
)
def test_each_question_is_finished_once_whoever_is_lost(
    n: int, workers: int, seed: int, losses: dict[int, int]
) -> None:
    left = Counter({f"q{k}": times for k, times in losses.items() if k < n})
    expected = sum(left.values())

    def lost(id: str) -> bool:
        left[id] -= 1
        return left[id] >= 0

    ray = FakeRay(lost, random.Random(seed))
    pool = RayPool(ray, workers)
    done = asked(pool, n)
    assert sorted(f.record["id"] for f in done) == sorted(f"q{k}" for k in range(n))
    assert not any(f.service_failed for f in done)
    assert len(ray.asked) == n + expected, "a loss costs the question in flight and no other"
    assert ray.alive <= min(workers, n)
    pool.close()
    assert ray.alive == 0


def test_a_question_that_costs_every_worker_is_given_up() -> None:
    ray = FakeRay(lambda id: id == "q1", random.Random(1))
    done = {f.record["id"]: f for f in asked(RayPool(ray, 2), 3)}
    assert done["q1"].service_failed and done["q1"].record["status"] == "unavailable"
    assert f"{MOST_LOSSES} Ray workers were lost" in done["q1"].record["error"]
    assert not done["q0"].service_failed and ray.asked.count("q1") == MOST_LOSSES


def test_workers_that_do_not_start_end_the_run() -> None:
    ray = FakeRay(lambda id: id == "", random.Random(1))
    with pytest.raises(ModelError, match=r"do not start .*pip install 'lynx-dspy\[ray\]'"):
        asked(RayPool(ray, 2), 3)


def test_leaving_early_ends_the_work_under_way_and_keeps_idle_workers() -> None:
    ray = FakeRay(lambda id: False, random.Random(1))
    pool = RayPool(ray, 3)
    work = _Round(pool, "{}", None).asked(examples(9))
    next(work)
    work.close()  # type: ignore[attr-defined]
    assert ray.alive < 3
    assert len(asked(pool, 5)) == 5


def test_a_refusal_there_is_raised_here(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = FakeRay(lambda id: False, random.Random(1))
    monkeypatch.setattr(ray, "get", lambda ref: Told(refusal="no such model", kind="model"))
    with pytest.raises(ModelError, match="no such model"):
        asked(RayPool(ray, 2), 3)


def test_a_valve_shuts_every_gate() -> None:
    valve = Valve()
    first, second = (SharedGate(valve.left, valve.shut) for _ in range(2))
    first.shut(0.2)
    began = time.monotonic()
    second.pass_through()
    assert time.monotonic() - began > 0.1
    assert Gate().left() == 0.0


def test_unknown_engines_are_told() -> None:
    with pytest.raises(UnknownName, match="Known: threads, ray, ray://HOST:PORT"):
        lynx.evaluate(
            lynx.Lynx(), examples(1), lm=lynx.lm("openai/x@http://127.0.0.1:1/v1"), engine="spark"
        )


def test_without_ray_the_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BadInput, match=r"pip install 'lynx-dspy\[ray\]'"), opened("ray", 1):
        pass


# --- with the workers' own code, in this process ---


class HereRay(FakeRay):
    """Ray whose workers are objects of this process: what travels is real, the machines are not."""

    def __init__(self) -> None:
        super().__init__(lambda id: False, random.Random(3))
        self.jobs: list[str] = []

    def options(self, **options: Any) -> Any:
        return SimpleNamespace(remote=lambda *given: HereActor(self, self.kind(*given)))

    def get(self, ref: Any) -> Any:
        return ref.result

    def kill(self, actor: Any, no_restart: bool) -> None:
        actor.ended = True


class HereActor:
    def __init__(self, ray: HereRay, worker: Any) -> None:
        self.ray, self.worker, self.ended = ray, worker, False

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=lambda *given: self._called(name, given))

    def _called(self, name: str, given: tuple[Any, ...]) -> Any:
        if name == "begin":
            self.ray.jobs += given
        if name == "ask":
            given = (json.loads(json.dumps(given[0])),)
            given[0]["documents"] = tuple(given[0]["documents"])
        return HereRef(getattr(self.worker, name)(*given))


class HereRef:
    def __init__(self, result: Any) -> None:
        self.result = result


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> RayPool:
    ray = HereRay()
    monkeypatch.setattr(ray_pool, "_ray", lambda: ray)
    return RayPool(ray, 2)


def test_workers_give_the_records_that_threads_give(
    here: RayPool, serve: Callable[..., Any], counting: ModuleType, tmp_path: Path
) -> None:
    server, questions = serve(), counting.questions(tmp_path, 12)
    engines: list[tuple[str, Any]] = [("threads", "threads"), ("pool", here)]
    for out, engine in engines:
        lynx.evaluate(
            counting.program(), questions, lm=model(server), out=tmp_path / out, engine=engine
        )
    assert facts(tmp_path / "pool") == facts(tmp_path / "threads")
    job = json.loads(here.ray.jobs[0])
    assert job["program"].keys() == {"plain"} and len(here.ray.jobs) == 2


def test_a_compile_comes_to_the_same_end(
    here: RayPool, serve: Callable[..., Any], counting: ModuleType, tmp_path: Path
) -> None:
    server, questions = serve(), counting.questions(tmp_path, 24)
    made = {
        out: lynx.compile(
            counting.program(),
            questions,
            lm=model(server),
            out=tmp_path / out,
            params={"sets": 1, "sizes": "2", "rungs": "1"},
            engine=engine,
        )
        for out, engine in (("threads", "threads"), ("pool", here))
    }
    one, other = made["threads"], made["pool"]
    assert (one.winner, one.scores, one.verdict) == (other.winner, other.scores, other.verdict)
    assert (one.spent.calls, one.spent.tokens) == (other.spent.calls, other.spent.tokens)
    asked = [json.loads(job)["program"].keys() for job in here.ray.jobs]
    assert {"traced"} in asked and {"plain"} in asked


def test_a_worker_with_other_code_or_another_model_is_refused(
    here: RayPool, serve: Callable[..., Any], counting: ModuleType, tmp_path: Path
) -> None:
    asker = Asker(Valve())
    job = json.loads(job_text(counting.program(), model(serve()), Terms(), False))
    told = asker.begin(json.dumps({**job, "code": "other"}))
    assert told.kind == "input" and "another version" in told.refusal
    told = asker.begin(json.dumps({**job, "about": {**job["about"], "digest": "f00"}}))
    assert told.kind == "model" and "another model" in told.refusal
    assert asker.begin(json.dumps(job)) == Told()


# --- on a real cluster of two workers on this machine ---


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster with two CPUs, without the parts that serve pages only."""
    pytest.importorskip("ray", reason="needs the extra `ray`")
    script = (
        "import sys, ray; from ray.cluster_utils import Cluster; c = Cluster(initialize_head=True, "
        "head_node_args={'num_cpus': 2, 'include_dashboard': False, 'no_monitor': True, "
        "'include_log_monitor': False}); print(c.address, flush=True); sys.stdin.read(); "
        "c.shutdown()"
    )
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    # A busy machine: parts may take long to register, and workers are no background jobs.
    environment |= {"RAY_agent_register_timeout_ms": "200000", "RAY_worker_niceness": "0"}
    head = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert head.stdout is not None
    address = head.stdout.readline().strip()
    if not address:
        pytest.skip("Ray does not start on this machine")
    yield address
    head.communicate("", timeout=60)


@pytest.fixture
def joined(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", cluster)


@pytest.fixture
def serve(counting: ModuleType) -> Iterator[Callable[..., Any]]:
    """Starts servers that answer as the counting model does."""
    serving = load(SERVING)
    begun: list[Any] = []

    def start(seconds: float = 0.0, before: Callable[[int], int | None] = lambda k: None) -> Any:
        def say(text: str) -> str | int:
            k = int(text.rpartition("batch ")[2].split()[0])
            return before(k) or str(counting.mostly_right(k))

        begun.append(serving.Server(say, seconds))
        return begun[-1]

    yield start
    for server in begun:
        server.stop()


def model(server: Any) -> dspy.LM:
    return lynx.lm(f"openai/tiny@{server.url}", cache=False)


def facts(out: Path) -> dict[str, Any]:
    return {
        r["id"]: (r["code"], r["status"], r["scores"], r["usage"], r["rounds"], r["attempts"])
        for r in read_run(out).records()
    }


def pids() -> list[int]:
    """The worker processes that ask."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                line = (place / "cmdline").read_bytes()
            except OSError:
                continue
            found += [int(place.name)] if line.startswith(b"ray::Asker") else []
    return found


@pytest.mark.slow
def test_the_figures_are_those_of_threads(
    joined: None, serve: Callable[..., Any], counting: ModuleType, tmp_path: Path
) -> None:
    server, questions = serve(), counting.questions(tmp_path, 24)
    seen: list[str] = []
    for out, engine in (("threads", "threads"), ("ray", "ray")):
        lynx.evaluate(
            counting.program(),
            questions,
            lm=model(server),
            out=tmp_path / out,
            workers=2,
            engine=engine,
            observe=lambda example, answer: seen.append(f"{example.id} {answer.code}"),
        )
    assert facts(tmp_path / "ray") == facts(tmp_path / "threads")
    one, other = (read_run(tmp_path / name).report for name in ("ray", "threads"))
    assert one and other
    assert (one.scores, one.by, one.statuses) == (other.scores, other.by, other.statuses)
    assert sorted(seen[:24]) == sorted(seen[24:])

    # The same folder goes on with either engine, and asks nothing again.
    asked_before = len(server.asked)
    lynx.evaluate(
        counting.program(), questions, lm=model(server), out=tmp_path / "threads", engine="ray"
    )
    assert len(server.asked) == asked_before


@pytest.mark.slow
def test_a_killed_worker_costs_the_question_in_flight(
    joined: None, serve: Callable[..., Any], counting: ModuleType, tmp_path: Path
) -> None:
    killed: list[int] = []

    def kill_once(k: int) -> None:
        if k == 7 and not killed:
            killed.append(random.choice(pids()))
            os.kill(killed[0], signal.SIGKILL)

    server, questions = serve(0.05, kill_once), counting.questions(tmp_path, 20)
    with_ray = 0
    for out, engine in (("ray", "ray"), ("threads", "threads")):
        lynx.evaluate(
            counting.program(),
            questions,
            lm=model(server),
            out=tmp_path / out,
            workers=2,
            engine=engine,
        )
        with_ray = with_ray or len(server.asked)
    assert killed and facts(tmp_path / "ray") == facts(tmp_path / "threads")
    lines = (tmp_path / "ray" / "predictions.jsonl").read_text().splitlines()
    assert len({json.loads(line)["id"] for line in lines}) == len(lines) == 20
    more = by_question(server.asked[:with_ray]) - by_question(server.asked[with_ray:])
    assert len(more) <= 1, "more than the question in flight was asked again"


def by_question(prompts: list[str]) -> Counter[str]:
    return Counter(text.rpartition("batch ")[2].split()[0] for text in prompts)


@pytest.mark.slow
def test_a_service_that_wants_peace_gets_it_from_all_workers(
    joined: None, serve: Callable[..., Any], counting: ModuleType, tmp_path: Path
) -> None:
    refused: list[int] = []
    times: list[float] = []

    def busy_once(k: int) -> int | None:
        times.append(time.monotonic())
        if k == 4 and not refused:
            refused.append(len(times))
            return 429
        return None

    report = lynx.evaluate(
        counting.program(),
        counting.questions(tmp_path, 12),
        lm=model(serve(0.0, busy_once)),
        out=tmp_path / "run",
        workers=2,
        engine="ray",
        patience=HASTY,
    )
    assert refused and not any(report.unscored.values())
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert max(gaps[refused[0] - 1 :]) > 0.8, "the other worker went on asking"


@pytest.mark.slow
def test_ctrl_c_ends_the_remote_work(
    cluster: str, serve: Callable[..., Any], counting: ModuleType, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    counting.build(data)
    with (data / "test.jsonl").open("w") as stream:
        for k in range(40):
            question = f"How many numbers of batch {k} count?"
            fields = {"id": f"q{k}", "question": question, "database": "numbers.sqlite"}
            stream.write(json.dumps({**fields, "gold_sql": counting.gold(k)}) + "\n")
    server = serve(0.3)
    command = [sys.executable, "-m", "lynx_dspy", "eval", "--dataset", "jsonl", "--data", "data"]
    command += ["--out", "run", "--lm", f"openai/tiny@{server.url}", "--workers", "2"]
    run = subprocess.Popen(
        [*command, "--engine", "ray"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "RAY_ADDRESS": cluster,
            "PYTHONPATH": str(Path(lynx.__file__).parents[1]),
        },
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    until = time.monotonic() + 240
    while len(server.asked) < 4 and time.monotonic() < until and run.poll() is None:
        time.sleep(0.05)
    assert pids(), run.communicate(timeout=5)[1] if run.poll() is not None else "no worker"
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130 and "interrupted" in said
    for _ in range(100):
        if not pids():
            break
        threading.Event().wait(0.1)
    assert not pids()
    after = len(server.asked)
    threading.Event().wait(0.7)
    assert len(server.asked) == after
    assert (tmp_path / "run" / "predictions.jsonl").exists()


def test_the_module_names_the_only_file_that_imports_ray() -> None:
    root = Path(lynx.__file__).parent
    importing = [p.name for p in root.rglob("*.py") if "import ray\n" in p.read_text()]
    assert importing == [Path(ray_pool.__file__).name]

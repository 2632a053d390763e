"""Questions asked by the workers of a Ray cluster; the only file that imports ray.

The driver hands out one question at a time to each worker and gets its record back; it alone writes
to the run's folder. Workers are actors: a process each, with the program, the model and the open
databases. One that is lost is replaced, and its question is asked again.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any, cast

import dspy

from lynx_dspy.errors import BadInput, ModelError, UnknownName
from lynx_dspy.optimize import recording
from lynx_dspy.optimize.evaluate import THREADS, Observe, Terms
from lynx_dspy.optimize.ray_worker import Asker, Told, Valve, job_text
from lynx_dspy.optimize.records import Record
from lynx_dspy.optimize.runner import Finished, Labour

RAY = "ray"

MOST_LOSSES = 3
"""Workers that one question may cost before it is given up as unavailable."""

_MOST_STILLBORN = 3
_START_SECONDS = 600.0
"""How long to wait for a first worker: a cluster may have to start machines."""

_LOOK_SECONDS = 1.0

Actor = Any
Ref = Any


@contextmanager
def opened(engine: str | RayPool, workers: int) -> Iterator[RayPool]:
    """A pool of `workers` processes on the cluster that `engine` names; closed at the end.

    `ray` is the cluster of `RAY_ADDRESS`, else one that runs on this machine, else a new one on it
    that ends with the block; `ray://HOST:PORT` one elsewhere. A pool is taken as it is, and left
    open. Raises `BadInput` where there is no such cluster, or no Ray.
    """
    if isinstance(engine, RayPool):
        yield engine
        return
    if engine != RAY and not engine.startswith("ray://"):
        raise UnknownName("engine", engine, (THREADS, RAY, "ray://HOST:PORT"))
    ray = _ray()
    was_there = ray.is_initialized()
    if not was_there:
        _join(ray, engine, workers)
    pool = RayPool(ray, max(1, workers))
    try:
        yield pool
    finally:
        pool.close()
        if not was_there:
            ray.shutdown()


class RayPool:
    """Workers on a cluster that is joined already; they stay between two runs."""

    def __init__(self, ray: Any, workers: int) -> None:
        self._ray = ray
        self._workers = workers
        self._actors: list[Actor] = []
        self._stillborn = 0
        self._valve: Actor | None = None

    def labour(
        self, program: dspy.Module, model: dspy.LM, terms: Terms, observe: Observe | None
    ) -> Labour:
        """What asks `program` for `runner.run`. Raises `BadInput` for what cannot be sent."""
        job = job_text(program, model, terms, observe is not None)
        return lambda todo: _Round(self, job, observe).asked(todo)

    def close(self) -> None:
        """End all workers, whatever they do."""
        for actor in (*self._actors, *filter(None, [self._valve])):
            self.end(actor)
        self._actors, self._valve = [], None

    @property
    def ray(self) -> Any:
        """The module, or what stands for it."""
        return self._ray

    def hired(self, most: int) -> list[Actor]:
        """Workers, as many as are wanted and not more than `most`; they may be starting still."""
        while len(self._actors) < min(self._workers, most):
            self._actors.append(self._new())
        return self._actors[:most]

    def end(self, actor: Actor) -> None:
        """End one worker."""
        self._actors = [one for one in self._actors if one is not actor]
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(actor, no_restart=True)

    def begun(self) -> None:
        """A worker has started."""
        self._stillborn = 0

    def stillborn(self, error: Exception) -> None:
        """A worker has ended before it was ready. Raises `ModelError` when that goes on."""
        self._stillborn += 1
        if self._stillborn >= _MOST_STILLBORN:
            raise ModelError(
                f"Ray's workers do not start ({_gist(error)}). Each machine of the cluster "
                "needs this version: pip install 'lynx-dspy[ray]'."
            )

    def _new(self) -> Actor:
        ray = self._ray
        if self._valve is None:
            self._valve = ray.remote(Valve).options(num_cpus=0, max_restarts=-1).remote()
        asker = ray.remote(Asker).options(num_cpus=1, scheduling_strategy="SPREAD")
        return asker.remote(Reach(self._valve), str(Path.cwd()))


class Reach:
    """Asks the valve from a worker; a valve that is away holds nobody back."""

    def __init__(self, valve: Actor) -> None:
        self._valve = valve

    def left(self) -> float:
        ray = _ray()
        with suppress(ray.exceptions.RayError):
            return float(ray.get(self._valve.left.remote()))
        return 0.0

    def shut(self, seconds: float) -> None:
        ray = _ray()
        with suppress(ray.exceptions.RayError):
            ray.get(self._valve.shut.remote(seconds))


class _Round:
    """One run's questions on a pool."""

    def __init__(self, pool: RayPool, job: str, observe: Observe | None) -> None:
        self._pool, self._job, self._observe = pool, job, observe
        self._ray = pool.ray
        self._losses: Counter[str] = Counter()
        self._waiting: deque[dspy.Example] = deque()
        self._flight: dict[Ref, tuple[Actor, dspy.Example | None]] = {}

    def asked(self, todo: Sequence[dspy.Example]) -> Iterator[Finished]:
        """Each question's record as it comes. Leaving the iteration ends the work under way."""
        self._waiting.extend(todo)
        self._hire()
        waits_since = monotonic()
        try:
            while self._waiting or self._asks():
                done, _ = self._ray.wait(list(self._flight), timeout=_LOOK_SECONDS)
                for ref in done:
                    yield from self._landed(ref)
                if done or self._asks():
                    waits_since = monotonic()
                elif monotonic() - waits_since > _START_SECONDS:
                    raise ModelError(self._no_room())
        finally:
            for actor, example in self._flight.values():
                if example is not None:
                    self._pool.end(actor)

    def _landed(self, ref: Ref) -> Iterator[Finished]:
        actor, example = self._flight.pop(ref)
        try:
            told: Told = self._ray.get(ref)
        except self._ray.exceptions.RayTaskError:
            raise  # a fault of this package, as in a thread
        except self._ray.exceptions.RayError as error:
            self._pool.end(actor)
            yield from self._lost(example, error)
            self._hire()
            return
        told.raise_refusal()
        self._send(actor)
        if example is None:
            self._pool.begun()
        elif told.record is not None:
            if self._observe is not None and told.answer is not None:
                self._observe(example, told.answer)
            yield Finished(cast(Record, told.record), told.service_failed)

    def _lost(self, example: dspy.Example | None, error: Exception) -> Iterator[Finished]:
        if example is None:
            self._pool.stillborn(error)
            return
        self._losses[example.id] += 1
        if self._losses[example.id] < MOST_LOSSES:
            self._waiting.appendleft(example)
            return
        reason = f"{MOST_LOSSES} Ray workers were lost on it ({_gist(error)})"
        yield Finished(recording.not_asked(example, reason), service_failed=True)

    def _send(self, actor: Actor) -> None:
        if self._waiting:
            example = self._waiting.popleft()
            self._flight[actor.ask.remote(example.toDict())] = (actor, example)

    def _hire(self) -> None:
        """See that there is a worker for each question, as far as the pool goes."""
        at_work = [actor for actor, _ in self._flight.values()]
        for actor in self._pool.hired(len(self._waiting) + self._asks()):
            if not any(actor is one for one in at_work):
                self._flight[actor.begin.remote(self._job)] = (actor, None)

    def _asks(self) -> int:
        return sum(example is not None for _, example in self._flight.values())

    def _no_room(self) -> str:
        has = self._ray.cluster_resources().get("CPU", 0)
        return (
            f"No Ray worker came up in {_START_SECONDS / 60:.0f} minutes: each wants 1 CPU, and "
            f"the cluster has {has:g}, in part in use. What is done is kept; run again to go on."
        )


def _join(ray: Any, engine: str, workers: int) -> None:
    """Become the driver of a cluster. Raises `BadInput`."""
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    named = os.environ.get("RAY_ADDRESS") if engine == RAY else engine
    # Ray reports how it is used to its makers unless it is told not to.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters of them is in the error
            ray.init(address=engine if engine != RAY else "auto", **quiet)
    except (ConnectionError, ValueError, ImportError, TimeoutError) as error:
        if named:
            raise BadInput(f"No Ray cluster at {named}: {_gist(error)}") from None
        _start(ray, workers, quiet)


def _start(ray: Any, workers: int, quiet: dict[str, Any]) -> None:
    """Start a cluster of this machine alone, with room for all workers."""
    try:
        ray.init(address="local", num_cpus=max(1, workers), include_dashboard=False, **quiet)
    except Exception as error:  # noqa: BLE001 - Ray raises plain Exception when it does not start
        raise BadInput(f"Ray does not start on this machine: {_gist(error)}") from None


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise BadInput("Ray is not installed. Run: pip install 'lynx-dspy[ray]'") from None
    return ray


def _gist(error: Exception) -> str:
    """The line of an error that says most: Ray quotes what a worker raised at the end."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[-1 if "creation task" in lines[0] else 0][:300]

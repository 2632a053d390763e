"""A model that learns from demos, and a compile with it over the counting dataset.

As a script, `python compiling.py FOLDER`, it is what the tests kill and start again.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import Any

import counting
import dspy

import lynx_dspy as lynx

PARAMS: dict[str, Any] = {"sets": 3, "sizes": "2,3", "rungs": "0.5,1"}


class Pupil(counting.CountingEngine):
    """Right for every third question; for another third once it is shown `needs` demos, and for
    all once it is shown `needs_for_all`."""

    def __init__(
        self, needs: int = 2, needs_for_all: int = 0, spoiled_by: str = "", **options: Any
    ) -> None:
        super().__init__(**options)
        self.needs = (0, needs, needs_for_all or needs)
        self.spoiled_by = spoiled_by
        self.prompts: list[str] = []

    def complete(self, request: dspy.lm15.Request) -> dspy.lm15.Response:
        turns = [m.text or "" for m in request.messages]
        self.prompts.append("\n".join(turns))
        shown = sum("```sql" in turn for turn in turns)
        spoiled = bool(self.spoiled_by) and self.spoiled_by in self.prompts[-1]
        self.say = lambda k: self._answer(k, shown >= self.needs[k % 3] and not spoiled)
        return super().complete(request)

    @staticmethod
    def _answer(k: int, right: bool) -> str:
        return f"```sql\n{counting.gold(k if right else k + 1)}\n```"


WORDS = "Count the numbers that are AT LEAST k % 9."
"""An instruction that makes a Scholar right."""


class Scholar(counting.CountingEngine):
    """Right for every question of an odd number; for all once its instructions say how, or it is
    shown a demo. A sampled reply is right by the luck of its seed.

    `crash_at` is the number of the call at which the machine dies.
    """

    supported_params = frozenset({"seed"})

    def __init__(self, crash_at: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self.crash_at = crash_at
        self.prompts: list[str] = []
        self.systems: list[str] = []

    def complete(self, request: dspy.lm15.Request) -> dspy.lm15.Response:
        die(self.crash_at, len(self.prompts))
        turns = [m.text or "" for m in request.messages]
        self.prompts.append("\n".join(turns))
        self.systems.append(str(request.system))
        taught = WORDS in self.systems[-1] or any("```sql" in turn for turn in turns)
        luck = request.config.seed or 0 if request.config.temperature else 0
        self.say = lambda k: Pupil._answer(k, taught or (k + luck) % 2 == 1)
        return super().complete(request)


class Writer:
    """A model that writes `text`, whatever it is asked; `refuses` is an error that it raises."""

    supported_params: frozenset[str] = frozenset()

    def __init__(
        self, text: str = WORDS, crash_at: int = 0, refuses: Exception | None = None
    ) -> None:
        self.text, self.crash_at, self.refuses = text, crash_at, refuses
        self.prompts: list[str] = []

    def complete(self, request: dspy.lm15.Request) -> dspy.lm15.Response:
        die(self.crash_at, len(self.prompts))
        self.prompts.append("\n".join(m.text or "" for m in request.messages))
        if self.refuses is not None:
            raise self.refuses
        return answered(self.text)

    def __deepcopy__(self, memo: dict[int, Any]) -> Writer:
        return self


def answered(text: str) -> dspy.lm15.Response:
    """A response of 55 tokens that says `text`."""
    return dspy.lm15.Response(
        id=None,
        model="writer",
        message=dspy.lm15.Message.assistant(text),
        finish_reason="stop",
        usage=dspy.lm15.Usage(input_tokens=50, output_tokens=5, total_tokens=55),
    )


class Death(BaseException):
    """The end of the process, as far as a test can go without one."""


def die(at: int, calls: int) -> None:
    """Raise `Death` where the call after `calls` others is number `at`."""
    if at and calls + 1 >= at:
        raise Death


def program() -> lynx.Lynx:
    """Writes in one call."""
    return counting.program(max_rounds=0)


def compiled(folder: Path, out: str, engine: Pupil, n: int = 14, **options: Any) -> Any:
    """A compile of `n` questions into `folder/out`."""
    options = {"params": PARAMS, **options}
    examples = counting.questions(folder, n)
    return lynx.compile(program(), examples, lm=counting.model(engine), out=folder / out, **options)


def main() -> None:
    """For each line "OUT BYTES" on stdin, compile in a fork: its id, and its status at its end.

    No file may grow beyond BYTES, as on a disk that is full; 0 is no limit.
    """
    folder = Path(sys.argv[1])
    lynx.evaluate(program(), counting.questions(folder, 1), lm=counting.model(Pupil()))
    for line in sys.stdin:
        out, most = line.split()
        child = os.fork()
        if not child:
            if int(most):
                resource.setrlimit(resource.RLIMIT_FSIZE, (int(most), resource.RLIM_INFINITY))
            compiled(folder, out, Pupil(seconds=0.01, log=folder / f"{out}.log"))
            os._exit(0)
        counting.tell(child)
        counting.tell(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    main()

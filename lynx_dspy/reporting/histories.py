"""How long the Critic's memory of a question was, replayed from its recorded attempts."""

from __future__ import annotations

from collections.abc import Sequence

from lynx_dspy import config
from lynx_dspy.modules.critic import Critic, Memory, render_attempt
from lynx_dspy.optimize.records import AttemptRecord
from lynx_dspy.tokens import estimate
from lynx_dspy.values import Attempt, FailureClass, Outcome, Status


def lengths(attempts: Sequence[AttemptRecord], budget: int) -> list[tuple[int, int]]:
    """Estimated tokens of (append-only, condensed) history after each failed round.

    `budget` is the run's `history_tokens`. No model is asked: the Critic condenses by rule.
    """
    critic, memory = Critic(), Memory()
    appended: list[str] = []
    found: list[tuple[int, int]] = []
    with config.using(config.LynxConfig(stages=frozenset(), history_tokens=budget)):
        for attempt in failed_rounds(attempts):
            text = render_attempt(attempt)
            appended.append(text)
            memory = Memory(critic.condensed(memory), text)
            found.append((estimate("\n".join(appended)), estimate(memory.text)))
    return found


def failed_rounds(attempts: Sequence[AttemptRecord]) -> list[Attempt]:
    """The last attempt of each round, as far as it failed or was rejected."""
    last = {record["round"]: record for record in attempts}
    return [_attempt(record) for record in last.values() if record["failure_class"]]


def _attempt(record: AttemptRecord) -> Attempt:
    outcome = Outcome(Status(record["status"]), error=record["error"])
    failure = FailureClass(record["failure_class"]) if record["failure_class"] else None
    return Attempt(record["round"], record["code"], outcome, record["source"], failure)

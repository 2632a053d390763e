"""What to tell the writer of a stage's instructions about one call of that stage (GEPA's feedback).

Each stage is told of its own work: a formulation of its program, a grounding of the names it left
out, a repair of the error it was to mend, advice of the repair that followed, a verdict of the
truth. Golds are spoken of by names and clauses alone, as in `metrics.feedback`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from lynx_dspy.errors import BadInput
from lynx_dspy.metrics.feedback import feedback
from lynx_dspy.metrics.linking import names_used, parsed
from lynx_dspy.modules.nearest import Fields
from lynx_dspy.optimize.harvest import Case, StageCall
from lynx_dspy.optimize.records import AttemptRecord
from lynx_dspy.values import Schema

_RAN = ("ok", "empty")
_ERROR_CHARS = 200


def advice(case: Case, stage: str, outputs: Fields, schema: Schema | None) -> str:
    """What came of the call of `stage` that gave `outputs`, then of the whole answer.

    Without a `schema` names and clauses are not compared.
    """
    own = _OF_STAGE.get(stage)
    if not case.record["scores"]:
        return "This question could not be judged. Learn nothing from it."
    parts = [own(case, outputs, schema) if own else "", _end(case, schema)]
    return " ".join(part for part in parts if part)


def _end(case: Case, schema: Schema | None) -> str:
    if case.right:
        return "The final answer is right."
    code = case.record["code"]
    if not code.strip():
        return "The final answer is wrong: it holds no program."
    return f"The final answer is wrong. {_wrong(case, code, schema)}".strip()


def _formulate(case: Case, outputs: Fields, schema: Schema | None) -> str:
    code = str(outputs.get("code") or "")
    if not code.strip():
        return "The reply holds no program."
    place = case.attempt_of(code)
    if place is None:
        return ""
    tried = case.attempts[place]
    if tried["right"]:
        return "This program is right."
    told = f"This program {_failing(tried)}."
    same = code.strip() == case.record["code"].strip()  # the end says the rest
    return told if same else f"{told} {_difference(case, code, schema)}".strip()


def _ground(case: Case, outputs: Fields, schema: Schema | None) -> str:
    tree = parsed(_gold(case), schema) if schema is not None and _gold(case) else None
    if tree is None or schema is None:
        return ""
    wanted = names_used(tree, schema)
    said = set(re.findall(r"\w+", str(outputs.get("grounding", "")).casefold()))
    needed = sorted({*wanted.tables, *wanted.columns})
    missed = [name for name in needed if name.rpartition(".")[2].casefold() not in said]
    if not missed:
        return "The grounding names all that is needed."
    return "The grounding leaves out " + ", ".join(f"`{name}`" for name in missed) + "."


def _repair(case: Case, outputs: Fields, schema: Schema | None) -> str:
    place = case.attempt_of(str(outputs.get("code") or ""))
    if place is None:
        return "The reply holds no program that could be run."
    after = case.attempts[place]
    earlier = [a for a in case.attempts if a["round"] == after["round"] - 1]
    if after["right"]:
        return "The repaired program is right."
    if after["status"] not in _RAN:
        same = bool(earlier) and earlier[-1]["error"] == after["error"]
        return f"The error is still the same: {_error(after)}." if same else _told_of(after)
    gone = bool(earlier) and earlier[-1]["status"] not in _RAN
    return "The error is gone, but the result is wrong." if gone else _told_of(after)


def _critic(case: Case, outputs: Fields, schema: Schema | None) -> str:
    place = _place(case, outputs)
    later = case.calls[place:] if place is not None else []
    repair = next((call for call in later if call.stage == "reviser.repair"), None)
    return _repair(case, repair.outputs, schema) if repair is not None else ""


def _verifier(case: Case, outputs: Fields, schema: Schema | None) -> str:
    place = _place(case, outputs)
    if place is None:
        return ""
    explained = _last(case.calls[: place + 1], "verifier.explain")
    compared = next((c for c in case.calls[place:] if c.stage == "verifier.compare"), None)
    if explained is None or compared is None:
        return ""
    code = str(explained.inputs.get("program", "")).strip()
    truths = [a["right"] for a in case.attempts if a["code"].strip() == code]
    if not truths or truths[-1] is None:
        return ""
    verdict, truth = compared.outputs.get("consistent"), truths[-1]
    said = "consistent with the question" if verdict else "not what the question asks"
    told = f"The program was judged {said}, and it is {'right' if truth else 'wrong'}."
    return told if verdict == truth else f"{told} That verdict was a mistake."


_OF_STAGE: Mapping[str, Callable[[Case, Fields, Schema | None], str]] = {
    "generator.ground": _ground,
    "generator.formulate": _formulate,
    "reviser.repair": _repair,
    "critic.reflect": _critic,
    "critic.diagnose": _critic,
    "verifier.explain": _verifier,
    "verifier.compare": _verifier,
}


def _wrong(case: Case, code: str, schema: Schema | None) -> str:
    record = case.record
    parts = []
    if record["status"] not in _RAN:
        parts.append(f"Its program fails: {record['error'][:_ERROR_CHARS].rstrip('.')}.")
    failure = record["failure"]
    if failure is not None and record["status"] in _RAN:
        had, wanted = failure["predicted"]["row_count"], failure["gold"]["row_count"]
        if had != wanted:
            parts.append(f"It returns {had} rows where {wanted} are expected.")
        had, wanted = (len(failure[side]["columns"]) for side in ("predicted", "gold"))
        if had != wanted:
            parts.append(f"It returns {had} columns where {wanted} are expected.")
    return " ".join(filter(None, [*parts, _difference(case, code, schema)]))


def _difference(case: Case, code: str, schema: Schema | None) -> str:
    """Names missed and invented, and the first clause that differs."""
    failure = case.record["failure"]
    if failure is not None and code.strip() == case.record["code"].strip():
        return failure["difference"]
    if schema is None or not _gold(case):
        return ""
    try:
        return feedback(_gold(case), code, schema)
    except BadInput:
        return ""


def _gold(case: Case) -> str:
    failure = case.record["failure"]
    return failure["gold_code"] if failure else next(iter(case.example.gold_sql), "")


def _failing(tried: AttemptRecord) -> str:
    ran = tried["status"] in _RAN
    return "runs, but its result is wrong" if ran else f"fails: {_error(tried)}"


def _told_of(after: AttemptRecord) -> str:
    return f"The repaired program {_failing(after)}."


def _error(tried: AttemptRecord) -> str:
    return " ".join(tried["error"].split())[:_ERROR_CHARS].rstrip(".") or tried["status"]


def _place(case: Case, outputs: Mapping[str, Any]) -> int | None:
    """Where the call with these outputs stands among the case's."""
    wanted = dict(outputs)
    found = (i for i, c in enumerate(case.calls) if wanted.items() <= dict(c.outputs).items())
    return next(found, None)


def _last(calls: list[StageCall], stage: str) -> StageCall | None:
    return next((call for call in reversed(calls) if call.stage == stage), None)

"""The model that writes instructions: counted against the budget, and remembered.

Optimizers ask it outside of the program, where no record is kept. Here each of its replies goes to
a journal in the work folder, so that a compile that is started again gets the same ones.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError, ContextWindowExceededError, LMError

from lynx_dspy.errors import LynxError, ModelError
from lynx_dspy.lm import explain
from lynx_dspy.lm.ledger import Ledger
from lynx_dspy.optimize import journal
from lynx_dspy.optimize.budget import BudgetSpent, Meter, Spent
from lynx_dspy.optimize.plainjson import digest_of
from lynx_dspy.texts import encodable

WRITTEN = "written.jsonl"


class Halt(BaseException):
    """Ends an optimizer at once for `cause`.

    No `Exception`: optimizers count those as a wrong answer and go on.
    """

    def __init__(self, cause: BudgetSpent | LynxError) -> None:
        super().__init__(str(cause))
        self.cause = cause


@contextmanager
def writing(
    model: dspy.LM, folder: Path, label: str, meter: Meter, temperature: float
) -> Iterator[dspy.LM]:
    """`model` as a model that remembers, for the recipe `label`.

    The n-th time that a recipe sends the same request it gets the n-th reply. Raises `Halt` within
    the optimizer when the budget is spent or the model cannot be used.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with journal.Journal(folder / WRITTEN) as kept:
        engine = Remembering(model, kept, label, meter)
        yield dspy.LM(
            "lynx/writer", engine=engine, cache=False, num_retries=0, temperature=temperature
        )


class Remembering:
    """An engine that passes requests on to `model`, or replies as it did before."""

    supported_params = frozenset[str]()
    supports_response_schema = False

    def __init__(self, model: dspy.LM, kept: journal.Journal, label: str, meter: Meter) -> None:
        self._model, self._kept, self._label, self._meter = model, kept, label, meter
        self._known = {line["id"]: line for line in journal.lines(kept.path)}
        self._asked: Counter[str] = Counter()

    def complete(self, request: dspy.lm15.Request) -> dspy.lm15.Response:
        asked = _asked(request)
        digest = digest_of({"label": self._label, "model": str(self._model.model), **asked})
        self._asked[digest] += 1
        key = f"{digest}-{self._asked[digest]}"
        if key not in self._known:
            self._known[key] = self._ask(key, asked)
            self._kept.append(self._known[key])
        line = self._known[key]
        spent = Spent(line["calls"], line["tokens"], line["seconds"])
        try:
            self._meter.add(WRITTEN, key, spent)
        except BudgetSpent as over:
            raise Halt(over) from None
        return _response(str(self._model.model), line["text"])

    def __deepcopy__(self, memo: dict[int, Any]) -> Remembering:
        return self

    def _ask(self, key: str, asked: Mapping[str, Any]) -> journal.Line:
        began, ledger = time.perf_counter(), Ledger()
        try:
            with ledger.recording():
                [reply] = self._model(messages=asked["messages"], **self._draw(key, asked))
        except ContextWindowExceededError as error:
            raise dspy.lm15.ContextLengthError(explain(error)) from None
        except LMError as error:
            raise Halt(ModelError(explain(error))) from error
        used = ledger.report().total
        return {
            "id": key,
            "text": encodable(reply["text"] if isinstance(reply, dict) else reply or ""),
            "calls": used.calls,
            "tokens": used.total_tokens,
            "seconds": round(time.perf_counter() - began, 3),
        }

    def _draw(self, key: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What makes the same request draw another reply than before, and again the same one.

        A model that has no temperature is one that takes none.
        """
        if not asked["temperature"] or self._model.kwargs.get("temperature") is None:
            return {}
        draw = int(digest_of(key), 16) % 2**31
        takes = getattr(getattr(self._model, "engine", None), "supported_params", ())
        seed = {"seed": draw} if "seed" in takes else {}
        return {"temperature": asked["temperature"], "rollout_id": draw, **seed}


class Lenient(dspy.ChatAdapter):
    """DSPy's adapter; where one text is asked for, the whole reply is that text if need be.

    Weak models leave the markers out that DSPy asks for.
    """

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = super().parse(signature, completion)
            return found
        except AdapterParseError:
            [name, *more] = signature.output_fields
            text = completion.replace("[[ ## completed ## ]]", "").strip()
            if more or not text or signature.output_fields[name].annotation is not str:
                raise
            return {name: text.removeprefix(f"[[ ## {name} ## ]]").strip()}


def _asked(request: dspy.lm15.Request) -> dict[str, Any]:
    system = [{"role": "system", "content": str(request.system)}] if request.system else []
    turns = [{"role": str(m.role), "content": m.text or ""} for m in request.messages]
    return {"messages": [*system, *turns], "temperature": request.config.temperature}


def _response(model: str, text: str) -> dspy.lm15.Response:
    return dspy.lm15.Response(
        id=None,
        model=model,
        message=dspy.lm15.Message.assistant(text),
        finish_reason="stop",
        usage=dspy.lm15.Usage(input_tokens=1, output_tokens=1, total_tokens=2),
    )

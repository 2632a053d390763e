"""The embedded model: requests, errors and stopping; the live tests need its weights."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy import lm15

from lynx_dspy.errors import ModelError
from lynx_dspy.lm import catalogue, lm, models
from lynx_dspy.lm.adapter import KINDS
from lynx_dspy.lm.ledger import Ledger
from lynx_dspy.lm.local import (
    LocalEngine,
    Reply,
    body_of,
    free_cores,
    physical_cores,
    quantisation_of,
    response_of,
)

WEIGHTS = models.path("local")
live = pytest.mark.skipif(WEIGHTS is None, reason="needs `lynx model pull`")


def request(**config: Any) -> lm15.Request:
    messages = (lm15.Message.user("hi"),)
    return lm15.Request("local/x", messages, system="be brief", config=lm15.Config(**config))


def reply(*chunks: dict[str, Any], deadline: float = 1e12) -> Reply:
    got = Reply(threading.Event(), deadline)
    for chunk in chunks:
        got.take(chunk)
    return got


def delta(text: str = "", finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}, "finish_reason": finish}]}


def test_a_request_is_put_in_the_words_of_llama_cpp() -> None:
    schema = {"type": "json_schema", "name": "r", "schema": {"type": "object"}}
    body = body_of(
        request(
            max_tokens=9,
            temperature=0.0,
            top_p=0.9,
            seed=3,
            stop=("\n\n",),
            response_format=schema,
            extensions={"metadata": {"grammar": "root ::= x"}},
        )
    )
    assert body["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
    ]
    wanted = {"max_tokens": 9, "temperature": 0.0, "top_p": 0.9, "seed": 3, "stop": ["\n\n"]}
    assert wanted.items() <= body.items()
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert body["grammar"] == "root ::= x"
    assert "top_k" not in body and "grammar" not in body_of(request())


def test_chunks_become_a_response_with_counts() -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    got = reply(delta("SEL"), delta("ECT"), delta(finish="length"), {"choices": [], "usage": usage})
    got.check(1.0)
    response = response_of(request(), got)
    assert (response.text, response.finish_reason) == ("SELECT", "length")
    assert response.usage == lm15.Usage(9, 2, cache_read_tokens=4)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 400, "type": "exceed_context_size_error", "message": "9 > 8"}, "ContextLength"),
        ({"code": 400, "type": "invalid_request_error", "message": "bad"}, "InvalidRequest"),
        ({"code": 500, "type": "server_error", "message": "two\nlines"}, "Server"),
    ],
)
def test_errors_of_the_server_are_mapped(error: dict[str, Any], kind: str) -> None:
    with pytest.raises(getattr(lm15, f"{kind}Error")) as raised:
        reply({"error": error}).check(1.0)
    said = raised.value.message.splitlines()[0]
    assert said == " ".join(error["message"].split()) and raised.value.provider == "local"


def test_a_late_or_stopped_reply_is_an_error() -> None:
    late = reply(delta("x"), deadline=0.0)
    assert late.take(delta("y")) is True
    with pytest.raises(lm15.TimeoutError, match="within 5 s"):
        late.check(5.0)
    with pytest.raises(lm15.ServerError, match="stopped"):
        reply(delta("x")).check(5.0)


def test_names_and_cores() -> None:
    names = ["m-Q4_K_M.gguf", "m.f16.gguf", "m-iq2_xs.gguf", "plain.gguf", "qwen2.gguf"]
    assert [quantisation_of(Path(n)) for n in names] == ["q4_k_m", "f16", "iq2_xs", "", ""]
    assert 1 <= free_cores() <= physical_cores() <= (os.cpu_count() or 1)


def test_a_broken_gguf_is_told_at_the_first_call(tmp_path: Path) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"GGUF" + b"\x00" * 64)
    with pytest.raises(dspy.LMConfigurationError, match=r"cannot load broken\.gguf"):
        lm(f"local:{file}")("hi", cache=False)
    with pytest.raises(ModelError, match="no model file"):
        LocalEngine(tmp_path / "none.gguf")


def test_an_engine_is_saved_and_loaded(tmp_path: Path) -> None:
    file = tmp_path / "tiny.gguf"
    file.write_bytes(b"GGUF")
    engine = LocalEngine(file, context=512)
    again = LocalEngine.load_state(json.loads(json.dumps(engine.dump_state())))
    assert again.model == engine.model and again.key == engine.key
    known = LocalEngine(file, name=catalogue.DEFAULT, context=512)
    assert known.dump_state() == {"name": catalogue.DEFAULT, "context": 512}


class Ask(dspy.Signature):
    """Write one SQLite query that answers the question."""

    tables: str = dspy.InputField()
    question: str = dspy.InputField()
    analysis: str = dspy.OutputField(desc="one short sentence")
    code: str = dspy.OutputField(desc="the query")


@pytest.fixture(scope="module")
def model() -> Iterator[dspy.LM]:
    yield lm("local", context=2048, cache=False)


@live
@pytest.mark.model
@pytest.mark.parametrize("kind", KINDS)
def test_one_question_through_each_adapter(model: dspy.LM, kind: str) -> None:
    ledger = Ledger()
    with dspy.context(lm=model, adapter=KINDS[kind]()), ledger.recording():
        asked = dspy.Predict(Ask)(
            tables="customer(id, name, city)",
            question="How many customers are there?",
            config={"max_tokens": 80},
        )
    assert "customer" in asked.code and "select" in asked.code.lower()
    call = ledger.calls[0]
    assert call.prompt_tokens > 40 and call.completion_tokens > 5 and not call.estimated


@live
@pytest.mark.model
def test_the_live_server_obeys_and_stops(model: dspy.LM) -> None:
    engine = model.engine
    assert copy.deepcopy(engine) is engine and engine.count_tokens("SELECT name FROM t") == 4
    assert model("Is 2 even?", metadata={"grammar": 'root ::= "yes" | "no"'}) == ["yes"]
    with pytest.raises(dspy.ContextWindowExceededError, match="2048"):
        model("word " * 3000)
    assert model("Count to fifty.", max_tokens=3) and (
        model.history[-1]["response"].finish_reason == "length"
    )

    async def cancelled() -> None:
        async with asyncio.timeout(0.1):
            await model.acall("Count from one to a thousand in words.", max_tokens=400)

    with pytest.raises(TimeoutError):
        asyncio.run(cancelled())
    begun = time.perf_counter()
    model("hi", max_tokens=1)
    assert time.perf_counter() - begun < 60


@live
@pytest.mark.model
def test_a_generation_that_takes_too_long_ends(model: dspy.LM) -> None:
    engine = LocalEngine(WEIGHTS or "", context=2048, timeout=0.1)
    hasty = dspy.LM(f"test/{uuid.uuid4()}", engine=engine, num_retries=0)
    with pytest.raises(dspy.LMTimeoutError, match=r"within 0\.1 s"):
        hasty("Count from one to a thousand in words.", max_tokens=400)


@live
@pytest.mark.model
def test_nothing_but_our_own_words_is_printed() -> None:
    script = (
        "import json, http.client, urllib.parse\nfrom lynx_dspy.lm import lm\n"
        "m = lm('local', context=512, cache=False)\n"
        "said = m('Say hi', max_tokens=4)\n"
        "from lynx_dspy.lm import local\n"
        "s = local.server_for(m.engine.key)._server\n"
        "u = urllib.parse.urlsplit(s.listening_address)\n"
        "h = http.client.HTTPConnection(u.hostname, u.port)\n"
        "h.request('POST', '/tokenize', '{}')\n"
        "print(json.dumps([said, h.getresponse().status]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    said, status = json.loads(done.stdout)
    assert said and status == 401
    assert "llama" not in done.stderr and "ggml" not in done.stderr

"""One model on several servers: spread by load, nothing lost and nothing answered twice."""

from __future__ import annotations

import importlib.util
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import dspy
import pytest
from dspy import lm15
from dspy.utils import exceptions as of
from hypothesis import given
from hypothesis import strategies as st

import lynx_dspy as lynx
from lynx_dspy.errors import ModelError
from lynx_dspy.lm import balance, spread
from lynx_dspy.lm.ledger import Ledger
from lynx_dspy.lm.spread import Server, SpreadEngine, parse


@pytest.fixture(scope="session")
def serving() -> ModuleType:
    path = Path(__file__).with_name("serving.py")
    spec = importlib.util.spec_from_file_location("serving", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Start = Callable[..., Any]


@pytest.fixture
def start(serving: ModuleType) -> Iterator[Start]:
    begun: list[Any] = []

    def made(say: Callable[[str], str | int] = str.upper, **options: Any) -> Any:
        begun.append(serving.Server(say, **options))
        return begun[-1]

    yield made
    for server in begun:
        if not server.dead.is_set():
            server.stop()


def model(*servers: Any, **options: Any) -> dspy.LM:
    settings = {"cache": False, "num_retries": 0, **options}
    return lynx.lm("openai/tiny@" + ",".join(one.url for one in servers), **settings)


def test_one_killed_mid_run_loses_no_request(start: Start, serving: ModuleType) -> None:
    first, second = (start(lambda t: f"r{serving.number_in(t)}", seconds=0.02) for _ in range(2))
    lm = model(first, second)

    def ask(n: int) -> str:
        if n == 30:
            threading.Thread(target=first.stop).start()
        return str(lm(f"number {n}")[0])

    with ThreadPoolExecutor(6) as threads:
        replies = list(threads.map(ask, range(80)))
    assert replies == [f"r{n}" for n in range(80)]
    answered = Counter(first.answered + second.answered)
    assert first.answered and len(second.answered) > len(first.answered)
    assert len(answered) == 80
    # A reply that was on the wire when its server died was answered, and never arrived.
    assert sum(answered.values()) - 80 <= 6
    assert [one.outstanding for one in lm.engine.standings().values()] == [0, 0]


def test_requests_are_shared_by_load(start: Start) -> None:
    servers = [start(seconds=0.03), start(seconds=0.03)]
    lm = model(*servers)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: lm(f"number {n}"), range(40)))
    assert min(len(one.asked) for one in servers) >= 12


def test_a_server_that_comes_back_is_asked_again(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balance, "FIRST_REST", 0.05)
    first, second = start(), start()
    lm = model(first, second)
    first.stop()
    for n in range(6):
        lm(f"number {n}")
    assert len(second.asked) == 6
    again = start(port=first.port)
    threading.Event().wait(0.3)
    for n in range(12):
        lm(f"number {n}, again")
    assert again.probes == 1 and again.asked


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_a_server_cannot_do_now_another_does(start: Start, status: int) -> None:
    busy, well = start(lambda text: status), start(lambda text: "fine")
    lm = model(busy, well)
    assert [lm(f"number {n}")[0] for n in range(5)] == ["fine"] * 5
    assert len(busy.asked) <= 1


def test_what_every_server_would_refuse_is_asked_once(start: Start) -> None:
    servers = [start(lambda text: 400), start(lambda text: 400)]
    lm = model(*servers)
    with pytest.raises(of.LMInvalidRequestError):
        lm("number 1")
    assert sum(len(one.asked) for one in servers) == 1
    assert all(not one.failures for one in lm.engine.standings().values())


def test_when_all_are_down_the_error_says_where_and_how_long(start: Start) -> None:
    first, second = start(), start()
    first.stop()
    second.stop()
    lm = model(first, second)
    with pytest.raises(of.LMTransportError) as raised:
        lm("number 1")
    assert "127.0.0.1" in str(raised.value) and "1 more failed" in str(raised.value)
    assert 0 < raised.value.retry_after <= balance.FIRST_REST
    with pytest.raises(of.LMTransportError, match="no server is well"):
        lm("number 2")
    assert of.is_retryable_lm_error(raised.value)


def test_the_servers_are_no_part_of_the_cache_key(start: Start, tmp_path: Path) -> None:
    first, second = start(), start()
    prompt = f"number 1 of {tmp_path}"
    assert model(first, cache=True)(prompt) == model(second, cache=True)(prompt)
    assert (len(first.asked), len(second.asked)) == (1, 0)


def test_usage_is_counted_as_for_any_model(start: Start) -> None:
    lm = model(start())
    ledger = Ledger()
    with ledger.recording():
        lm("number 1")
    (call,) = ledger.calls
    assert (call.prompt_tokens, call.completion_tokens, call.cached) == (50, 9, False)
    assert not call.estimated and call.finish_reason == "stop"


def test_records_hold_no_address_and_another_providers_key_stays_here(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-provider-1234567890")
    monkeypatch.delenv(spread.KEY_VARIABLE, raising=False)
    server = start()
    lm = model(server)
    lm("number 1")
    monkeypatch.setenv(spread.KEY_VARIABLE, "of-the-server")
    model(server)("number 2")
    assert server.keys == ["Bearer none", "Bearer of-the-server"]
    assert lynx.lm is not None and str(server.port) not in str(spread_record(lm))
    assert server.bodies[0]["model"] == "tiny" and server.bodies[0]["max_tokens"] == 4000


def spread_record(lm: dspy.LM) -> dict[str, Any]:
    from lynx_dspy.lm import describe

    return describe(lm)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("qwen@http://host/v1", "openai/qwen@http"),
        ("cohere/x@http://host/v1", "openai"),
        ("openai/@http://host/v1", "openai"),
        ("openai/x@http://", "no server's address"),
        ("openai/x@http://host/v1,", "no server's address"),
        ("openai/x@http://host/v1,ftp://host", "no server's address"),
        ("openai/x@http://host:99999/v1", "no server's address"),
        ("openai/x@http://me:hunter2@host/v1", "LYNX_LM_KEY"),
        ("openai/x@http://host/v1?key=1", "no server's address"),
    ],
)
def test_bad_names_are_one_line(name: str, says: str) -> None:
    with pytest.raises(ModelError) as raised:
        lynx.lm(name)
    assert says in str(raised.value) and "\n" not in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_a_name_is_read_whole() -> None:
    assert parse("hosted_vllm/Qwen/Qwen3-8B@https://a:8000,https://b/x/v1/,https://a:8000") == (
        "hosted_vllm/Qwen/Qwen3-8B",
        ("https://a:8000/v1", "https://b/x/v1"),
    )


FAULTS = {
    "down": lambda: lm15.TransportError("refused"),
    "ill": lambda: lm15.ServerError("500"),
    "busy": lambda: lm15.RateLimitError("429", retry_after=0.0),
    "late": lambda: lm15.TimeoutError("504"),
}


@given(
    scripts=st.lists(
        st.lists(st.sampled_from([*FAULTS, "well", "well"]), max_size=12), min_size=1, max_size=4
    ),
    requests=st.integers(1, 25),
    workers=st.integers(1, 4),
)
def test_no_request_is_lost_or_answered_twice(
    scripts: list[list[str]], requests: int, workers: int
) -> None:
    """Whatever the servers do, a request has one reply or one error, and leaves nothing open."""
    answered: list[str] = []
    lock = threading.Lock()

    def server(number: int, script: list[str]) -> Server:
        left = iter(script)

        def send(request: lm15.Request) -> lm15.Response:
            with lock:
                does = next(left, "well")
                if does == "well":
                    answered.append(request.messages[0].text or "")
            if does != "well":
                raise FAULTS[does]()
            return response(request.messages[0].text or "")

        return Server(f"http://server-{number}", send, probe=lambda: True)

    engine = SpreadEngine([server(n, script) for n, script in enumerate(scripts)])

    def ask(n: int) -> str:
        try:
            return engine.complete(request(f"q{n}")).message.text or ""
        except lm15.LM15Error as error:
            assert error.retry_after is not None
            return "failed"

    with ThreadPoolExecutor(workers) as threads:
        replies = list(threads.map(ask, range(requests)))
    got = [f"q{n}" for n, reply in enumerate(replies) if reply != "failed"]
    assert [reply for reply in replies if reply != "failed"] == got
    assert sorted(answered) == sorted(got)
    assert all(one.outstanding == 0 for one in engine.standings().values())


def request(text: str) -> lm15.Request:
    return lm15.Request(model="openai/tiny", messages=(lm15.Message.user(text),))


def response(text: str) -> lm15.Response:
    return lm15.Response(
        id=None,
        model="tiny",
        message=lm15.Message.assistant(text),
        finish_reason="stop",
        usage=lm15.Usage(input_tokens=1, output_tokens=1, total_tokens=2),
    )

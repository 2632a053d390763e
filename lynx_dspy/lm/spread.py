"""One language model on several OpenAI-compatible servers (vLLM, llama.cpp, Ollama), by load.

`openai/qwen@http://10.0.0.1:8000/v1,http://10.0.0.2:8000/v1`: every server serves the same model,
so the servers are no part of the model's name, of its cache key, or of any record. A request goes
to the least busy server; where that fails it goes to another, and a server that failed is left out
for a while, then looked at (`GET /models`) before it is asked again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self
from urllib.parse import urlsplit

from dspy import lm15

from lynx_dspy.errors import ModelError
from lynx_dspy.lm.balance import Balance, Standing

KEY_VARIABLE = "LYNX_LM_KEY"
"""The servers' key, if they want one. A provider's own key is never sent to another address."""

_DOORS = {
    "openai": "vllm",
    "hosted_vllm": "vllm",
    "vllm": "vllm",
    "ollama": "ollama",
    "ollama_chat": "ollama",
}
"""By the prefix of the model's name: whose habits the servers have. They differ in little, such as
how the longest reply is asked for; vLLM's are those that all of them take."""

_NO_KEY = "none"
_TIMEOUT = 600.0
_PROBE_SECONDS = 3.0
_PREFIX_CHARS = 600

Send = Callable[[lm15.Request], lm15.Response]
Probe = Callable[[], bool]

_FAULTS = (lm15.TransportError, lm15.ServerError, lm15.TimeoutError, lm15.RateLimitError)
"""What is the server's fault or state; anything else every server would say too."""


class Server:
    """One server. `send` asks it, `probe` says whether it is there."""

    def __init__(self, url: str, send: Send, probe: Probe) -> None:
        self.url, self.send, self.probe = url, send, probe


class SpreadEngine:
    """The engine of a `dspy.LM`: one request, one reply, from whichever server is well.

    Raises what the last server raised, with the servers named and `retry_after` the time until one
    may be asked again. Threads may share it.
    """

    supported_params = frozenset({"response_format", "stop", "seed", "top_p"})
    supports_response_schema = True

    def __init__(self, servers: Sequence[Server], affinity: int = 0) -> None:
        self._servers = tuple(servers)
        self._balance = Balance(len(self._servers), affinity)

    def complete(self, request: lm15.Request) -> lm15.Response:
        prefix = _prefix(request)
        tried: dict[int, lm15.LM15Error] = {}
        while (number := self._balance.taken(prefix, tried)) is not None:
            try:
                reply = self._asked(number, request)
            except _FAULTS as error:
                rest = error.retry_after if isinstance(error, lm15.RateLimitError) else None
                self._balance.failed(number, rest)
                tried[number] = error
            except BaseException:  # whatever ends it, Ctrl-C too: the server is free again
                self._balance.released(number)
                raise
            else:
                self._balance.done(number)
                return reply
        raise self._refusal(tried)

    def standings(self) -> dict[str, Standing]:
        """How each server does now, by address."""
        urls = (server.url for server in self._servers)
        return dict(zip(urls, self._balance.standings(), strict=True))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def _asked(self, number: int, request: lm15.Request) -> lm15.Response:
        server = self._servers[number]
        if self._balance.is_suspect(number) and not server.probe():
            raise lm15.TransportError("it does not say that it is there")
        return server.send(request)

    def _refusal(self, tried: dict[int, lm15.LM15Error]) -> lm15.LM15Error:
        wait = self._balance.wait()
        if not tried:
            urls = ", ".join(server.url for server in self._servers)
            return lm15.TransportError(f"no server is well: {urls}", retry_after=wait)
        number, error = list(tried.items())[-1]
        others = len(tried) - 1
        said = f"{error.message.splitlines()[0]}" if error.message else type(error).__name__
        error.message = f"{self._servers[number].url}: {said}" + (
            f" ({others} more failed)" if others else ""
        )
        error.retry_after = wait
        return error


class AsyncSpreadEngine:
    """The same for coroutines; the waiting is done in a thread."""

    supported_params = SpreadEngine.supported_params
    supports_response_schema = True

    def __init__(self, engine: SpreadEngine) -> None:
        self._engine = engine

    async def complete(self, request: lm15.Request) -> lm15.Response:
        return await asyncio.to_thread(self._engine.complete, request)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def parse(name: str) -> tuple[str, tuple[str, ...]]:
    """The model and the servers' addresses of a name `provider/model@URL,URL`.

    An address without a path gets `/v1`. Raises `ModelError` in one line.

    >>> parse("openai/qwen@http://127.0.0.1:8001,http://127.0.0.1:8002/v1/")
    ('openai/qwen', ('http://127.0.0.1:8001/v1', 'http://127.0.0.1:8002/v1'))
    """
    model, _, listed = name.partition("@http")
    provider, slash, known_as = model.partition("/")
    if not slash or not known_as or provider not in _DOORS:
        raise ModelError(
            f"Unknown model {model!r} for servers of one's own. Known: provider/model with a "
            f"provider of {', '.join(_DOORS)}, such as openai/qwen@http://127.0.0.1:8001/v1."
        )
    urls = [_address(text.strip()) for text in f"http{listed}".split(",")]
    return model, tuple(dict.fromkeys(urls))


def servers_for(
    model: str, urls: Sequence[str], key: str | None = None, timeout: float = _TIMEOUT
) -> list[Server]:
    """The servers at `urls`; `timeout` is in seconds of one reply. No network is used yet."""
    return [_server(model, url, key or os.environ.get(KEY_VARIABLE), timeout) for url in urls]


def _server(model: str, url: str, key: str | None, timeout: float) -> Server:
    provider, _, known_as = model.partition("/")
    door = _DOORS[provider]
    router = lm15.LMRouter(
        lm15.RouterConfig(
            env={},
            api_keys={door: key or _NO_KEY},
            base_urls={door: url},
            timeouts=lm15.Timeouts(read=timeout, write=timeout, pool=timeout),
        )
    )
    asked = router.lm(f"{door}:{known_as}")

    def send(request: lm15.Request) -> lm15.Response:
        reply: lm15.Response = asked.complete(replace(request, model=known_as))
        return reply

    return Server(url, send, lambda: _is_there(url, key))


def _is_there(url: str, key: str | None) -> bool:
    import httpx2

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    with suppress(httpx2.HTTPError):
        reply = httpx2.get(f"{url}/models", headers=headers, timeout=_PROBE_SECONDS)
        return bool(reply.status_code < 500)
    return False


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole or parts.query or parts.fragment or "@" in parts.netloc:
        shown = text.rpartition("@")[2]
        raise ModelError(
            f"{shown!r} is no server's address. Use http://HOST:PORT/v1, several with a comma "
            f"between them; a key goes into {KEY_VARIABLE}."
        )
    return text.rstrip("/") + ("" if parts.path.strip("/") else "/v1")


def _prefix(request: lm15.Request) -> str:
    """How the prompt begins: prompts put stable text first, so it tells stage and database."""
    first = (request.messages[0].text or "") if request.messages else ""
    return f"{request.system or ''}\0{first[:_PREFIX_CHARS]}"

"""The embedded language model: llama.cpp in this process, as an engine of `dspy.LM`.

One server a (file, context size, threads) lives in the process; its single worker thread takes the
calls in turn, for two generations at once gain nothing on a CPU. The server keeps the prefixes of
earlier prompts, so prompts should put stable text first.
"""

from __future__ import annotations

import asyncio
import atexit
import http.client
import json
import os
import re
import secrets
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from dspy import lm15

from lynx_dspy.errors import BadInput, ModelError, ModelMissing
from lynx_dspy.lm import catalogue, models
from lynx_dspy.paths import expanded

if TYPE_CHECKING:
    import xllamacpp

_BATCH = 64  # tokens between two looks at the stop sign while a prompt is read; 512 is no faster
_PREFIX_CACHE_MIB = 512
_QUANTISATION = re.compile(r"(?:^|[-_.])((?:i?q\d|bf16|f16|f32|mxfp4)[a-z0-9_]*)$", re.IGNORECASE)
_FINISH = {"stop": "stop", "length": "length"}


@dataclass(frozen=True, slots=True)
class ServerKey:
    """What makes two servers the same server. `context` and `threads` are counts."""

    gguf: Path
    context: int
    threads: int


class LocalServer:
    """A llama.cpp server in this process, started by its first call."""

    def __init__(self, key: ServerKey) -> None:
        self.key = key
        self._server: xllamacpp.Server | None = None
        self._secret = secrets.token_hex(16)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="lynx-lm")

    def submit(self, body: dict[str, Any], stop: threading.Event, timeout: float) -> Future[Reply]:
        """Queue a chat completion; setting `stop` ends it at its next token."""
        return self._worker.submit(self._generate, body, stop, timeout)

    def count_tokens(self, text: str) -> int:
        """How many tokens the model's own tokenizer makes of `text`."""
        return self._worker.submit(self._tokenize, text).result()

    def close(self) -> None:
        """Free the memory after the calls in the queue are done."""
        self._worker.shutdown(wait=True, cancel_futures=True)
        self._server = None

    def _generate(self, body: dict[str, Any], stop: threading.Event, timeout: float) -> Reply:
        reply = Reply(stop, time.monotonic() + timeout)
        try:
            self._running().handle_chat_completions(body, reply.take)
        except ValueError as error:
            raise lm15.InvalidRequestError(_one_line(error), provider="local") from error
        reply.check(timeout)
        return reply

    def _running(self) -> xllamacpp.Server:
        if self._server is None:
            self._server = self._start()
        return self._server

    def _start(self) -> xllamacpp.Server:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(self.key.gguf)
        params.n_ctx = self.key.context
        params.n_batch = params.n_ubatch = _BATCH
        params.n_parallel = 1
        params.kv_unified = True
        params.cache_ram_mib = _PREFIX_CACHE_MIB
        params.warmup = False
        params.verbosity = -1
        for cpu in (params.cpuparams, params.cpuparams_batch):
            cpu.n_threads = self.key.threads
        # llama.cpp also listens on a loopback port: no page there, and nothing without the secret.
        params.ui = params.endpoint_slots = False
        params.api_keys = [self._secret]
        try:
            return xllamacpp.Server(params)
        except (RuntimeError, ValueError, MemoryError) as error:
            raise lm15.ConfigurationError(
                f"llama.cpp cannot load {self.key.gguf.name}: {_one_line(error)}", provider="local"
            ) from error

    def _tokenize(self, text: str) -> int:
        address = urlsplit(self._running().listening_address)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        headers = {"Authorization": f"Bearer {self._secret}", "Content-Type": "application/json"}
        try:
            connection.request("POST", "/tokenize", json.dumps({"content": text}), headers)
            return len(json.loads(connection.getresponse().read())["tokens"])
        finally:
            connection.close()


@dataclass(slots=True)
class Reply:
    """What a generation has brought so far; `take` is called with every chunk."""

    stop: threading.Event
    deadline: float
    pieces: list[str] = field(default_factory=list)
    finish: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    timed_out: bool = False

    def take(self, chunk: dict[str, Any]) -> bool:
        """Keep what a chunk says; True tells llama.cpp to stop."""
        self.error = chunk.get("error") or self.error
        self.usage = chunk.get("usage") or self.usage
        for choice in chunk.get("choices") or ():
            self.pieces.append(choice["delta"].get("content") or "")
            self.finish = choice.get("finish_reason") or self.finish
        self.timed_out = time.monotonic() > self.deadline
        return self.timed_out or self.stop.is_set()

    def check(self, timeout: float) -> None:
        """Raise the `dspy.lm15` error that tells why there is no whole reply."""
        if self.error is not None:
            raise _as_lm15(self.error)
        if self.finish:
            return
        if self.timed_out:
            raise lm15.TimeoutError(f"no whole reply within {timeout:g} s", provider="local")
        raise lm15.ServerError("the generation was stopped", provider="local")


def _as_lm15(error: dict[str, Any]) -> lm15.ProviderError:
    message = _one_line(error.get("message", "unknown error"))
    if error.get("type") == "exceed_context_size_error":
        return lm15.ContextLengthError(message, provider="local")
    kind = lm15.InvalidRequestError if error.get("code") == 400 else lm15.ServerError
    return kind(message, provider="local")


def _one_line(text: object) -> str:
    return " ".join(str(text).split())[:300]


_servers: dict[ServerKey, LocalServer] = {}
_servers_lock = threading.Lock()


def server_for(key: ServerKey) -> LocalServer:
    """The one server of this process for this key."""
    with _servers_lock:
        if key not in _servers:
            _servers[key] = LocalServer(key)
        return _servers[key]


@atexit.register
def close_all() -> None:
    """Close every server; the next call of an engine starts a new one."""
    with _servers_lock:
        servers = list(_servers.values())
        _servers.clear()
    for server in servers:
        server.close()


class LocalEngine:
    """`dspy.LM(engine=...)` over a GGUF file. Copies are the same object.

    `context` (tokens, default env `LYNX_LOCAL_CTX` or 8192), `threads` (default env
    `LYNX_LOCAL_THREADS` or the free physical cores), `timeout` (seconds of one generation). JSON
    schemas are enforced while decoding; `metadata={"grammar": ...}` enforces a GBNF grammar.
    """

    supports_response_schema = True
    supported_params = frozenset(
        {"temperature", "max_tokens", "top_p", "seed", "stop", "response_format", "metadata"}
    )

    def __init__(
        self,
        gguf: str | Path,
        *,
        name: str = "",
        context: int | None = None,
        threads: int | None = None,
        timeout: float = 300.0,
    ) -> None:
        file = checked_gguf(Path(gguf))
        self.key = ServerKey(
            file,
            context or _count_from_env("LYNX_LOCAL_CTX", 8192),
            threads or _count_from_env("LYNX_LOCAL_THREADS", free_cores()),
        )
        self.timeout = timeout
        self.digest = models.digest_of(file)
        self.quantisation = quantisation_of(file)
        self.name = name or file.stem.lower()

    @property
    def model(self) -> str:
        """The model string, with all that decides what is generated: it is DSPy's cache key."""
        parts = [self.name]
        if self.quantisation and not self.name.endswith(self.quantisation):
            parts.append(self.quantisation)
        return f"local/{'-'.join([*parts, self.digest[:8]])}-c{self.key.context}"

    def complete(self, request: lm15.Request) -> lm15.Response:
        """One reply. Raises errors of `dspy.lm15`; Ctrl-C ends the generation too."""
        stop = threading.Event()
        try:
            return response_of(request, self.submit(request, stop).result())
        finally:
            stop.set()

    def submit(self, request: lm15.Request, stop: threading.Event) -> Future[Reply]:
        """Queue a request; setting `stop` ends it at its next token."""
        return server_for(self.key).submit(body_of(request), stop, self.timeout)

    def count_tokens(self, text: str) -> int:
        """How many tokens the model's own tokenizer makes of `text`."""
        return server_for(self.key).count_tokens(text)

    def about(self) -> dict[str, Any]:
        """What a record says of this model beside its name."""
        return {
            "digest": self.digest,
            "quantisation": self.quantisation,
            "context": self.key.context,
        }

    def dump_state(self) -> dict[str, Any]:
        """What a saved program remembers (DSPy's engine protocol): no path of a pulled model."""
        state = {"name": self.name, "context": self.key.context}
        pulled = any(m.name == self.name for m in catalogue.list_models())
        return state if pulled else state | {"gguf": str(self.key.gguf)}

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> Self:
        """The engine of a saved state. Raises `ModelMissing` if its model is not pulled."""
        file = state.get("gguf") or models.path(state["name"])
        if file is None:
            raise ModelMissing(f"Run `lynx model pull {state['name']}` once; it is not here.")
        return cls(file, name=state["name"], context=state["context"])

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __copy__(self) -> Self:
        return self


class AsyncLocalEngine:
    """The same engine for `acall`: cancelling the task ends the generation."""

    def __init__(self, engine: LocalEngine) -> None:
        self.engine = engine

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """One reply, without blocking the event loop."""
        stop = threading.Event()
        try:
            return response_of(
                request, await asyncio.wrap_future(self.engine.submit(request, stop))
            )
        finally:
            stop.set()

    def dump_state(self) -> dict[str, Any]:
        return self.engine.dump_state()

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> Self:
        return cls(LocalEngine.load_state(state))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __copy__(self) -> Self:
        return self


def body_of(request: lm15.Request) -> dict[str, Any]:
    """The request in llama.cpp's words (its OpenAI-like chat interface, streamed)."""
    config = request.config
    messages = [{"role": m.role, "content": m.text or ""} for m in request.messages]
    if request.system:
        messages.insert(0, {"role": "system", "content": str(request.system)})
    metadata = (config.extensions or {}).get("metadata")
    grammar = metadata.get("grammar") if isinstance(metadata, dict) else None
    wanted = {
        "max_tokens": config.max_tokens,
        "temperature": config.temperature,
        "top_p": config.top_p,
        "top_k": config.top_k,
        "seed": config.seed,
        "stop": list(config.stop) or None,
        "response_format": _response_format(config.response_format),
        "grammar": grammar,
    }
    fixed = {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
    return {"messages": messages, **fixed, **{k: v for k, v in wanted.items() if v is not None}}


def _response_format(wanted: Any) -> dict[str, Any] | None:
    """lm15 speaks of a flat schema, llama.cpp of a nested one."""
    if wanted and wanted["type"] == "json_schema":
        return {"type": "json_schema", "json_schema": {"schema": wanted["schema"]}}
    return wanted or None


def response_of(request: lm15.Request, reply: Reply) -> lm15.Response:
    """The reply as DSPy expects it, with the counts that llama.cpp reports."""
    details = reply.usage.get("prompt_tokens_details") or {}
    return lm15.Response(
        id=None,
        model=request.model,
        message=lm15.Message.assistant("".join(reply.pieces)),
        finish_reason=_FINISH.get(reply.finish, "stop"),
        usage=lm15.Usage(
            input_tokens=reply.usage.get("prompt_tokens"),
            output_tokens=reply.usage.get("completion_tokens"),
            cache_read_tokens=details.get("cached_tokens"),
        ),
    )


def checked_gguf(file: Path) -> Path:
    """The absolute path of a GGUF file. Raises `ModelError` for anything else."""
    try:
        file = expanded(file).absolute()
        if not file.is_file():
            raise ModelError(f"There is no model file {file}. Give a path to a .gguf file.")
        with file.open("rb") as source:
            magic = source.read(4)
    except OSError as error:
        raise ModelError(f"Cannot read the model file {file}: {error.strerror}.") from error
    if magic != b"GGUF":
        raise ModelError(f"{file.name} is not a GGUF file: it begins with {magic!r}.")
    return file


def quantisation_of(file: Path) -> str:
    """The quantisation that a file's name ends in, or an empty text.

    >>> quantisation_of(Path("Qwen3-8B-Q4_K_M.gguf"))
    'q4_k_m'
    """
    found = _QUANTISATION.search(file.stem)
    return found[1].lower() if found else ""


def physical_cores() -> int:
    """Cores this process may use; two hardware threads of one core count once (Linux)."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    allowed = os.sched_getaffinity(0)
    topology = Path("/sys/devices/system/cpu")
    files = [topology / f"cpu{n}/topology/thread_siblings_list" for n in allowed]
    return len({f.read_text() if f.is_file() else str(f) for f in files})


@cache
def free_cores() -> int:
    """Cores that nobody else keeps busy, at least one; found once a process.

    llama.cpp's threads wait for each other at every layer: one that has to share its core slows
    all of them down (7 times, measured with two threads on two busy cores).
    """
    cores = physical_cores()
    samples = []
    for _ in range(5):
        try:
            running = Path("/proc/loadavg").read_text().split()[3].partition("/")[0]
        except OSError:
            return cores
        samples.append(int(running) - 1)
        time.sleep(0.01)
    return max(1, min(cores, (os.cpu_count() or 1) - min(samples)))


def _count_from_env(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default
    if not text.isdecimal() or int(text) < 1:
        raise BadInput(f"{name} is {text!r}; it must be a whole number above 0.")
    return int(text)

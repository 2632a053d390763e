"""Language models: a name becomes a `dspy.LM`, with errors that say in one line what to do.

The package is callable: `lynx_dspy.lm("local")` works whether `lynx_dspy.lm` is met as the function
or, once something has imported a file of this room, as the package.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lynx_dspy.errors import ModelError, ModelMissing

if TYPE_CHECKING:
    import dspy

    from lynx_dspy.lm.adapter import adapter_for

__all__ = ["adapter_for", "describe", "explain", "lm", "redact"]

_LOCAL_MAX_TOKENS = 512  # weak models run on
_API_MAX_TOKENS = 4_000
_API_RETRIES = 3
_SERVED = "@http"
_LOCAL_OPTIONS = frozenset({"context", "threads", "timeout"})

_KEYS: dict[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "azure": ("AZURE_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
    "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "fireworks_ai": ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "together_ai": ("TOGETHER_API_KEY", "TOGETHERAI_API_KEY"),
    "xai": ("XAI_API_KEY",),
}
_REASONING = re.compile(r"openai/(?:o[1345]\b|gpt-5)")

_SECRETS = (
    re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"),
    re.compile(
        r"(?i)((?:api[_-]?key|token|secret|password|authorization|passwd|pwd)[\"']?\s*[:=]\s*[\"']?)"
        r"[^\s\"',;&}]{4,}"
    ),
    re.compile(r"(\w+://)[^\s/@]+@"),
    re.compile(r"()\b(?:sk|pk|rk|gsk|xai|hf|ghp|AIza)[-_]?[\w-]{12,}"),
)


def lm(name: str | None = None, **options: Any) -> dspy.LM:
    """The language model of this name; without one that of `LYNX_LM`, else the embedded one.

    `local`, `local:NAME` (a pulled model), `local:/path/to/model.gguf`, or any name that DSPy takes
    with its provider (`openai/gpt-4o`, `ollama_chat/qwen3:14b`), or with servers of one's own that
    serve it (`openai/qwen@http://HOST:8001/v1,http://HOST:8002/v1`, see `lm.spread`). `options` are
    those of `dspy.LM`, for local models also `context`, `threads` and `timeout` (seconds of one
    generation), for servers `affinity` and `timeout`. Temperature is 0 unless asked otherwise.
    Raises `ModelError` (or its `ModelMissing`) in one line. `lynx_asked` of what it gives is how
    another process can make the same.
    """
    name = (name or os.environ.get("LYNX_LM") or "local").strip()
    asked = (name, dict(options))
    scheme, _, rest = name.partition(":")
    if scheme == "local":
        made = _local(rest or "local", options)
    else:
        made = _served(name, options) if _SERVED in name else _api(name, options)
    made.lynx_asked = asked
    return made


def _local(target: str, options: dict[str, Any]) -> dspy.LM:
    import dspy

    from lynx_dspy.lm.local import AsyncLocalEngine, LocalEngine

    settings = {key: options.pop(key) for key in _LOCAL_OPTIONS & options.keys()}
    file, known_as = _weights(target)
    engine = LocalEngine(file, name=known_as, **settings)
    defaults = {"temperature": 0.0, "max_tokens": _LOCAL_MAX_TOKENS, "num_retries": 0}
    return dspy.LM(
        engine.model, engine=engine, async_engine=AsyncLocalEngine(engine), **(defaults | options)
    )


def _weights(target: str) -> tuple[Path, str]:
    """The GGUF file of a path or of a pulled model, and the model's name if it has one."""
    from lynx_dspy.lm import catalogue, models

    if target.startswith("hf:"):
        found = models.path(target)
        return found if found else _missing(target, f"lynx model pull {target}"), ""
    if "/" in target or "\\" in target or target.endswith(".gguf"):
        return Path(target), ""
    model = catalogue.find(target)
    if not model.quantisation:
        raise ModelError(f"{model.name!r} is no language model. Known: local, local:PATH.gguf.")
    found = models.path(model.name)
    return found if found else _missing(model.name, f"lynx model pull {model.name}"), model.name


def _served(name: str, options: dict[str, Any]) -> dspy.LM:
    import dspy

    from lynx_dspy.lm import spread

    model, urls = spread.parse(name)
    affinity = int(options.pop("affinity", 0))
    settings = {key: options.pop(key) for key in ("timeout",) if key in options}
    servers = spread.servers_for(model, urls, options.pop("api_key", None), **settings)
    engine = spread.SpreadEngine(servers, affinity)
    defaults = {"temperature": 0.0, "max_tokens": _API_MAX_TOKENS, "num_retries": _API_RETRIES}
    return dspy.LM(
        model, engine=engine, async_engine=spread.AsyncSpreadEngine(engine), **(defaults | options)
    )


def _missing(name: str, command: str) -> Path:
    raise ModelMissing(f"The weights of {name!r} are not on this machine. Run `{command}` once.")


def _api(name: str, options: dict[str, Any]) -> dspy.LM:
    # At import LiteLLM would fetch its price list: seconds of retries where that host is blocked.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import dspy

    provider, slash, model = name.partition("/")
    if not slash or not provider or not model:
        raise ModelError(
            f"Unknown model {redact(name)!r}. Known: local, local:PATH.gguf, or provider/model "
            "such as openai/gpt-4o or ollama_chat/qwen3:14b."
        )
    if not options.get("api_key") and not options.get("api_base"):
        _require_key(provider, name)
    defaults: dict[str, Any] = {"num_retries": _API_RETRIES}
    if not _REASONING.match(name):
        defaults |= {"temperature": 0.0, "max_tokens": _API_MAX_TOKENS}
    try:
        return dspy.LM(name, **(defaults | options))
    except (ValueError, TypeError) as error:
        raise ModelError(f"Cannot use {name!r}: {explain(error)}") from error


def _require_key(provider: str, name: str) -> None:
    wanted = _KEYS.get(provider, ())
    if wanted and not any(os.environ.get(variable) for variable in wanted):
        raise ModelError(f"No key for {name!r}. Set {' or '.join(wanted)} in the environment.")


def describe(model: dspy.BaseLM) -> dict[str, Any]:
    """What a record says of a model: name, decoding, and for local ones digest and context.

    Holds no key, header or address.
    """
    options = model.kwargs
    record: dict[str, Any] = {
        "name": model.model,
        "temperature": options.get("temperature"),
        "max_tokens": options.get("max_tokens", options.get("max_completion_tokens")),
    }
    about = getattr(getattr(model, "engine", None), "about", None)
    return record | (about() if about else {})


def explain(error: Exception) -> str:
    """One line without secrets for what DSPy, a provider or the network raised."""
    from dspy.utils import exceptions as of

    name = getattr(error, "model", None) or "the model"
    table: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...] = (
        (of.ContextWindowExceededError, f"The prompt is too long for {name}"),
        ((of.LMAuthError, of.LMNotConfiguredError), f"{name} refuses the key, or there is none"),
        (of.LMBillingError, f"The account behind {name} has no credit left"),
        (of.LMRateLimitError, f"{name} is asked too often; wait, or use fewer threads"),
        (of.LMUnsupportedModelError, f"The provider does not know {name}"),
        ((of.LMTimeoutError, TimeoutError), f"{name} did not answer in time"),
        ((of.LMTransportError, ConnectionError), f"{name} cannot be reached"),
        (of.LMServerError, f"The server of {name} failed"),
        (of.LMConfigurationError, f"{name} is not set up"),
    )
    said = _first_line(error)
    for kinds, meaning in table:
        if isinstance(error, kinds):
            return redact(f"{meaning}: {said}" if said else f"{meaning}.")
    return redact(said or type(error).__name__)


def _first_line(error: Exception) -> str:
    text = getattr(error, "message", None) or str(error)
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    return lines[0][:300] if lines else ""


def redact(text: str) -> str:
    """`text` without what looks like a key or a password, and without the keys in use.

    >>> redact("401 for key sk-abcdefghijklmnop at https://me:pw@host/v1")
    '401 for key *** at https://***@host/v1'
    """
    for variable in (variable for names in _KEYS.values() for variable in names):
        value = os.environ.get(variable, "")
        if len(value) > 5:
            text = text.replace(value, "***")
    for pattern in _SECRETS:
        text = pattern.sub(_masked, text)
    return text


def _masked(found: re.Match[str]) -> str:
    kept = found[1] or ""
    if kept.lower() in ("bearer", "basic"):
        return f"{kept} ***"
    return f"{kept}***@" if kept.endswith("://") else f"{kept}***"


def __getattr__(name: str) -> Any:
    if name == "adapter_for":
        from lynx_dspy.lm.adapter import adapter_for

        return adapter_for
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Callable(ModuleType):
    """Python binds a sub-package over a function of the same name; so the package can be called."""

    def __call__(self, name: str | None = None, **options: Any) -> dspy.LM:
        return lm(name, **options)


sys.modules[__name__].__class__ = _Callable

"""A name becomes a model, or one line that says what to do; keys are never shown."""

from __future__ import annotations

import copy
import importlib
import os
from pathlib import Path
from typing import Any

import pytest
from dspy.utils import exceptions as of

import lynx_dspy
from lynx_dspy.errors import BadInput, ModelError, ModelMissing, UnknownName
from lynx_dspy.lm import describe, explain, lm, redact

KEY = "sk-proj-abcdefghij0123456789"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No key, no model, an empty cache folder."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "LYNX_LM", "LYNX_LOCAL_CTX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LYNX_HOME", str(tmp_path))
    return tmp_path


def gguf(folder: Path) -> Path:
    file = folder / "Tiny-Q4_K_M.gguf"
    file.write_bytes(b"GGUF and no more")
    return file


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        (None, ModelMissing, "lynx model pull qwen2.5-coder-0.5b"),
        ("local", ModelMissing, "lynx model pull"),
        ("local:hf:a/b/c.gguf", ModelMissing, "lynx model pull hf:a/b/c.gguf"),
        ("local:nothing", UnknownName, "qwen2.5-coder-0.5b"),
        ("local:minilm", ModelError, "no language model"),
        ("local:/no/such.gguf", ModelError, "no model file"),
        ("gpt-4o", ModelError, "openai/gpt-4o"),
        ("openai/", ModelError, "provider/model"),
        ("openai/gpt-4o", ModelError, "OPENAI_API_KEY"),
        ("anthropic/claude-x", ModelError, "ANTHROPIC_API_KEY"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    bare: Path, name: str | None, error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as raised:
        lm(name)
    assert says in str(raised.value) and "\n" not in str(raised.value)


def test_the_environment_names_the_default(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LYNX_LM", "ollama_chat/qwen3:14b")
    assert lm().model == "ollama_chat/qwen3:14b"


def test_a_local_name_holds_all_that_decides_the_text(bare: Path) -> None:
    model = lm(f"local:{gguf(bare)}", context=2048, max_tokens=64)
    digest = model.engine.digest
    assert model.model == f"local/tiny-q4_k_m-{digest[:8]}-c2048"
    assert describe(model) == {
        "name": model.model,
        "temperature": 0.0,
        "max_tokens": 64,
        "digest": digest,
        "quantisation": "q4_k_m",
        "context": 2048,
    }
    assert model.num_retries == 0 and copy.deepcopy(model).engine is model.engine


def test_a_file_that_is_no_gguf_and_a_bad_setting_are_told(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = bare / "x.gguf"
    wrong.write_bytes(b"PK\x03\x04")
    with pytest.raises(ModelError, match="not a GGUF"):
        lm(f"local:{wrong}")
    monkeypatch.setenv("LYNX_LOCAL_CTX", "many")
    with pytest.raises(BadInput, match="LYNX_LOCAL_CTX is 'many'"):
        lm(f"local:{gguf(bare)}")


def test_api_models_get_sane_defaults(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = lm("openai/gpt-4o", max_tokens=99)
    assert model.kwargs == {"temperature": 0.0, "max_tokens": 99} and model.num_retries == 3
    assert lm("openai/gpt-5").kwargs.get("max_completion_tokens") is None
    assert lm("openai/x", api_base="http://127.0.0.1:1/v1").model == "openai/x"


def test_keys_do_not_leave(bare: Path) -> None:
    model = lm("openai/gpt-4o", api_key=KEY)
    shown = [repr(model), str(describe(model)), str(model.dump_state())]
    assert not any(KEY in text for text in shown)


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: {KEY}.",
        f"api_key={KEY}",
        f"Authorization: Bearer {KEY}",
        "https://user:hunter22@host/v1 failed",
        '{"password": "hunter22"}',
        "opaque-secret-value in a message",
    ],
)
def test_redact(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "opaque-secret-value")
    said = redact(text)
    assert "***" in said
    assert not any(s in said for s in (KEY, "hunter22", "opaque-secret-value"))


def test_redact_leaves_plain_text_alone() -> None:
    text = "no such column: task-list_token_count at line 3"
    assert redact(text) == text


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (of.LMAuthError(f"bad key {KEY}", model="openai/gpt-4o"), "openai/gpt-4o refuses the key"),
        (of.LMTransportError("[Errno 111] refused\nTrace", model="o/m"), "o/m cannot be reached"),
        (of.LMTimeoutError("slow", model="o/m"), "did not answer in time: slow"),
        (of.ContextWindowExceededError(message="9 > 8", model="o/m"), "prompt is too long for o/m"),
        (of.LMRateLimitError("429"), "asked too often"),
        (ConnectionRefusedError("refused"), "cannot be reached"),
        (RuntimeError(""), "RuntimeError"),
    ],
)
def test_explain(error: Exception, says: str) -> None:
    said = explain(error)
    assert says in said and "\n" not in said and KEY not in said


def test_a_refused_connection_is_explained(bare: Path) -> None:
    model = lm("openai/x", api_base="http://127.0.0.1:9/v1", api_key=KEY, num_retries=0)
    with pytest.raises(of.LMError) as raised:
        model("hello", cache=False)
    assert "cannot be reached" in explain(raised.value)


def test_the_room_can_be_called_however_it_is_met(bare: Path) -> None:
    room: Any = importlib.import_module("lynx_dspy.lm")
    met: Any = lynx_dspy.lm
    for face in (room, met):
        with pytest.raises(ModelMissing):
            face("local")


def test_naming_an_api_model_keeps_litellm_from_fetching_prices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "")
    monkeypatch.delenv("LITELLM_LOCAL_MODEL_COST_MAP")
    lm("openai/gpt-4o")
    assert os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"

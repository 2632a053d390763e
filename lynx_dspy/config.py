"""Every knob that steers the program, in one frozen place, and the measured profiles.

A profile is a LynxConfig for one kind of backbone. `Lynx()` without a config takes the profile of
the language model that it is called with.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from lynx_dspy.values import Limits

STAGES: tuple[str, ...] = (
    "generator.unknown_terms",
    "generator.align",
    "generator.distill",
    "generator.intent",
    "generator.ground",
    "generator.formulate",
    "critic.reflect",
    "critic.diagnose",
    "reviser.repair",
    "verifier.explain",
    "verifier.compare",
)
"""The predictors in the paper's order; saved programs address them by these paths."""


@dataclass(frozen=True, slots=True)
class LynxConfig:
    """The knobs of the program; sections are those of the LYNX paper."""

    stages: frozenset[str] = frozenset(STAGES)
    """Stages that ask the model; the others answer by rule (`modules/plain.py`)."""

    omitted_outputs: frozenset[str] = frozenset()
    """Outputs that no stage is asked for, such as `analysis`: they cost a weak model its aim."""

    adapter: str = ""
    """Prompt form: fenced, json or chat; empty takes the backbone's (docs/decisions/)."""

    max_question_chars: int = 8_000
    """Longer questions are refused: background belongs into documents or evidence."""

    candidates: int = 1
    """Programs written for a question before the loop; 1 is the paper's. More cost tokens."""

    rescue_candidates: int = 0
    """Further candidates, at most, as long as none of those before gives rows."""

    candidate_temperature: float = 0.8
    """Temperature of the second and later candidates."""

    top_k: int = 6
    """Passages kept after re-ranking (III-A1)."""

    rerank: Literal["cosine", "none", "default"] = "cosine"
    """What orders passages of documents that name no reranker: the paper's cosine, none, or by
    default what was measured with the embedder (III-A1; docs/decisions/0008)."""

    document_tokens: int = 600
    """Budget of the retrieved passages that the stages may see (III-A1)."""

    jit_below: float = 0.55
    """Unknown terms are asked for when the evidence scores less; 1 and 0 scores are full and no
    support of the question (III-A1; measured by `bench/jit.py`)."""

    external_tokens: int = 250
    """Budget of the quarantined text from outside sources (III-A1)."""

    distill_above_tokens: int = 150
    """Knowledge shorter than this is passed on as it is: distilling would cost more (III-A2)."""

    embedding_links: bool = True
    """Whether what names, notes and values leave open is linked by nearness of meaning (III-A2)."""

    value_spellings: bool = False
    """Whether values are also found that the question writes in another way: near spellings, dates,
    percentages, words of long texts (III-A2). Off where a saved config does not name it."""

    schema_tokens: int = 1_500
    """Budget of the structural share K*_struct (III-A2)."""

    schema_tables: int = 12
    """Linked tables that are shown in full before the budget is spent on others (III-A2)."""

    schema_style: str = "ddl"
    """Form of the schema text: ddl or compact (`grounding/render.py`)."""

    syntax_tokens: int = 250
    """Budget of the syntax share K*_syn (III-A2)."""

    history_tokens: int = 700
    """Budget of the rendered failure history H_t (III-B)."""

    max_rounds: int = 10
    """Repairs after the first program, at most (III-C)."""

    stagnation_rounds: int = 3
    """Repairs in a row without progress after which the loop gives up (III-B)."""

    question_tokens: int = 0
    """Tokens of one question after which no further repair is begun; 0 sets no limit."""

    program_tokens: int = 1_500
    """Budget of a program that is shown to the Critic, the Reviser or the verifier."""

    local_edits: bool = True
    """Whether a repair's changes to clauses apart from its failure are put back (III-C)."""

    fix_patterns: str = ""
    """File of validated fixes that later questions of a database are shown; empty: none (III-B)."""

    retry_temperature: float = 0.7
    """Temperature of a repair after one that changed nothing."""

    verify_rounds: int = 1
    """Corrections that a rubber-duck mismatch may ask for (III-C)."""

    verify_threshold: float = 1.0
    """Doubt from which the verifier rejects: an item violated with a quote weighs 1 (III-C)."""

    stage_max_tokens: int = 512
    """Longest reply of a stage; weak models run on."""

    parse_retries: int = 1
    """Times that an unreadable reply is asked for again."""

    preview_rows: int = 5
    """Rows of the result that the verifier is shown (III-C)."""

    limits: Limits = field(default_factory=Limits)
    """What one run of a generated program may use."""

    def with_(self, **changes: Any) -> LynxConfig:
        """A copy with some knobs changed."""
        return replace(self, **changes)


FULL = LynxConfig(value_spellings=True, rerank="default")
"""Every stage asks the model: for API models and local ones of some 7B parameters and more."""

EMBEDDED = LynxConfig(
    stages=frozenset({"generator.formulate"}),
    omitted_outputs=frozenset({"analysis"}),
    adapter="fenced",
    candidates=5,
    rescue_candidates=5,
    embedding_links=False,
    top_k=2,
    document_tokens=120,
    schema_tokens=700,
    syntax_tokens=0,
    max_rounds=0,
    stage_max_tokens=300,
)
"""For the embedded 0.5B model (docs/decisions/0002): it writes several programs instead of mending
one, since it copies a failing program, and what it says of a program says little."""

PROFILES: dict[str, LynxConfig] = {"local/": EMBEDDED}
"""Profile by the beginning of the language model's name."""


def profile(model: str) -> LynxConfig:
    """The measured profile for a language model's name, else the full pipeline.

    >>> profile("openai/gpt-4o") is FULL
    True
    """
    return next((c for prefix, c in PROFILES.items() if model.startswith(prefix)), FULL)


_active: ContextVar[LynxConfig] = ContextVar("lynx_config", default=FULL)


def current() -> LynxConfig:
    """The config of the question that is being answered."""
    return _active.get()


@contextmanager
def using(config: LynxConfig) -> Iterator[None]:
    """Make `config` the current one inside the block."""
    token = _active.set(config)
    try:
        yield
    finally:
        _active.reset(token)

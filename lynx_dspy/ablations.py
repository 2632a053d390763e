"""One function a row of the paper's Table VI (and ours): each gives a Lynx without one part.

A part is taken out by putting another in its place, in a new program or in a compiled one:

    without_delta_memory(Lynx()) is Lynx(critic=AppendOnlyCritic())
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lynx_dspy.errors import UnknownName
from lynx_dspy.modules import plain
from lynx_dspy.modules.candidates import NoCandidates
from lynx_dspy.modules.checker import NoChecker
from lynx_dspy.modules.retrieval import NoConcepts
from lynx_dspy.modules.stage import Stage
from lynx_dspy.modules.standins import (
    AppendOnlyCritic,
    NoReviser,
    NoVerifier,
    PlainGenerator,
    Rule,
)
from lynx_dspy.program import Lynx


def without_ssd_saa(program: Lynx) -> Lynx:
    """Raw schema and knowledge in one undivided prompt (Table VI, w/o SSD-SAA)."""
    program.generator = PlainGenerator(program.generator.formulate)
    return program


def without_semantics(program: Lynx) -> Lynx:
    """No documents and no evidence (Table VI, w/o semantics)."""
    program.generator.acquire_concepts = NoConcepts()
    return program


def without_staged_reasoning(program: Lynx) -> Lynx:
    """Intent and grounding by rule: one call writes the program (Table VI, w/o stages)."""
    program.generator.intent = Rule(plain.definitions_as_intent)
    program.generator.ground = Rule(plain.structure_as_grounding)
    return program


def without_delta_memory(program: Lynx) -> Lynx:
    """History is appended, never compared or condensed (Table VI, w/o delta memory)."""
    program.critic = AppendOnlyCritic()
    return program


def without_revision(program: Lynx) -> Lynx:
    """The first program stands (Table VI, w/o revision)."""
    program.reviser = NoReviser()
    return program


def without_verification(program: Lynx) -> Lynx:
    """No rubber duck (Table VI, w/o verification)."""
    program.verifier = NoVerifier()
    return program


def without_jit(program: Lynx) -> Lynx:
    """No just-in-time look-up of unknown terms."""
    program.generator.unknown_terms = Rule(plain.no_terms)
    return program


def without_static_check(program: Lynx) -> Lynx:
    """Programs run as they come; only the engine's errors are known."""
    program.checker = NoChecker()
    return program


def without_candidates(program: Lynx) -> Lynx:
    """One program a question, also where a backbone's profile writes several."""
    program.candidates = NoCandidates()
    return program


def without_demos(program: Lynx) -> Lynx:
    """The few-shot demos of a compiled program are taken out."""
    for predictor in program.predictors():
        predictor.demos = []
        if isinstance(predictor, Stage):
            predictor.nearest = None
    return program


ABLATIONS: dict[str, Callable[[Lynx], Lynx]] = {
    "semantics": without_semantics,
    "staged-reasoning": without_staged_reasoning,
    "jit": without_jit,
    "ssd-saa": without_ssd_saa,
    "delta-memory": without_delta_memory,
    "revision": without_revision,
    "verification": without_verification,
    "static-check": without_static_check,
    "candidates": without_candidates,
    "demos": without_demos,
}
"""Names of `--without`, in the order in which they are applied."""


def ablate(names: Iterable[str], program: Lynx | None = None) -> Lynx:
    """`program` (a new Lynx by default) without the named parts.

    Raises `UnknownName` for a name that is not in `ABLATIONS`.
    """
    asked = list(names)
    for name in asked:
        if name not in ABLATIONS:
            raise UnknownName("part for --without", name, ABLATIONS)
    ablated = program or Lynx()
    for name, remove in ABLATIONS.items():
        if name in asked:
            ablated = remove(ablated)
    return ablated

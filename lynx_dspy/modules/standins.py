"""Whole parts that stand in for an ablation: no knowledge work, append-only memory, no repair."""

from __future__ import annotations

from collections.abc import Sequence

import dspy

from lynx_dspy import config
from lynx_dspy.engines.base import Database
from lynx_dspy.grounding.documents import Documents
from lynx_dspy.grounding.lookup import Source
from lynx_dspy.grounding.render import render
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.modules import plain
from lynx_dspy.modules.critic import Critic, Criticism, Memory, render_attempt
from lynx_dspy.modules.delta import Change, read_change
from lynx_dspy.modules.generator import Draft, Formulate, Generator
from lynx_dspy.modules.stage import StandIn
from lynx_dspy.modules.verifier import Verdict, Verifier
from lynx_dspy.tokens import clip
from lynx_dspy.values import Attempt, Knowledge, Schema


class Rule(dspy.Module):
    """A stage's place taken by its rule: no predictor, no call."""

    def __init__(self, rule: StandIn) -> None:
        super().__init__()
        self.rule = rule

    def forward(self, **inputs: object) -> dspy.Prediction:
        return dspy.Prediction(**self.rule(**inputs))


class PlainGenerator(Generator):
    """Without SSD-SAA: the raw schema and all knowledge in one undivided prompt."""

    def __init__(self, formulate: dspy.Module | None = None) -> None:
        dspy.Module.__init__(self)
        self.formulate = formulate or Formulate()

    def forward(
        self,
        question: str,
        database: Database,
        documents: Documents | None,
        evidence: str,
        sources: Sequence[Source] = (),
    ) -> Draft:
        settings = config.current()
        schema = abstract(database)
        found = documents.retrieve(question, settings.top_k, settings.rerank) if documents else []
        semantic = "\n".join([evidence, *(p.text for p in found)]).strip()
        knowledge = Knowledge(
            semantic=clip(semantic, settings.document_tokens),
            structural=render(schema, settings.schema_tokens).text,
        )
        draft = Draft("", knowledge, schema, knowledge.semantic, knowledge.structural)
        return self.write(question, draft)


class AppendOnlyCritic(Critic):
    """Without delta memory: every attempt is appended, none is compared; no predictor is asked."""

    def __init__(self) -> None:
        dspy.Module.__init__(self)

    def forward(
        self, memory: Memory, attempts: Sequence[Attempt], schema: Schema = plain.NO_SCHEMA
    ) -> Criticism:
        change = read_change(attempts)
        latest = render_attempt(attempts[-1], config.current().program_tokens)
        history = "\n".join(t for t in (memory.summary, latest) if t)
        stagnant = memory.stagnant + 1 if change is Change.CYCLE else 0
        return Criticism(Memory(history, stagnant=stagnant), change, "", history)

    def settled(self, memory: Memory, attempts: Sequence[Attempt], schema: Schema) -> Memory:
        return memory


class NoReviser(dspy.Module):
    """Without revision: the first program stands."""

    def forward(
        self, question: str, draft: Draft, attempt: Attempt, criticism: Criticism
    ) -> dspy.Prediction:
        return dspy.Prediction(**plain.program_unchanged(attempt.code))


class NoVerifier(Verifier):
    """Without verification: a program that runs is taken; no predictor is asked."""

    def __init__(self) -> None:
        dspy.Module.__init__(self)

    def forward(self, question: str, draft: Draft, attempt: Attempt) -> Verdict:
        return Verdict(None)

"""Generator: Semantic-Structural Distillation and Stage-Aware Allocation (paper, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dspy

from lynx_dspy import config
from lynx_dspy.engines.base import Database
from lynx_dspy.grounding.dialects import syntax_for
from lynx_dspy.grounding.documents import Documents
from lynx_dspy.grounding.embedding import default_embedder
from lynx_dspy.grounding.folding import Folded, folded
from lynx_dspy.grounding.identifiers import literal, shown
from lynx_dspy.grounding.linking import link, open_concepts, tables_for
from lynx_dspy.grounding.lookup import Source
from lynx_dspy.grounding.render import SchemaText, render, whole
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.modules import plain
from lynx_dspy.modules.fallback import Objection, Rung, asked_with_less, objection_in
from lynx_dspy.modules.retrieval import AcquireConcepts, Concepts, UnknownTerms
from lynx_dspy.modules.stage import Stage
from lynx_dspy.progress import report
from lynx_dspy.signatures import (
    AlignConcepts,
    DistillKnowledge,
    FormulateProgram,
    GroundIntent,
    UnderstandIntent,
)
from lynx_dspy.tokens import clip, estimate
from lynx_dspy.values import Dropped, Knowledge, Link, Schema


class Align(Stage):
    """`generator.align`."""

    stage_name = "generator.align"
    asks = AlignConcepts
    stand_in = staticmethod(plain.no_links)
    says = "aligning concepts with the schema"
    needs = ("concepts",)


class Distill(Stage):
    """`generator.distill`."""

    stage_name = "generator.distill"
    asks = DistillKnowledge
    stand_in = staticmethod(plain.undistilled)
    says = "distilling knowledge"
    needs = ("knowledge",)


class Intent(Stage):
    """`generator.intent`."""

    stage_name = "generator.intent"
    asks = UnderstandIntent
    stand_in = staticmethod(plain.definitions_as_intent)
    says = "analysing intent"


class Ground(Stage):
    """`generator.ground`."""

    stage_name = "generator.ground"
    asks = GroundIntent
    stand_in = staticmethod(plain.structure_as_grounding)
    says = "grounding schema"


class Formulate(Stage):
    """`generator.formulate`."""

    stage_name = "generator.formulate"
    asks = FormulateProgram
    stand_in = staticmethod(plain.no_program)
    says = "writing the program"


SURE = 0.6
"""Value links of less confidence match only a part of the stored value."""

_MOST_VALUES = 6
_WIDTH = 40
_TITLE = 200
"""Characters of a value in its note; longer ones are cut."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What the Generator gives: the program, and what it was made from.

    `dropped` says what the model refused to be asked with; `knowledge` is without it.
    """

    code: str
    knowledge: Knowledge
    schema: Schema
    intent: str = ""
    grounding: str = ""
    parse_failed: bool = False
    dropped: tuple[Dropped, ...] = ()


class Generator(dspy.Module):
    """Ground the question, then write the program in three stages that see only their own share."""

    def __init__(self) -> None:
        super().__init__()
        self.acquire_concepts = AcquireConcepts()
        self.unknown_terms = UnknownTerms()
        self.align = Align()
        self.distill = Distill()
        self.intent = Intent()
        self.ground = Ground()
        self.formulate = Formulate()

    def forward(
        self,
        question: str,
        database: Database,
        documents: Documents | None,
        evidence: str,
        sources: Sequence[Source] = (),
    ) -> Draft:
        # Acquire conceptual and structural knowledge apart
        concepts = self.acquire_concepts(question, evidence, documents, self.unknown_terms, sources)
        report("generator.schema", "reading the schema")
        schema = abstract(database)

        # Align, distil and partition: K*_sem, K*_struct, K*_syn
        links = self.align_concepts(question, concepts, schema, database)
        knowledge = self.partition(question, concepts, schema, links)

        # Stage-aware allocation, with less where the model objects
        def ask(share: Knowledge, insist: bool) -> tuple[Draft, Objection | None]:
            return self.allocate(question, Draft("", share, schema), insist)

        lesser = self.lesser(question, knowledge, concepts, schema, links)
        draft, dropped = asked_with_less(ask, knowledge, lesser)
        return replace(draft, dropped=dropped)

    def allocate(self, question: str, draft: Draft, insist: bool) -> tuple[Draft, Objection | None]:
        """Intent from K*_sem, grounding from K*_struct, the program from K*_syn.

        The first stage that the model refuses ends it, unless `insist` is set.
        """
        knowledge = draft.knowledge
        read = self.intent(
            definitions=knowledge.semantic, quotes=knowledge.external, question=question
        )
        objection = objection_in("generator.intent", read)
        if objection and not insist:
            return draft, objection
        mapped = self.ground(structure=knowledge.structural, intent=read.intent)
        objection = objection_in("generator.ground", mapped)
        if objection and not insist:
            return draft, objection
        draft = replace(draft, intent=read.intent, grounding=mapped.grounding)
        reply = self.formulation(question, draft)
        return _written(draft, reply), objection_in("generator.formulate", reply)

    def lesser(
        self,
        question: str,
        knowledge: Knowledge,
        concepts: Concepts,
        schema: Schema,
        links: Sequence[Link],
    ) -> Iterator[Rung]:
        """The knowledge without external text, then without documents, then without samples.

        Rungs that would take nothing away are left out; schema, metadata and evidence stay.
        """
        if knowledge.external:
            knowledge = replace(knowledge, external="")
            yield Rung("external text", knowledge)
        said = Concepts(concepts.evidence)
        if concepts.passages:
            knowledge = self.partition(question, said, schema, links)
            yield Rung("documents", knowledge)
        unsampled = [replace(one, value="") for one in links]
        bare = self.partition(question, said, without_samples(schema), unsampled)
        if estimate(bare.structural) < estimate(knowledge.structural):
            yield Rung("samples", replace(bare, links=knowledge.links))

    def write(self, question: str, draft: Draft, **decoding: Any) -> Draft:
        """The draft with its program; `decoding` (temperature, rollout_id) asks for another one."""
        return _written(draft, self.formulation(question, draft, **decoding))

    def formulation(self, question: str, draft: Draft, **decoding: Any) -> dspy.Prediction:
        """The reply of the formulation stage, which sees nothing of K*_sem but the intent."""
        return self.formulate(
            dialect=draft.schema.dialect,
            syntax=draft.knowledge.syntax,
            grounding=draft.grounding,
            intent=draft.intent,
            question=question,
            config=decoding,
        )

    def align_concepts(
        self, question: str, concepts: Concepts, schema: Schema, database: Database
    ) -> tuple[Link, ...]:
        """Links found by rule; the model is asked for the concepts that they leave open."""
        settings = config.current()
        embedder = default_embedder() if settings.embedding_links else None
        context = f"{concepts.evidence}\n{concepts.text}"
        known = units(schema)
        links = link(question, context, known.schema, database, embedder, settings.value_spellings)
        left_open = list(open_concepts(question, links))
        elements = render(
            known.schema, settings.schema_tokens, (), links, "compact", known.notes
        ).text
        reply = self.align(elements=elements, concepts=left_open, question=question)
        return (*links, *read_links(reply.links or (), known.schema))

    def partition(
        self,
        question: str,
        concepts: Concepts,
        schema: Schema,
        links: Sequence[Link],
    ) -> Knowledge:
        """K* = Partition(Distill(aligned knowledge)) within the budget of each share."""
        settings = config.current()
        distilled = self.distilled(concepts.text, question)
        notes = [distilled["structural"], value_notes(links, schema.dialect)]
        text = structure(schema, links)
        semantic = "\n".join(n for n in (concepts.evidence, distilled["semantic"]) if n)
        return Knowledge(
            semantic=clip(semantic, settings.document_tokens + estimate(concepts.evidence)),
            structural="\n".join(t for t in (text.text, *notes) if t),
            syntax=syntax_for(schema.dialect, f"{question} {semantic}", settings.syntax_tokens),
            links=tuple(links),
            left_out=text.left_out,
            external=concepts.external,
        )

    def distilled(self, concepts: str, question: str) -> Mapping[str, str]:
        """The two shares of the concepts; short or unreadable ones are passed on undistilled."""
        if estimate(concepts) <= config.current().distill_above_tokens:
            return plain.undistilled(concepts)
        reply: Mapping[str, str] = self.distill(knowledge=concepts, question=question)
        return plain.undistilled(concepts) if reply.get("parse_failed") else reply


def _written(draft: Draft, reply: dspy.Prediction) -> Draft:
    return replace(draft, code=reply.code, parse_failed=bool(reply.get("parse_failed")))


def without_samples(schema: Schema) -> Schema:
    """The schema with no stored value in it; names, types, keys and descriptions stay."""
    tables = (
        replace(table, columns=tuple(replace(column, samples=()) for column in table.columns))
        for table in schema.tables
    )
    return replace(schema, tables=tuple(tables))


def structure(schema: Schema, links: Sequence[Link]) -> SchemaText:
    """The schema within `schema_tokens`: all of it if it fits, else what the question links to.

    A schema that fits is written without regard to the links: the same text for every question of a
    database is read once by a model with a prefix cache. `links` speak of `units(schema)`.
    """
    settings = config.current()
    budget, style = settings.schema_tokens, settings.schema_style
    text = whole(schema, budget, style)
    if text is not None:
        return text
    known = folded(schema)
    keep = tables_for(links, known.schema, settings.schema_tables)
    return render(known.schema, budget, keep, links, style, known.notes)


def units(schema: Schema) -> Folded:
    """What links and prompts speak of: tables as they are if all can be shown, else folded ones."""
    settings = config.current()
    fits = whole(schema, settings.schema_tokens, settings.schema_style)
    return Folded(schema) if fits else folded(schema)


def value_notes(links: Iterable[Link], dialect: str) -> str:
    """Conditions on the cell values that the question names, in their stored spelling.

    Of dates and shares the form is told in which the column stores them.
    """
    notes = {
        _value_note(link, dialect): None for link in links if link.value and link.confidence >= SURE
    }
    return "\n".join(list(notes)[:_MOST_VALUES])


def _value_note(link: Link, dialect: str) -> str:
    column = f"{shown(link.table, dialect)}.{shown(link.column, dialect)}"
    if link.evidence == "number":
        return f"-- {column} stores {_in_one_line(link.concept)} as {link.value}"
    width = _TITLE if config.current().value_spellings else _WIDTH
    value = literal(link.value, dialect, width)
    if link.evidence == "date":
        return f"-- {column} stores {_in_one_line(link.concept)} as {value}"
    return f"-- {column} = {value}"


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def read_links(lines: Iterable[str], schema: Schema) -> tuple[Link, ...]:
    """Links from a model's `concept -> table.column ...` lines; unknown elements fall out."""
    found: list[Link] = []
    for line in lines:
        concept, arrow, target = str(line).partition("->")
        table_name, _, rest = target.strip().replace('"', "").partition(".")
        table = schema.table(table_name.strip())
        if not arrow or table is None:
            continue
        column = table.column(rest.split()[0].strip(",;")) if rest.split() else None
        if column is not None or not rest:
            name = column.name if column else ""
            found.append(Link(concept.strip(), table.name, name, "", "model", 0.5))
    return tuple(found)

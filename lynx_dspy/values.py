"""Small frozen values that travel between the rooms of the package."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

Row = tuple[Any, ...]


class Status(StrEnum):
    """How running a program ended. `UNAVAILABLE` is an engine fault, never the program's."""

    OK = "ok"
    EMPTY = "empty"
    ERROR = "error"
    TIMEOUT = "timeout"
    BLOCKED = "blocked"
    NO_PROGRAM = "no_program"
    UNAVAILABLE = "unavailable"


class Ended(StrEnum):
    """Why the closed loop ended; `RUNS` is a program that nobody judged."""

    VERIFIED = "verified"
    RUNS = "runs"
    REJECTED = "rejected"
    ROUNDS = "rounds"
    TOKENS = "tokens"
    STAGNATION = "stagnation"
    CYCLE = "cycle"
    UNAVAILABLE = "unavailable"


class FailureClass(StrEnum):
    """The three classes that the Reviser repairs apart (paper, III-C)."""

    SYNTAX = "syntax"
    SCHEMA = "schema"
    SEMANTIC = "semantic"


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `samples` are distinct values as SQL literals, already clipped."""

    name: str
    type: str
    description: str = ""
    nullable: bool = True
    samples: tuple[str, ...] = ()
    distinct: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view. `row_count` is None where counting would cost too much.

    `namespace` is what stands before the name, `schema` or `catalog.schema`. `name` is unique in
    its schema; where bare names are not, it is qualified and `path` has the parts of the full name.
    """

    name: str
    columns: tuple[Column, ...]
    description: str = ""
    namespace: str = ""
    primary_key: tuple[str, ...] = ()
    row_count: int | None = None
    is_view: bool = False
    path: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the full name, as they are stored: catalog, schema, table.

        >>> Table("events", (), namespace="shop.raw").parts
        ('shop', 'raw', 'events')
        """
        return self.path or (*filter(None, self.namespace.split(".")), self.name)

    def column(self, name: str) -> Column | None:
        """The column of this name, compared without case; None if there is none."""
        folded = name.casefold()
        return next((c for c in self.columns if c.name.casefold() == folded), None)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`table.columns` refer to `ref_table.ref_columns`; `confidence` is below 1 where inferred."""

    table: str
    columns: tuple[str, ...]
    ref_table: str
    ref_columns: tuple[str, ...]
    inferred: bool = False
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Schema:
    """The canonical form of a database's structure, whatever it was read from."""

    dialect: str
    tables: tuple[Table, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()
    name: str = ""

    def table(self, name: str) -> Table | None:
        """The table of this name, compared without case; None if there is none."""
        folded = name.casefold()
        return next((t for t in self.tables if t.name.casefold() == folded), None)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run of an untrusted program may use."""

    timeout_seconds: float = 30.0
    max_rows: int = 10_000
    max_cell_chars: int = 2_000
    max_bytes: int = 64_000_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What running a program gave. A failing program is an Outcome, not an exception.

    `rows` are tuples in the engine's order, at most `Limits.max_rows` of them; `truncated` says
    that a limit cut rows or cells; `row_count` is the number of rows held. `error` is one line.
    """

    status: Status
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    truncated: bool = False
    error: str = ""
    failure_class: FailureClass | None = None
    seconds: float = 0.0

    @property
    def row_count(self) -> int:
        return len(self.rows)

    @property
    def ran(self) -> bool:
        """True when the engine ran the program to its end, with or without rows."""
        return self.status in (Status.OK, Status.EMPTY)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the static check holds against a program.

    `name` is the offending identifier or text as the program writes it; `candidates` are exact
    names from the schema that could be meant, best first. `line` and `column` count from 1, 0 where
    the place cannot be told; `clause` is where in the query it stands, such as WHERE. Two findings
    that say the same of two places are equal.
    """

    failure_class: FailureClass
    message: str
    name: str = ""
    candidates: tuple[str, ...] = ()
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)
    clause: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document. `score` is comparable within one retrieval only."""

    text: str
    source: str
    heading: str = ""
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Link:
    """A concept of the question tied to a schema element. `column` is empty for a table.

    `value` is the stored spelling when the concept is a cell value. `evidence` says what tied
    them: lexical, value, embedding, documentation or model; date or number where `value` is the
    concept in the column's own form, stored or not.
    """

    concept: str
    table: str
    column: str = ""
    value: str = ""
    evidence: str = "lexical"
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Knowledge:
    """K* = Partition(Distill(...)): the three shares that the stages see (paper, III-A)."""

    semantic: str = ""
    structural: str = ""
    syntax: str = ""
    links: tuple[Link, ...] = ()
    left_out: tuple[str, ...] = ()
    external: str = ""
    """Quarantined text from outside, a part of K*_sem that the intent stage alone may see."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """What a stage was asked without, since the model objected (paper, Fig. 3).

    `what` is external text, documents, samples, or nothing when all had been dropped before;
    `why` is content filter or length.
    """

    stage: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One program of the closed loop with what became of it.

    `source` names what wrote it (formulate, repair, static, verify, sample); `delta` is the
    Critic's reading of the change from the attempt before. `signals` are oddities of a result that
    are no errors; `doubt` is the weight of what the verifier holds against it, None if unjudged;
    `reverted` are clauses that the repair changed without cause, and that were put back.
    """

    round: int
    code: str
    outcome: Outcome
    source: str = "formulate"
    failure_class: FailureClass | None = None
    findings: tuple[Finding, ...] = ()
    delta: str = ""
    suggestion: str = ""
    verified: bool | None = None
    parse_failed: bool = False
    signals: tuple[str, ...] = ()
    doubt: float | None = None
    reverted: tuple[str, ...] = ()

    def with_(self, **changes: Any) -> Attempt:
        """A copy with some fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and calls. `billed` counts are what a provider charged: cache hits cost nothing."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    billed_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.billed_tokens + other.billed_tokens,
        )


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The usage of one question, by stage (dotted predictor name)."""

    stages: dict[str, Usage] = field(default_factory=dict)

    @property
    def total(self) -> Usage:
        return sum(self.stages.values(), Usage())

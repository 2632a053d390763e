"""A schema as text for a model, within a token budget: K*_struct's raw material (paper, III-A2).

All that can be shown is a piece with a cost. Pieces leave in the order of `_Rank`, far from the
question first, until the rest fits; what still fits afterwards comes back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from lynx_dspy.engines.identity import by_identity
from lynx_dspy.errors import UnknownName
from lynx_dspy.grounding.focus import Focus, Layout, focus
from lynx_dspy.grounding.styles import (
    STYLES,
    Shown,
    Style,
    description_text,
    fan_text,
    sample_text,
)
from lynx_dspy.tokens import estimate
from lynx_dspy.values import ForeignKey, Link, Schema, Table

NOTE_TOKENS = 60
"""At most so much of a budget, and about an eighth of a small one, says what is not shown."""

_SHORTEST_NOTE = 12

_COMMENT_TOKENS = 4
"""What the signs around a comment cost at most."""

_SKIPPED = 20
"""So many tables in a row that do not fit end the search for one that does."""


_ENOUGH = 3
"""Far tables are looked at until all that was seen would fill so many budgets."""


class _Rank(IntEnum):
    """What leaves first when a schema is too large. Far: tables that the question does not need."""

    FAR_SAMPLES = 0
    UNLINKED_SAMPLES = 1
    FAR_DESCRIPTIONS = 2
    FAR_COLUMNS = 3
    FAR_TABLES = 4
    LINKED_SAMPLES = 5
    DESCRIPTIONS = 6
    COLUMNS = 7
    LINKED_COLUMNS = 8
    TABLES = 9


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A rendered schema; `tokens` is `tokens.estimate(text)`, `left_out` says what is missing."""

    text: str
    tokens: int
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part that can be left out, with what it costs at most and the position of its table."""

    rank: _Rank
    distance: float
    table: int
    part: str
    """`table`, `column`, `samples` or `description`."""
    column: int
    cost: int
    worth: int = 0
    """Among equals, samples of codes are worth more, of columns that store a value of the question
    most."""

    @property
    def parent(self) -> tuple[int, str, int]:
        """The piece without which this one cannot be shown."""
        outer = self.part == "column" or self.column < 0
        return (self.table, "table", -1) if outer else (self.table, "column", self.column)

    @property
    def key(self) -> tuple[int, str, int]:
        return (self.table, self.part, self.column)


def render(
    schema: Schema,
    budget: int,
    keep: Collection[str] = (),
    links: Sequence[Link] = (),
    style: str = "ddl",
    notes: Mapping[str, str] | None = None,
) -> SchemaText:
    """`schema` in at most `budget` tokens (`tokens.estimate`), names quoted where they must be.

    `keep` holds the tables (`orders`) and columns (`orders.total`) that the question needs, `links`
    what it was linked to; without `keep` the linked tables are those needed, without either all.
    `style` is `ddl` or `compact`; `notes` are lines that are shown whenever their table is. Raises
    `UnknownName` for another style.
    """
    if style not in STYLES:
        raise UnknownName("schema style", style, STYLES)
    writer = _Writer(schema, STYLES[style], focus(schema, keep, links), notes or {})
    pieces = list(writer.pieces(budget))
    everything = {piece.key for piece in pieces}
    text = writer.text(everything, budget)
    room = budget - _note_budget(budget)
    while estimate(text) > budget and room > 0:
        text = writer.text(_fitting(pieces, room), budget)
        room -= max(8, estimate(text) - budget)
    kept = _kept(text, budget)
    return SchemaText(kept, estimate(kept), writer.left_out if kept else writer.nothing_shown)


def whole(schema: Schema, budget: int, style: str = "ddl") -> SchemaText | None:
    """All tables and columns in at most `budget` tokens, if need be without samples and notes.

    None if they do not fit. Made once for a schema: it is the same for every question.
    """
    made = _wholes(schema)
    if (budget, style) not in made:
        made[budget, style] = _whole(schema, budget, style)
    return made[budget, style]


@by_identity(16)
def _wholes(schema: Schema) -> dict[tuple[int, str], SchemaText | None]:
    return {}


def _whole(schema: Schema, budget: int, style: str) -> SchemaText | None:
    if sum(len(table.columns) for table in schema.tables) > budget:
        return None
    text = render(schema, budget, style=style)
    parts = (left.startswith(("samples of", "descriptions of")) for left in text.left_out)
    return text if all(parts) else None


@by_identity(16)
def tokens_raw(schema: Schema) -> int:
    """Tokens of the CREATE TABLE text of the whole schema with descriptions, without samples."""
    form = STYLES["ddl"]
    blocks = []
    for table in schema.tables:
        columns = range(len(table.columns))
        blocks.append(
            form.table(table, Shown(columns, (), range(-1, len(columns))), schema.dialect)
        )
    return estimate("\n".join(blocks))


def _note_budget(budget: int) -> int:
    return min(NOTE_TOKENS, max(_SHORTEST_NOTE, budget // 8), budget // 3)


def _counted(number: int, what: str) -> str:
    return f"{number} more {what}{'' if number == 1 else 's'}"


def _kept(text: str, budget: int) -> str:
    return text if estimate(text) <= budget else ""


def _fitting(pieces: Sequence[_Piece], room: int) -> set[tuple[int, str, int]]:
    """The pieces that stay: leave in order until the rest fits; then come back while they fit."""
    leaving = sorted(
        pieces, key=lambda p: (p.rank, p.worth, -p.distance, -p.table, -p.column, p.part)
    )
    cost = sum(piece.cost for piece in pieces)
    gone = 0
    while cost > room and gone < len(leaving):
        cost -= leaving[gone].cost
        gone += 1
    shown = {piece.key for piece in leaving[gone:]}
    required = {piece.key for piece in pieces}
    for piece in reversed(leaving[:gone]):
        present = piece.part == "table" or piece.parent in shown or piece.parent not in required
        if (
            present
            and (piece.table, "table", -1) in shown | {piece.key}
            and cost + piece.cost <= room
        ):
            cost += piece.cost
            shown.add(piece.key)
    return shown


class _Writer:
    """Prices the pieces of one schema in one style, and writes those that stay."""

    def __init__(
        self, schema: Schema, form: Style, focused: Focus, notes: Mapping[str, str]
    ) -> None:
        self.schema, self.form, self.focus, self.notes = schema, form, focused, notes
        self.layout = Layout.of(schema)
        self.left_out: tuple[str, ...] = ()

    @property
    def nothing_shown(self) -> tuple[str, ...]:
        """What is left out when not even one table fits."""
        return tuple(t.name for t in self.schema.tables)

    def pieces(self, budget: int) -> Iterator[_Piece]:
        """The pieces of the nearest tables, as many as could be shown at all."""
        spent = skipped = everything = 0
        order = sorted(
            range(len(self.schema.tables)),
            key=lambda i: (self.focus.distance[self.schema.tables[i].name], i),
        )
        for i in order:
            table = self.schema.tables[i]
            far = self.focus.is_far(table)
            distance = self.focus.distance[table.name]
            if far and everything > _ENOUGH * budget:
                return
            cost = self._table_cost(table)
            if spent + cost > budget:
                skipped += 1
                if far or skipped == _SKIPPED:
                    return
                continue
            spent += cost
            skipped = 0
            rank = _Rank.FAR_TABLES if far else _Rank.TABLES
            inner = list(self._inner(i, table, far, distance))
            everything += cost + sum(piece.cost for piece in inner)
            yield _Piece(rank, distance, i, "table", -1, cost)
            yield from inner

    def _inner(self, i: int, table: Table, far: bool, distance: float) -> Iterator[_Piece]:
        described = _Rank.FAR_DESCRIPTIONS if far else _Rank.DESCRIPTIONS
        if table.description:
            cost = estimate(description_text(table.description)) + _COMMENT_TOKENS
            yield _Piece(described, distance, i, "description", -1, cost)
        for j, column in enumerate(table.columns):
            name = (table.name.casefold(), column.name.casefold())
            if not self._required(table, j):
                linked = name in self.focus.linked
                rank = _Rank.LINKED_COLUMNS if linked else _Rank.COLUMNS
                rank = _Rank.FAR_COLUMNS if far else rank
                cost = self._column_cost(table, j)
                yield _Piece(rank, distance, i, "column", j, cost)
            if column.samples:
                linked = name in self.focus.linked
                rank = _Rank.LINKED_SAMPLES if linked else _Rank.UNLINKED_SAMPLES
                cost = estimate(sample_text(column)) + _COMMENT_TOKENS
                rank = _Rank.FAR_SAMPLES if far else rank
                worth = int(len(column.samples) > 1 and column.samples[0].startswith("'"))
                worth += 2 * (name in self.focus.valued)
                yield _Piece(rank, distance, i, "samples", j, cost, worth)
            if column.description:
                cost = estimate(description_text(column.description)) + _COMMENT_TOKENS
                yield _Piece(described, distance, i, "description", j, cost)

    def _required(self, table: Table, j: int) -> bool:
        """Keys and the surest of the linked columns are shown whenever their table is."""
        name = (table.name.casefold(), table.columns[j].name.casefold())
        is_key = table.columns[j].name in table.primary_key or name in self.focus.keys
        return is_key or (name in self.focus.staying and not self.focus.is_far(table))

    def _column_cost(self, table: Table, j: int) -> int:
        return estimate(self.form.column(table, table.columns[j], self.schema.dialect)) + 1

    def _table_cost(self, table: Table) -> int:
        cost = estimate(self.form.head(table, self.schema.dialect)) + 2
        cost += sum(self._column_cost(table, j) for j in self._required_of(table))
        if table.name in self.notes:
            cost += estimate(self.form.mark + self.notes[table.name]) + 1
        fans = self.layout.fans.get(table.name.casefold(), ())
        texts = (self._join(fan) for fan in fans if self._leads_here(fan[0]))
        return cost + sum(estimate(self.form.mark + text) + 1 for text in texts)

    def _leads_here(self, key: ForeignKey) -> bool:
        ends = (self.layout.tables[n.casefold()] for n in (key.table, key.ref_table))
        return not all(self.focus.is_far(table) for table in ends)

    def _join(self, fan: Sequence[ForeignKey]) -> str:
        return fan_text(fan, self.layout.tables, self.schema.dialect)

    def _required_of(self, table: Table) -> list[int]:
        return [j for j in range(len(table.columns)) if self._required(table, j)]

    def text(self, kept: set[tuple[int, str, int]], budget: int) -> str:
        """The text of the pieces in `kept`; sets `left_out`."""
        dialect = self.schema.dialect
        blocks, names, notes = [], set(), []
        for i, table in enumerate(self.schema.tables):
            if (i, "table", -1) in kept:
                blocks.append(self.form.table(table, self._shown(i, table, kept), dialect))
                names.add(table.name.casefold())
                if table.name in self.notes:
                    notes.append(self.form.mark + self.notes[table.name])
        lines = [self.form.mark + self._join(fan) for fan in self.layout.fans_between(names)]
        self.left_out = tuple(self._missing(kept))
        note = self._note(_note_budget(budget))
        return "\n".join([*blocks, *sorted(lines), *notes, *([note] if note else [])])

    def _shown(self, i: int, table: Table, kept: set[tuple[int, str, int]]) -> Shown:
        columns = {*self._required_of(table)}
        columns |= {j for j in range(len(table.columns)) if (i, "column", j) in kept}
        samples = {j for j in columns if (i, "samples", j) in kept}
        described = {j for j in (*columns, -1) if (i, "description", j) in kept}
        return Shown(columns, samples, described)

    def _missing(self, kept: set[tuple[int, str, int]]) -> Iterator[str]:
        """Tables, then `table.column`, then how many columns lost samples or descriptions."""
        shown = [(i, t) for i, t in enumerate(self.schema.tables) if (i, "table", -1) in kept]
        held = {i for i, _ in shown}
        yield from (t.name for i, t in enumerate(self.schema.tables) if i not in held)
        samples = descriptions = 0
        for i, table in shown:
            what = self._shown(i, table, kept)
            for j, column in enumerate(table.columns):
                if j not in what.columns:
                    yield f"{table.name}.{column.name}"
                samples += bool(column.samples) and j not in what.samples
                descriptions += bool(column.description) and j not in what.descriptions
        yield from (f"samples of {n} columns" for n in [samples] if n)
        yield from (f"descriptions of {n} columns" for n in [descriptions] if n)

    def _note(self, budget: int) -> str:
        """One line that says which tables and columns are not shown, in at most `budget` tokens."""
        known = self.layout.tables
        tables = [n for n in self.left_out if n.casefold() in known]
        columns = sum(1 for n in self.left_out if n.casefold() not in known and "." in n)
        parts = []
        if columns:
            parts.append(f"{_counted(columns, 'column')} not shown")
        if tables:
            parts.append(f"{_counted(len(tables), 'table')} not shown")
        if not parts:
            return ""
        note = self.form.mark + "; ".join(parts)
        for n, name in enumerate(tables):
            line = " ".join(f"{note}{', ' if n else ': '}{name}".split())
            if estimate(line + ", …") > budget:
                return note + (", …" if n else "") if estimate(note) + 2 <= budget else ""
            note = line
        return note if estimate(note) <= budget else ""

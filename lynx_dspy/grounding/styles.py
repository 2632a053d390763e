"""The forms in which a table can be written for a model: each an entry of `STYLES`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from lynx_dspy.grounding.identifiers import full_name, shown
from lynx_dspy.values import Column, ForeignKey, Table

DESCRIPTION_CHARS = 120
"""A description is cut here: the first sentence says what a column is."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What of a table is written: positions of columns; `-1` is the table's own description."""

    columns: Collection[int]
    samples: Collection[int]
    descriptions: Collection[int]


@dataclass(frozen=True, slots=True)
class Style:
    """How a table is written. The parts have no blank at either end, so their costs add up."""

    table: Callable[[Table, Shown, str], str]
    head: Callable[[Table, str], str]
    column: Callable[[Table, Column, str], str]
    mark: str
    """What introduces a line that is for people and models, not for the engine."""


def sample_text(column: Column) -> str:
    """The sample values of a column as one list."""
    return ", ".join(column.samples)


def description_text(description: str) -> str:
    """A description as one short piece of a line, harmless inside a comment."""
    line = " ".join(description.replace("*/", "* /").split())
    return line if len(line) <= DESCRIPTION_CHARS else line[: DESCRIPTION_CHARS - 1].rstrip() + "…"


def table_name(table: Table, dialect: str) -> str:
    """The name by which a program must call the table."""
    return full_name(table, dialect)


_TOLD = 2


def fan_text(fan: Sequence[ForeignKey], tables: Mapping[str, Table], dialect: str) -> str:
    """The join of one key, and of others beside it that lead to the same column."""
    text = join_text(fan[0], tables, dialect)
    others = [column for key in fan[1:] for column in key.columns]
    if not others:
        return text
    named = ", ".join(shown(column, dialect) for column in others[:_TOLD])
    return f"{text}; likewise {named}{', …' if len(others) > _TOLD else ''}"


def join_text(key: ForeignKey, tables: Mapping[str, Table], dialect: str) -> str:
    """`orders.customer_id = customers.id`, with `~` in front if it was inferred."""
    left, right = tables[key.table.casefold()], tables[key.ref_table.casefold()]
    pairs = zip(key.columns, key.ref_columns, strict=True)
    text = " AND ".join(
        f"{table_name(left, dialect)}.{shown(a, dialect)} = "
        f"{table_name(right, dialect)}.{shown(b, dialect)}"
        for a, b in pairs
    )
    return f"~ {text}" if key.inferred else text


def _ddl_start(table: Table, dialect: str) -> str:
    return f"CREATE {'VIEW' if table.is_view else 'TABLE'} {table_name(table, dialect)} ("


def _ddl_head(table: Table, dialect: str) -> str:
    key = ", ".join(shown(c, dialect) for c in table.primary_key)
    closing = f",\nPRIMARY KEY ({key})" if len(table.primary_key) > 1 else ""
    return f"{_ddl_start(table, dialect)}\n{closing}\n);"


def _ddl_column(table: Table, column: Column, dialect: str) -> str:
    key = " PRIMARY KEY" if table.primary_key == (column.name,) else ""
    return f"{shown(column.name, dialect)} {column.type}".rstrip() + f"{key},"


def _ddl_table(table: Table, what: Shown, dialect: str) -> str:
    lines = []
    for i in sorted(what.columns):
        line = _ddl_column(table, table.columns[i], dialect)
        lines.append((line, _comment(table.columns[i], i, what)))
    if len(table.primary_key) > 1:
        names = ", ".join(shown(c, dialect) for c in table.primary_key)
        lines.append((f"PRIMARY KEY ({names})", ""))
    if lines:
        lines[-1] = (lines[-1][0].removesuffix(","), lines[-1][1])
    body = "\n".join(f"{line} -- {note}" if note else line for line, note in lines)
    about = description_text(table.description) if -1 in what.descriptions else ""
    start = _ddl_start(table, dialect) + (f" -- {about}" if about else "")
    return f"{start}\n{body}\n);"


def _comment(column: Column, i: int, what: Shown) -> str:
    samples = sample_text(column) if i in what.samples else ""
    about = description_text(column.description) if i in what.descriptions else ""
    return "; ".join(part for part in (samples, about) if part)


def _compact_head(table: Table, dialect: str) -> str:
    key = ", ".join(shown(c, dialect) for c in table.primary_key)
    closing = f", PK({key})" if len(table.primary_key) > 1 else ""
    return f"{table_name(table, dialect)}({closing})"


def _compact_column(table: Table, column: Column, dialect: str) -> str:
    key = " PK" if table.primary_key == (column.name,) else ""
    return f"{shown(column.name, dialect)} {column.type}".rstrip() + f"{key},"


def _compact_table(table: Table, what: Shown, dialect: str) -> str:
    parts = []
    for i in sorted(what.columns):
        column = table.columns[i]
        part = _compact_column(table, column, dialect).removesuffix(",")
        part += f": {sample_text(column)}" if i in what.samples else ""
        about = description_text(column.description) if i in what.descriptions else ""
        parts.append(part + (f" /* {about} */" if about else ""))
    if len(table.primary_key) > 1:
        parts.append("PK(" + ", ".join(shown(c, dialect) for c in table.primary_key) + ")")
    about = description_text(table.description) if -1 in what.descriptions else ""
    end = f" /* {about} */" if about else ""
    return f"{table_name(table, dialect)}({', '.join(parts)}){end}"


STYLES: dict[str, Style] = {
    "ddl": Style(_ddl_table, _ddl_head, _ddl_column, "-- "),
    "compact": Style(_compact_table, _compact_head, _compact_column, "-- "),
}

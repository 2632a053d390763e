"""What a warehouse's catalogue says beyond names and types, as the text of a description."""

from __future__ import annotations

from collections.abc import Sequence


def partitioned(by: str, clustered: Sequence[str] = (), required: bool = False) -> str:
    """How a table is laid out, which says what to filter on to read less of it.

    >>> partitioned("day (DAY)", ("city",), required=True)
    'Partitioned by day (DAY); a filter on it is required. Clustered by city.'
    """
    must = "; a filter on it is required" if required else ""
    notes = [f"Partitioned by {by}{must}."] if by else []
    if clustered:
        notes.append(f"Clustered by {', '.join(clustered)}.")
    return " ".join(notes)


def with_note(description: str | None, note: str) -> str:
    """A description in one line, ended by a note.

    >>> with_note("orders\\nof the shop", "Partitioned by day.")
    'orders of the shop. Partitioned by day.'
    """
    text = " ".join((description or "").split())
    if text and note and text[-1] not in ".!?;":
        text += "."
    return f"{text} {note}".strip()

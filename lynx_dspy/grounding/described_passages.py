"""What a schema says of itself as passages: descriptions are documents too (paper, III-A1).

Comments in the database, BIRD's `database_description`, metadata files and notes of users have all
become descriptions in the `Schema` by the time it is grounded, so one function serves them all.
"""

from __future__ import annotations

from collections.abc import Iterator

from lynx_dspy.grounding.chunking import passages
from lynx_dspy.grounding.documents import Documents
from lynx_dspy.grounding.recent import Recent
from lynx_dspy.values import Column, Passage, Schema, Table

_beside: Recent[tuple[Documents | None, Documents]] = Recent(size=8)


def described_passages(schema: Schema) -> Iterator[Passage]:
    """One passage for each description of a table or column; more for very long ones.

    >>> churned = Column("churned", "INTEGER", "1 if no order came for 90 days")
    >>> for p in described_passages(Schema("sqlite", (Table("customer", (churned,)),))):
    ...     print(f"{p.source} | {p.heading} | {p.text}")
    customer.churned | customer > churned | 1 if no order came for 90 days
    """
    for table in schema.tables:
        yield from _about(table.description, table.name, table.name)
        for column in table.columns:
            source = f"{table.name}.{column.name}"
            yield from _about(_said(table, column), source, f"{table.name} > {column.name}")


def _about(description: str, source: str, heading: str) -> Iterator[Passage]:
    """A description that looks like a heading is none: it is text about its table or column."""
    for passage in passages(f"\\{description}" if description[:1] == "#" else description, source):
        yield Passage(passage.text.removeprefix("\\"), source, heading)


def _said(table: Table, column: Column) -> str:
    """A column's description, unless it only repeats the names."""
    said = column.description.strip()
    plain = said.casefold().rstrip(".").replace(" ", "_")
    known = {column.name.casefold(), f"{table.name}_{column.name}".casefold()}
    return "" if plain in known else said


def with_descriptions_of(schema: Schema, documents: Documents | None = None) -> Documents:
    """`documents` and what `schema` says of itself, ranked as one collection.

    Held in the process by schema and documents: both are indexed once. Without documents, the
    descriptions alone.

    >>> schema = Schema("sqlite", (Table("store", (), "Shops that are open to customers."),))
    >>> both = with_descriptions_of(schema, Documents.from_texts(["Rain."], embedder=None))
    >>> [p.source for p in both.retrieve("open shops", 1)]
    ['store']
    """

    def joined() -> tuple[Documents | None, Documents]:
        if documents is None:
            return None, Documents(described_passages(schema))
        described = Documents(described_passages(schema), embedder=documents.embedder)
        return documents, documents.beside(described)

    # The documents are held with the result: an id may be given again once its object is gone.
    return _beside.get((schema, id(documents)), joined)[1]

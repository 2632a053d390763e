"""What an engine tells the conformance suite about itself.

An engine joins by one file in `adapters/` and one line in `registry.py`. Tests ask for the fixture
`adapter` (started, with the shop loaded) or `database` (connected to it), and carry the marker
`capability(name)`. What an engine cannot do goes into `lacks` with a reason: its tests are skipped
with it, and the capability matrix shows it. A value of `values` that is missing must be there too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from lynx_dspy.engines.base import Database
from lynx_dspy.grounding.identifiers import quote
from lynx_dspy.values import Limits, Outcome

VALUES = (
    "integers", "floats", "decimals", "booleans", "text", "unicode", "nulls", "dates",
    "timestamps", "zoned timestamps", "arrays", "json", "blobs",
)  # fmt: skip
"""Kinds of values that each engine shows one query for, or says that it lacks."""

ORDERS = ((1, 1, "12.50", "2024-01-05"), (2, 1, "7.25", "2024-02-05"), (3, 2, "9.00", "2024-02-07"))
CITIES = ((1, "Zürich", 10), (2, "東京", 20), (3, "O'Fallon \\ %s", None))


@dataclass(frozen=True)
class Value:
    """A query of one row and what it gives, as Python values."""

    sql: str
    row: tuple[Any, ...]


STANDARD: Mapping[str, Value] = {
    "integers": Value("SELECT 0, -1, 9223372036854775807", (0, -1, 9223372036854775807)),
    "text": Value("SELECT 'it''s', '', '  x '", ("it's", "", "  x ")),
    "unicode": Value("SELECT 'Zürich 東京 🚆 ß'", ("Zürich 東京 🚆 ß",)),
    "nulls": Value("SELECT NULL, COALESCE(NULL, 1)", (None, 1)),
}


class Unavailable(Exception):
    """The engine cannot run on this machine; the text says why, and its tests are skipped."""


class Adapter(ABC):
    """One engine: how it is started and loaded, and how the suite's programs are spelled in it."""

    name: ClassVar[str]
    dialect: ClassVar[str]
    """sqlglot's name."""
    lacks: ClassVar[Mapping[str, str]] = {}
    """Capability -> why this engine has none, in a few words."""
    values: ClassVar[Mapping[str, Value]]
    endless: ClassVar[str]
    """A query that computes for minutes and needs next to no memory."""
    thousands: ClassVar[str]
    """A query that gives 50,000 rows of one integer, 1, 2, 3 ..."""
    long_text: ClassVar[str]
    """A query that gives one text of 1,000,000 letters x."""
    judges_plans: ClassVar[bool] = True
    """Whether a dry run says of `endless` how many rows it would pass."""
    orders: ClassVar[str] = "orders"
    """The table's full name, where the static check wants it."""
    decimal: ClassVar[str] = "DECIMAL(10, 2)"
    integer: ClassVar[str] = "INTEGER"
    text: ClassVar[str] = "VARCHAR(40)"

    @abstractmethod
    def start(self, folder: Path) -> None:
        """Make an empty database; `folder` is the suite's own. Raises `Unavailable`."""

    @abstractmethod
    def load(self, statements: Sequence[str]) -> None:
        """Run statements with the owner's rights."""

    @abstractmethod
    def connect(self) -> Database:
        """A new connection with the rights of a reader."""

    @abstractmethod
    def digest(self) -> str:
        """A text that differs if anything stored differs, read with the owner's rights."""

    @abstractmethod
    def stop(self) -> None:
        """End it and remove what it holds. Stopping twice is allowed."""

    def restart(self) -> None:
        """Restart the server, cutting all connections."""
        raise NotImplementedError

    def halt(self) -> None:
        """Stop the server but keep its data; `resume` starts it again."""
        raise NotImplementedError

    def resume(self) -> None:
        """Start the server that `halt` stopped."""
        raise NotImplementedError

    def busy(self) -> int:
        """How many programs of the reader the server works on now."""
        raise NotImplementedError

    def unguarded(self, database: Database, code: str, limits: Limits) -> Outcome:
        """Run `code` past the guard, as if the guard had let it through."""
        raise NotImplementedError

    def quoted(self, name: str) -> str:
        return quote(name, self.dialect)

    def shop(self) -> Sequence[str]:
        """Statements that make the database which the suite works on."""
        q, number, text = self.quoted, self.integer, self.text
        orders = ", ".join(f"({i}, {c}, {a}, '{d}')" for i, c, a, d in ORDERS)
        cities = ", ".join(
            f"({i}, {self.literal(n)}, {'NULL' if s is None else s})" for i, n, s in CITIES
        )
        return (
            f"CREATE TABLE customers (id {number} PRIMARY KEY, name {text} NOT NULL)",
            f"CREATE TABLE orders (id {number} PRIMARY KEY, customer_id {number}, "
            f"amount {self.decimal}, placed_on DATE, "
            "FOREIGN KEY (customer_id) REFERENCES customers (id))",
            f"CREATE TABLE {q('größe 城')} (id {number} PRIMARY KEY, {q('Name des Orts')} {text}, "
            f"{q('ÉTENDUE')} {number})",
            "INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bo')",
            f"INSERT INTO orders VALUES {orders}",
            f"INSERT INTO {q('größe 城')} VALUES {cities}",
            "CREATE VIEW totals AS SELECT customer_id, SUM(amount) AS total FROM orders "
            "GROUP BY customer_id",
            *self.comments(),
        )

    def comments(self) -> Sequence[str]:
        """Statements that say of `orders` "one row an order", of its amount "in euros"."""
        return ()

    def literal(self, text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    def url(self) -> str:
        """The reader's address with its password."""
        raise NotImplementedError

    def secret(self) -> str:
        """The reader's password."""
        raise NotImplementedError

"""What every engine offers: a read-only view on one database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from lynx_dspy.values import Finding, Limits, Outcome, Row, Schema


class Database(ABC):
    """A database that programs are run on, never changed by it.

    `dialect` is sqlglot's name of the SQL that programs must be written in; `url` and `name` are
    for people (no password in either). Copies are the same object: optimizers deep-copy programs.
    """

    url: str
    name: str
    dialect: str
    runs: bool = True
    """Whether there is an engine at all; without one programs are only checked."""

    @abstractmethod
    def introspect(self) -> Schema:
        """Names, types, declared keys, comments and row counts, straight from the catalogue.

        Raises `DatabaseError` if the database cannot be read or holds no table.
        """

    @abstractmethod
    def execute(self, code: str, limits: Limits | None = None) -> Outcome:
        """Run an untrusted program: guarded, read-only, limited. Never raises for what it holds."""

    def dry_run(self, code: str) -> tuple[Finding, ...]:
        """What the engine holds against an untrusted program without running it; never raises.

        For engines that must be asked, as a planner or a dry run; others leave it to the static
        check, and have nothing to add.
        """
        return ()

    @abstractmethod
    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Run a trusted query of this package (samples, counts). Raises `DatabaseError`."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A short text that changes whenever the stored data may have changed; cheap."""

    @abstractmethod
    def close(self) -> None:
        """Give the connection back. Closing twice is allowed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __copy__(self) -> Self:
        return self

"""Open databases of a run: each opened once, a handful at a time, shared by all threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Self

from lynx_dspy.engines import Database, connect
from lynx_dspy.values import Schema

Open = Callable[[str, str], Database]


@dataclass
class Lease:
    """An open database, its schema as the catalogue has it, and how many use it now."""

    database: Database
    users: int = field(default=0, compare=False)

    @cached_property
    def schema(self) -> Schema:
        """Raises `DatabaseError` if the catalogue cannot be read."""
        return self.database.introspect()


def plain(url: str, db: str) -> Database:
    """The database at `url`; its name in the benchmark is not needed."""
    return connect(url)


class Databases:
    """Hands out databases by address; the least recently used are closed beyond `size`.

    A database in use is never closed. `opener(url, db)` opens one.
    """

    def __init__(self, size: int = 8, opener: Open = plain) -> None:
        self._size = size
        self._opener = opener
        self._held: OrderedDict[str, Lease] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def lease(self, url: str, db: str = "") -> Iterator[Lease]:
        """The database at `url` for the length of the block. Raises as `engines.connect`."""
        lease = self._take(url, db)
        try:
            yield lease
        finally:
            self._give_back(lease)

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            while self._held:
                self._held.popitem()[1].database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _take(self, url: str, db: str) -> Lease:
        with self._lock:
            if url not in self._held:
                self._held[url] = Lease(self._opener(url, db))
            self._held.move_to_end(url)
            lease = self._held[url]
            lease.users += 1
            return lease

    def _give_back(self, lease: Lease) -> None:
        with self._lock:
            lease.users -= 1
            surplus = len(self._held) - self._size
            idle = [url for url, held in self._held.items() if not held.users]
            for url in idle[: max(0, surplus)]:
                self._held.pop(url).database.close()

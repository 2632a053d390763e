"""Which of several servers a request goes to: the least busy that is well, else whose rest is over.

Only the choice is here, without any network; `spread` asks and says what came of it.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

FIRST_REST = 2.0
"""Seconds that a server is left out after a failure; each further one doubles them."""

LONGEST_REST = 120.0


@dataclass(slots=True)
class Standing:
    """How a server does: requests under way, failures in a row, when it may be asked again."""

    outstanding: int = 0
    failures: int = 0
    opens: float = 0.0


class Balance:
    """Hands out servers by number, `taken` and then `done` or `failed` for each request.

    Among the servers with the fewest requests under way the one wins that such prompts went to
    before (rendezvous hashing of `prefix`): it may have their beginning in its prefix cache. It may
    have `affinity` more requests under way than the others and still win.
    """

    def __init__(
        self, servers: int, affinity: int = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._all = [Standing() for _ in range(servers)]
        self._affinity = affinity
        self._clock = clock
        self._lock = threading.Lock()

    def taken(self, prefix: str = "", tried: Collection[int] = ()) -> int | None:
        """The server for a request that those in `tried` failed on; None if there is none now."""
        with self._lock:
            open_ = [n for n, one in enumerate(self._all) if n not in tried and self._is_open(one)]
            if not open_:
                return None
            most = min(self._all[n].outstanding for n in open_) + self._affinity
            near = (n for n in open_ if self._all[n].outstanding <= most)
            chosen = max(near, key=lambda n: _nearness(prefix, n))
            self._all[chosen].outstanding += 1
            return chosen

    def is_suspect(self, server: int) -> bool:
        """Whether its last request failed, so that its health is looked at before it is asked."""
        with self._lock:
            return self._all[server].failures > 0

    def done(self, server: int) -> None:
        """It answered."""
        with self._lock:
            one = self._all[server]
            one.outstanding -= 1
            one.failures, one.opens = 0, 0.0

    def released(self, server: int) -> None:
        """The request ended and says nothing of the server's health."""
        with self._lock:
            self._all[server].outstanding -= 1

    def failed(self, server: int, rest: float | None = None) -> None:
        """It failed; it is left out for `rest` seconds, or longer with each failure in a row."""
        with self._lock:
            one, now = self._all[server], self._clock()
            one.outstanding -= 1
            if one.opens > now:
                return  # asked before it was known to be ill: the same failure
            doubled = FIRST_REST * 2.0 ** min(one.failures, 16)
            one.failures += 1
            one.opens = now + min(doubled if rest is None else rest, LONGEST_REST)

    def wait(self) -> float:
        """Seconds until some server may be asked; 0 if one may be now."""
        with self._lock:
            now = self._clock()
            return max(0.0, min(one.opens for one in self._all) - now)

    def standings(self) -> Iterable[Standing]:
        """A copy of how each server does."""
        with self._lock:
            return [Standing(one.outstanding, one.failures, one.opens) for one in self._all]

    def _is_open(self, one: Standing) -> bool:
        """Well, or rested; a server that failed gets one request at a time until it answers."""
        return one.opens <= self._clock() and not (one.failures and one.outstanding)


def _nearness(prefix: str, server: int) -> bytes:
    return hashlib.blake2b(f"{server}\0{prefix}".encode(errors="replace"), digest_size=8).digest()

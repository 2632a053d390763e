"""Wikipedia as a source of explanations, through the documented MediaWiki API (III-A1).

One request a term: `action=query` with `generator=search`, and `prop=extracts|info` for the plain
text of each page's introduction and its address. Answers are kept on disk. Only the term leaves the
machine, never the question or anything of the database. Without a network nothing is found.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2

from lynx_dspy import __version__
from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.lookup import ByReference, mentions
from lynx_dspy.lm.models import home
from lynx_dspy.progress import report
from lynx_dspy.values import Passage

CONTACT = "LYNX_CONTACT"
"""Environment variable with the address that Wikimedia asks clients to name."""

_PAGES = 3
_LONGEST_TERM = 120
_LARGEST = 2_000_000
_FRESH = 30 * 86_400.0
_PAUSE = 300.0
"""Seconds for which an API that could not be reached is not asked again."""

_LANGUAGE = re.compile(r"[a-z]{2,12}(?:-[a-z]{2,12})*")


class Wikipedia(ByReference):
    """The introductions of the pages found for a term, at most three that mention it.

    `language` is the wiki's (`en`), `timeout` seconds for each step of a request; `contact` is an
    e-mail or web address that goes into the user agent, default the variable `LYNX_CONTACT`. `url`
    is another MediaWiki's `api.php`, with the TextExtracts extension. Threads may share one.
    """

    name = "wikipedia"
    external = True

    def __init__(
        self,
        language: str = "en",
        *,
        timeout: float = 5.0,
        contact: str | None = None,
        url: str | None = None,
        cache: Path | None = None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        if not _LANGUAGE.fullmatch(language):
            raise BadInput(f"No Wikipedia of language {language!r}. Give its code, such as 'en'.")
        self.url = url or f"https://{language}.wikipedia.org/w/api.php"
        self._cache = cache or home() / "mediawiki"
        self._client = httpx2.Client(
            timeout=timeout,
            headers={"User-Agent": _user_agent(contact)},
            transport=transport,
        )
        self._silent_until = 0.0
        self._one_at_a_time = threading.Lock()

    def look_up(self, term: str) -> Sequence[Passage]:
        """Introductions that mention `term`, best first; empty when the wiki cannot be reached."""
        term = " ".join(term.split())
        if not term or len(term) > _LONGEST_TERM:
            return ()
        with self._one_at_a_time:  # the API's etiquette: requests in series
            pages = self._pages(term)
        return tuple(p for p in map(_passage, pages) if mentions(term, f"{p.heading} {p.text}"))

    def terms_in(self, text: str) -> Sequence[str]:
        """Nothing: what a wiki knows cannot be told without asking it."""
        return ()

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def _pages(self, term: str) -> list[dict[str, Any]]:
        file = self._cache / f"{_digest(self.url, term.casefold())}.json"
        kept = _read(file)
        if kept is not None and time.time() - kept["at"] < _FRESH:
            return _pages_of(kept["answer"])
        answer = self._ask(term)
        if answer is not None:
            _write(file, {"at": time.time(), "answer": answer})
            return _pages_of(answer)
        return _pages_of(kept["answer"]) if kept is not None else []

    def _ask(self, term: str) -> dict[str, Any] | None:
        """The API's answer; None, with a word to the listener, where there is none to be had."""
        if time.monotonic() < self._silent_until:
            return None
        try:
            with self._client.stream("GET", self.url, params=_question(term)) as reply:
                reply.raise_for_status()
                answer = json.loads(_bounded(reply))
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, RecursionError) as error:
            self._silent_until = time.monotonic() + _PAUSE
            report("generator.expand", f"goes on without {self.url}: {_reason(error)}")
            return None
        if not isinstance(answer, dict) or "error" in answer:
            report("generator.expand", f"{self.url} refuses: {str(answer)[:120]}")
            return None
        return answer


def _user_agent(contact: str | None) -> str:
    """As Wikimedia's policy asks: client, version, contact, library."""
    contact = contact or os.environ.get(CONTACT) or "contact not given"
    plain = "".join(c for c in contact if c.isprintable() and c.isascii() and c not in "()")
    return f"lynx-dspy/{__version__} ({plain}) httpx2/{httpx2.__version__}"


def _question(term: str) -> dict[str, str | int]:
    return {
        "action": "query",
        "format": "json",
        "formatversion": 2,
        "generator": "search",
        "gsrsearch": term,
        "gsrlimit": _PAGES,
        "prop": "extracts|info",
        "exintro": 1,
        "explaintext": 1,
        "exlimit": "max",
        "inprop": "url",
        "redirects": 1,
        "maxlag": 5,
    }


def _bounded(reply: httpx2.Response) -> bytes:
    body = bytearray()
    for piece in reply.iter_bytes():
        body += piece
        if len(body) > _LARGEST:
            raise ValueError(f"an answer of more than {_LARGEST // 1_000_000} MB")
    return bytes(body)


def _pages_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The pages with a text, in the order of the search."""
    query = answer.get("query")
    pages = query.get("pages") if isinstance(query, dict) else None
    found = [p for p in pages if isinstance(p, dict)] if isinstance(pages, list) else []
    found = [p for p in found if isinstance(p.get("extract"), str) and p["extract"].strip()]
    return sorted(found, key=_place)


def _place(page: dict[str, Any]) -> int:
    index = page.get("index")
    return index if isinstance(index, int) else _PAGES


def _passage(page: dict[str, Any]) -> Passage:
    return Passage(page["extract"], str(page.get("fullurl", "")), str(page.get("title", "")))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:32]


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:160] or type(error).__name__


def _read(file: Path) -> dict[str, Any] | None:
    try:
        kept = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    sound = isinstance(kept, dict) and isinstance(kept.get("answer"), dict)
    return kept if sound and isinstance(kept.get("at"), int | float) else None


def _write(file: Path, kept: dict[str, Any]) -> None:
    """Write so that another process never sees half a file; a full disk is no failure."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, suffix=".tmp", delete=False) as part:
            json.dump(kept, part)
        os.replace(part.name, file)
    except OSError:
        return

"""PDF as Markdown: running text, with the document's own bookmarks as headings."""

from __future__ import annotations

import io
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pypdf import PdfReader
from pypdf.errors import DependencyError, PyPdfError
from pypdf.generic import Destination

from lynx_dspy.grounding.loaders import Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping

    Titles = Mapping[int, Sequence[tuple[int, str]]]

_DAMAGED = (PyPdfError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError)
"""What pypdf raises on damaged files, beside its own errors."""

_DEEPEST = 6
_REPEATED = 3
"""On so many pages the same first or last line is a running title."""

_WRAPPED = re.compile(r"(?<=[^\W\d_])-\n(?=[^\W\d_A-Z])|(?<![.!?:;\n])\n(?=[^\W\d_A-Z])")
_NUMBER = re.compile(r"\d+")


def read(raw: bytes) -> str:
    """The text of all pages. Raises `Unreadable` if it is locked, damaged or has no text layer."""
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    try:
        reader = PdfReader(io.BytesIO(raw))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("locked by a password")
        pages = [page.extract_text() for page in reader.pages]
        titles = _bookmarks(reader)
    except DependencyError as error:
        raise Unreadable("encrypted; unlock it with another program first") from error
    except _DAMAGED as error:
        raise Unreadable("not a PDF, or damaged") from error
    if not any(page.strip() for page in pages):
        raise Unreadable("pictures of pages without text; recognise its text first (OCR)")
    return "\n".join(_headed(_without_running_titles(pages), titles))


def _bookmarks(reader: PdfReader) -> Titles:
    """(level, title) pairs of each page that bookmarks point to, levels from 1."""
    found: dict[int, list[tuple[int, str]]] = defaultdict(list)

    def walk(entries: Sequence[object], level: int) -> None:
        for entry in entries:
            if isinstance(entry, list):
                walk(entry, level + 1)
            elif isinstance(entry, Destination):
                page = reader.get_destination_page_number(entry)
                title = " ".join(str(entry.title or "").split())
                if page is not None and page >= 0 and title:
                    found[page].append((min(level, _DEEPEST), title))

    walk(reader.outline, 1)
    return found


def _headed(pages: Sequence[str], titles: Titles) -> Iterator[str]:
    """The pages, each bookmark as a heading where its title stands, else at the page's top."""
    for number, page in enumerate(pages):
        lines = [_plain(line) for line in _WRAPPED.sub(_joint, page).split("\n")]
        begun: list[str] = []
        for level, title in titles.get(number, ()):
            heading = f"{'#' * level} {title}"
            spot = next((i for i, line in enumerate(lines) if _same(line, title)), None)
            if spot is None:
                begun.append(heading)
            else:
                lines[spot] = f"\n{heading}\n"
        yield "\n".join([*begun, *lines, ""])


def _joint(found: re.Match[str]) -> str:
    return "" if found[0].startswith("-") else " "


def _plain(line: str) -> str:
    """A sign at the start of a printed line makes no heading."""
    return line if not line.startswith("#") else f" {line}"


def _same(line: str, title: str) -> bool:
    folded = " ".join(line.split()).casefold()
    return bool(folded) and folded.lstrip("0123456789. ") == title.casefold().lstrip("0123456789. ")


def _without_running_titles(pages: Sequence[str]) -> list[str]:
    """The pages without the first and last lines that most of them share, numbers aside."""
    split = [page.strip().split("\n") for page in pages]
    ends = Counter(key for lines in split for key in {_edge(lines[0]), _edge(lines[-1])})
    running = {key for key, n in ends.items() if n >= max(_REPEATED, len(pages) // 2)}
    return ["\n".join(_trimmed(lines, running)) for lines in split]


def _trimmed(lines: list[str], running: set[str]) -> list[str]:
    start = 1 if lines and _edge(lines[0]) in running else 0
    end = -1 if len(lines) > start and _edge(lines[-1]) in running else len(lines)
    return lines[start:end]


def _edge(line: str) -> str:
    return _NUMBER.sub("0", " ".join(line.split()))

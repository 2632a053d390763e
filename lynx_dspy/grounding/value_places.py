"""Stored values by their texts: whole, by near spellings, by words; columns by what they hold.

A SQLite database, in memory or in a file of the cache: a large one takes little memory and opens at
once (paper, III-A2).
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from lynx_dspy.grounding import value_files
from lynx_dspy.grounding.date_styles import Style
from lynx_dspy.grounding.identifiers import fold, stem
from lynx_dspy.grounding.spellings import digits, distance, key, pieces, probes, slips

_WORD = re.compile(r"\w+")
_MOST_SLIPS = 20
"""Near spellings of one text, at most."""

_COMMON = 40
"""A word that occurs in more values than this says nothing about one of them."""

_Row = tuple[int, str | None, str, str, str, str]
_FIND = "SELECT owner, field, value FROM places WHERE folded = ? ORDER BY id"
_ALIKE = f"SELECT owner, field, value FROM places WHERE key = ? ORDER BY id LIMIT {_COMMON + 1}"
_TELLING = "SELECT owner, field FROM texts WHERE word = ? ORDER BY owner, field"
_STYLED = "SELECT owner, field FROM styles WHERE style = ? ORDER BY owner, field"
_HOLDING = (
    "SELECT owner, field, value FROM words JOIN places ON place = id WHERE word = ? "
    f"ORDER BY id LIMIT {_COMMON + 1}"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is stored, with the spelling it has there."""

    table: str
    column: str
    value: str


class ValueIndex:
    """Texts -> places that store them, in one of their spellings or as a part; thread-safe."""

    def __init__(self, connection: sqlite3.Connection | None = None) -> None:
        self._lock = threading.Lock()
        self.connection = connection or value_files.in_memory()
        self._size = 0
        self._spread: Counter[str] = Counter()

    def add(self, *places: Place) -> None:
        """Make values findable as a whole, by near spellings and by each of their words."""
        rows, words = [], []
        for place in places:
            folded = fold(place.value)
            if not folded:
                continue
            rows.append(self._row(place, folded))
            parts = set(_WORD.findall(folded))
            if len(parts) > 1:
                self._spread.update(parts)
                words += [(p, self._size) for p in parts if self._spread[p] <= _COMMON + 1]
        self._insert(rows)
        with self._lock:
            self.connection.executemany("INSERT INTO words VALUES (?, ?)", words)

    def add_titles(self, *places: Place) -> None:
        """Make values findable by `alike` and `near` alone."""
        self._insert([self._row(place, None) for place in places if fold(place.value)])

    def _row(self, place: Place, folded: str | None) -> _Row:
        self._size += 1
        alike = key(place.value)
        return (self._size, folded, place.table, place.column, place.value, alike)

    def _insert(self, rows: list[_Row]) -> None:
        keys = dict.fromkeys(row[-1] for row in rows)
        filed = sorted((piece, alike) for alike in keys for piece in pieces(alike))
        with self._lock:
            self.connection.executemany("INSERT INTO places VALUES (?, ?, ?, ?, ?, ?)", rows)
            self.connection.executemany("INSERT OR IGNORE INTO pieces VALUES (?, ?)", filed)

    def add_style(self, table: str, column: str, style: Style) -> None:
        """Say that the column's texts are dates, written so."""
        with self._lock:
            values = (table, column, str(style))
            self.connection.execute("INSERT OR REPLACE INTO styles VALUES (?, ?, ?)", values)

    def add_texts(self, table: str, column: str, texts: Iterable[str], most: int) -> None:
        """Make the column findable by the words of its long texts, at most `most` of them."""
        seen = dict.fromkeys(stem(word) for text in texts for word in _WORD.findall(fold(text)))
        rows = [(word, table, column) for word in list(seen)[:most]]
        with self._lock:
            self.connection.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?, ?)", rows)

    def find(self, text: str) -> list[Place]:
        """The places of the value `text`, without regard to case, accents and blanks.

        >>> index = ValueIndex()
        >>> index.add(Place("city", "name", "São Paulo"))
        >>> [place.value for place in index.find("sao paulo")]
        ['São Paulo']
        """
        return self._places(_FIND, fold(text))

    def holding(self, word: str) -> list[Place]:
        """The places of longer values that hold `word`; none if too many do."""
        places = self._places(_HOLDING, fold(word))
        return places if len(places) <= _COMMON else []

    def alike(self, text: str) -> list[Place]:
        """The places of values that differ from `text` in signs, plural or number format alone.

        >>> index = ValueIndex()
        >>> index.add(Place("city", "name", "New York"), Place("part", "code", "AB-12 34"))
        >>> [place.value for text in ("New-York", "ab1234") for place in index.alike(text)]
        ['New York', 'AB-12 34']
        """
        return self._places(_ALIKE, key(text))

    def near(self, text: str) -> list[Place]:
        """The places of values that a slip of the pen or two made `text` of; none for short ones.

        >>> index = ValueIndex()
        >>> index.add(Place("city", "name", "São Paulo"), Place("city", "name", "Santos"))
        >>> [place.value for place in index.near("Sao Paolo")]
        ['São Paulo']
        """
        asked = key(text)
        wanted = sorted(probes(asked))
        if not wanted:
            return []
        holes = ", ".join("?" * len(wanted))
        query = f"SELECT DISTINCT key FROM pieces WHERE piece IN ({holes})"
        with self._lock:
            keys = [row[0] for row in self.connection.execute(query, wanted)]
        found = [
            (edits, other)
            for other in keys
            if digits(other) == digits(asked)
            and 0 < (edits := distance(asked, other, slips(other))) <= slips(other)
        ]
        least = min(found, default=(0, ""))[0]
        best = [other for edits, other in sorted(found)[:_MOST_SLIPS] if edits == least]
        return [place for other in best for place in self._places(_ALIKE, other)]

    def telling(self, word: str) -> list[tuple[str, str]]:
        """The columns of long texts in which `word` stands, as (table, column)."""
        return self._columns(_TELLING, stem(fold(word)))

    def styles(self) -> list[Style]:
        """The ways in which the columns of this database write dates as text."""
        with self._lock:
            rows = self.connection.execute("SELECT DISTINCT style FROM styles").fetchall()
        return [Style.read(row[0]) for row in rows]

    def styled(self, style: Style) -> list[tuple[str, str]]:
        """The columns that write dates so, as (table, column)."""
        return self._columns(_STYLED, str(style))

    def _places(self, query: str, wanted: str) -> list[Place]:
        with self._lock:
            return [Place(*row) for row in self.connection.execute(query, (wanted,))]

    def _columns(self, query: str, wanted: str) -> list[tuple[str, str]]:
        with self._lock:
            return list(self.connection.execute(query, (wanted,)))

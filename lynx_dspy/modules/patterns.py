"""Validated fix patterns: repairs that made a failure go away, kept for later questions (III-B).

A store is a file of JSON lines that a person can read and edit: each line is one pattern with the
question, the model and the day that it comes from. It is off unless `config.fix_patterns` names a
file. Patterns are shown for the very database that they were learned on, known by its structure.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from lynx_dspy.errors import BadInput
from lynx_dspy.modules.clauses import code_delta
from lynx_dspy.modules.delta import failing, failure_text
from lynx_dspy.paths import expanded
from lynx_dspy.tokens import clip
from lynx_dspy.values import Attempt, Schema

MOST_PATTERNS = 500
"""A fuller store forgets what was seen least, then what was seen longest ago."""

_MOST_SHOWN = 3
_SHOWN_TOKENS = 150
_LONGEST = 400
_LOCK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Fix:
    """A failure that went away, and the edit that did it, clause by clause."""

    failure_class: str
    name: str
    failure: str
    edit: str

    @property
    def text(self) -> str:
        """The fix in one line."""
        return f"{self.failure} => {self.edit}"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A fix with its provenance; `seen` counts the questions that it helped, `day` is the last."""

    database: str
    failure_class: str
    name: str
    failure: str
    edit: str
    question: str
    lm: str
    day: str
    seen: int = 1

    @property
    def fix(self) -> Fix:
        return Fix(self.failure_class, self.name, self.failure, self.edit)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Patterns of equal key are one pattern."""
        return self.database, self.failure_class, self.failure, self.edit


def fix_of(previous: Attempt, current: Attempt, dialect: str) -> Fix:
    """The fix that an attempt made to the one before it."""
    failed = failing(previous, dialect)
    failure = failure_text(previous).splitlines()[0]
    edit = code_delta(previous.code, current.code, dialect)
    return Fix(failed.failure_class, failed.name, failure[:_LONGEST], edit[:_LONGEST])


def database_key(schema: Schema) -> str:
    """A name for the database that changes with its tables and columns, not with its rows.

    >>> database_key(Schema("sqlite", (), name="shop"))
    'shop-4f53cda1'
    """
    tables = sorted((t.name, sorted((c.name, c.type) for c in t.columns)) for t in schema.tables)
    digest = hashlib.sha256(json.dumps(tables).encode()).hexdigest()
    return f"{schema.name or schema.dialect}-{digest[:8]}"


class PatternStore:
    """Patterns in a file of JSON lines; processes may share it."""

    def __init__(self, path: str | Path) -> None:
        self.path = expanded(str(path))

    def load(self) -> list[Pattern]:
        """All patterns, none if there is no file. Raises `BadInput` if it cannot be read."""
        try:
            lines = self.path.read_text(encoding="utf-8").split("\n")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"Cannot read the fix patterns of {self.path}: {error}.") from error
        numbered = ((n, line) for n, line in enumerate(lines, 1) if line.strip())
        return [_read(line, f"line {n} of {self.path}") for n, line in numbered]

    def recall(self, schema: Schema, attempt: Attempt) -> str:
        """Patterns that fit the attempt's failure, as lines for a prompt; empty if none does."""
        failed = failing(attempt, schema.dialect)
        here = database_key(schema)
        fitting = [
            p for p in self.load() if (p.database, p.failure_class) == (here, failed.failure_class)
        ]
        fitting.sort(key=lambda p: (_same_name(p.name, failed.name), p.seen, p.day), reverse=True)
        lines = [f"- {p.fix.text}" for p in fitting[:_MOST_SHOWN]]
        told = "\n".join(["Fixes that worked on this database before:", *lines])
        return clip(told, _SHOWN_TOKENS) if lines else ""

    def add(self, fixes: Iterable[Fix], schema: Schema, question: str, lm: str) -> None:
        """Record fixes of one question. Raises `BadInput` where the file cannot be written."""
        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        here, asked = database_key(schema), " ".join(question.split())[:_LONGEST]
        new = [
            Pattern(here, fix.failure_class, fix.name, fix.failure, fix.edit, asked, lm, day)
            for fix in dict.fromkeys(fixes)
            if fix.edit
        ]
        if not new:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self.path}.lock", timeout=_LOCK_SECONDS):
                self._write(merged(self.load(), new))
        except OSError as error:  # a lock that is never free is one too
            raise BadInput(f"Cannot write the fix patterns to {self.path}: {error}.") from error

    def _write(self, patterns: Sequence[Pattern]) -> None:
        """The old file or the new one, never half of either."""
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with open(handle, "w", encoding="utf-8") as stream:
                for pattern in patterns:
                    stream.write(json.dumps(asdict(pattern), ensure_ascii=False) + "\n")
            os.replace(name, self.path)
        except OSError:
            with suppress(OSError):
                os.unlink(name)
            raise


def merged(old: Iterable[Pattern], new: Iterable[Pattern]) -> list[Pattern]:
    """Old and new patterns without doubles, at most `MOST_PATTERNS`, oldest first.

    A pattern that is found again keeps its first question and counts one more.
    """
    found = {pattern.key: pattern for pattern in old}
    for pattern in new:
        known = found.pop(pattern.key, None)
        again = replace(known, seen=known.seen + 1, day=pattern.day) if known else pattern
        found[pattern.key] = again
    places = {key: place for place, key in enumerate(found)}
    worth = sorted(found, key=lambda k: (found[k].seen, found[k].day, places[k]), reverse=True)
    kept = set(worth[:MOST_PATTERNS])
    return [pattern for key, pattern in found.items() if key in kept]


def _read(line: str, where: str) -> Pattern:
    try:
        record: Any = json.loads(line)
        pattern = Pattern(**record)
    except (ValueError, TypeError, RecursionError) as error:
        raise BadInput(f"{where} is no fix pattern: {error}. Mend or remove the line.") from None
    texts = (getattr(pattern, f.name) for f in fields(pattern) if f.name != "seen")
    if not all(isinstance(text, str) for text in texts) or not isinstance(pattern.seen, int):
        raise BadInput(f"{where} is no fix pattern: a field has another type. Remove the line.")
    return pattern


def _same_name(left: str, right: str) -> bool:
    return bool(left) and left.casefold() == right.casefold()

"""Everything that this package raises on purpose.

LynxError                 one line: what it got, what it knows, what to do
├── BadInput              the call cannot be carried out: question, option, file format
│   ├── UnknownName       a name that is not in a closed list; shows the list
│   └── DatabaseError     the database is missing, empty, locked or not a database
├── ModelError            no language model: not pulled, unknown, no key, unreachable
│   └── ModelMissing      the weights are not on this machine; names the command that pulls them
├── DownloadError         a pull failed or its checksum differs
└── ArtifactError         a compiled artifact does not fit this program

The command line turns each of them into that line and exit code 2. A program that fails to run is
not among them: it is a `values.Outcome`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LynxError(Exception):
    """Base of all errors of this package; its text is one line for a user."""


class BadInput(LynxError):
    """The call cannot be carried out as it was made."""


class UnknownName(BadInput):
    """A name that is not in a closed list.

    >>> raise UnknownName("metric", "softf1", ["execution_accuracy", "soft_f1"])
    Traceback (most recent call last):
    lynx_dspy.errors.UnknownName: Unknown metric 'softf1'. Did you mean 'soft_f1'? Known: \
execution_accuracy, soft_f1.
    """

    def __init__(self, kind: str, got: str, known: Iterable[str]) -> None:
        names = list(known)
        near = difflib.get_close_matches(got, names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        super().__init__(f"Unknown {kind} {got!r}.{hint} Known: {', '.join(names)}.")


class DatabaseError(BadInput):
    """The database cannot be opened or read."""


class ModelError(LynxError):
    """The language model cannot be used."""


class ModelMissing(ModelError):
    """The weights are not on this machine."""


class DownloadError(LynxError):
    """A pull failed, or what came is not what was expected."""


class ArtifactError(LynxError):
    """A compiled artifact does not fit the program that loads it."""

"""The languages that programs are written in, and the parts of the program that each one needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import dspy

from lynx_dspy.engines.static import NOT_SQL
from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.modules.checker import Checker
from lynx_dspy.modules.generator import Generator
from lynx_dspy.modules.python import (
    PythonChecker,
    python_generator,
    python_reviser,
    python_verifier,
)
from lynx_dspy.modules.reviser import Reviser
from lynx_dspy.modules.verifier import Verifier


@dataclass(frozen=True, slots=True)
class Language:
    """How the parts that know the language are made; `where` says what database it needs."""

    generator: Callable[[], dspy.Module]
    checker: Callable[[], Checker]
    reviser: Callable[[], dspy.Module]
    verifier: Callable[[], dspy.Module]
    where: str


LANGUAGES: dict[str, Language] = {
    "sql": Language(Generator, Checker, Reviser, Verifier, "a database"),
    "python": Language(
        python_generator,
        PythonChecker,
        python_reviser,
        python_verifier,
        "a folder of CSV or Parquet files as frames:///DIR",
    ),
}


def language_named(name: str) -> Language:
    """The language of this name. Raises `UnknownName`."""
    if name not in LANGUAGES:
        raise UnknownName("language", name, LANGUAGES)
    return LANGUAGES[name]


def language_for(dialect: str) -> str:
    """The language that programs of a dialect are written in.

    >>> language_for("sqlite"), language_for("pandas")
    ('sql', 'python')
    """
    return "python" if dialect in NOT_SQL else "sql"


def require_fitting(language: str, dialect: str) -> None:
    """Raises `BadInput` where programs of the language cannot run on databases of the dialect."""
    wanted = language_for(dialect)
    if language != wanted:
        raise BadInput(
            f"This program writes {language}, the database takes {wanted} ({dialect}). Use "
            f"Lynx(language={wanted!r}), or connect {LANGUAGES[language].where}."
        )

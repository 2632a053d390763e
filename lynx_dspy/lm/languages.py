"""Which language the program of a reply is in, and how it is found there.

A signature marks its program's field: `code: Annotated[str, Language("python")]`. DSPy keeps the
mark when it copies, cuts down or saves a signature; a field without one holds SQL.
"""

from __future__ import annotations

from collections.abc import Callable

from pydantic.fields import FieldInfo

from lynx_dspy.lm.extract import extract_program
from lynx_dspy.lm.extract_python import extract_python

SQL, PYTHON = "sql", "python"


class Language(str):
    """The mark on a field; its text is the fence's language."""

    __slots__ = ()


def language_of(info: FieldInfo) -> str:
    """The language of the program in this field.

    >>> language_of(FieldInfo(annotation=str))
    'sql'
    """
    return next((str(mark) for mark in info.metadata if isinstance(mark, Language)), SQL)


def program_in(reply: str, info: FieldInfo) -> str:
    """The program in a reply, in the field's language; empty if there is none."""
    return _EXTRACTORS[language_of(info)](reply)


_EXTRACTORS: dict[str, Callable[[str], str]] = {
    SQL: lambda reply: extract_program(reply, "").code,
    PYTHON: lambda reply: extract_python(reply).code,
}

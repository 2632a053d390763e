"""From raw messages of the engines to one line and a class."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.engines.failures import TABLES, failed, one_line
from lynx_dspy.values import FailureClass, Status


@pytest.mark.parametrize(
    ("dialect", "message", "expected"),
    [
        ("sqlite", 'near "FRO": syntax error', FailureClass.SYNTAX),
        ("sqlite", "wrong number of arguments to function SUBSTR()", FailureClass.SYNTAX),
        ("sqlite", "ambiguous column name: main.t.id", FailureClass.SCHEMA),
        ("sqlite", "misuse of aggregate: COUNT()", FailureClass.SEMANTIC),
        ("sqlite", "malformed JSON", FailureClass.SEMANTIC),
        ("sqlite", "a message of a later version", FailureClass.SEMANTIC),
        ("sqlite", "database disk image is malformed", Status.UNAVAILABLE),
        ("sqlite", "disk I/O error", Status.UNAVAILABLE),
        ("sqlite", "not authorized", Status.BLOCKED),
        ("duckdb", "Catalog Error: Table with name x does not exist!", FailureClass.SCHEMA),
        ("duckdb", "Conversion Error: Could not convert string 'a'", FailureClass.SEMANTIC),
        ("duckdb", "IO Error: Could not read from file", Status.UNAVAILABLE),
        ("duckdb", "Permission Error: Cannot access file", Status.BLOCKED),
    ],
)
def test_classes(dialect: str, message: str, expected: FailureClass | Status) -> None:
    outcome = failed(dialect, message)
    assert expected in (outcome.failure_class, outcome.status)
    assert (outcome.failure_class is None) == (outcome.status is not Status.ERROR)


def test_candidates_stay_and_decoration_goes() -> None:
    raw = 'Binder Error: Referenced column "x" not found!\nCandidates: "a"\n\nLINE 1: SELECT x\n  ^'
    assert one_line(raw) == 'Referenced column "x" not found! Candidates: "a"'


@given(st.text(), st.sampled_from(sorted(TABLES)))
def test_every_message_gives_one_line(message: str, dialect: str) -> None:
    outcome = failed(dialect, message)
    assert len(outcome.error.splitlines()) <= 1
    assert len(outcome.error) <= 400

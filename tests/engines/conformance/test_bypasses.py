"""No known way around the guard gets through, and behind the guard stands another wall."""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance.bypasses import READS, all_of, writes
from conformance.kit import Adapter

from lynx_dspy.engines.base import Database
from lynx_dspy.engines.guard import refusal
from lynx_dspy.values import Limits, Status

_STOPPED = (Status.BLOCKED, Status.ERROR, Status.NO_PROGRAM)


def _filled(program: str, folder: Path) -> str:
    paths = {"{file}": str(folder / "written"), "{secret}": str(folder / "secret.csv")}
    for mark, path in paths.items():
        program = program.replace(mark, path)
    return program


@pytest.mark.parametrize(
    ("dialect", "program"), [(d, p) for d in READS for p in all_of(d)], ids=lambda text: text[:60]
)
def test_the_guard_lets_none_through(dialect: str, program: str) -> None:
    outcome = refusal(_filled(program, Path("/tmp")), dialect)
    assert outcome is not None
    assert outcome.status in _STOPPED
    assert outcome.error


@pytest.mark.capability("blocked statements")
def test_nothing_changes_where_the_guard_stands(
    adapter: Adapter, database: Database, tmp_path: Path
) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "secret.csv").write_text("1")
    before = adapter.digest()
    for program in all_of(adapter.dialect):
        outcome = database.execute(_filled(program, tmp_path), Limits(timeout_seconds=5))
        assert outcome.status in _STOPPED, program
    assert adapter.digest() == before
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


@pytest.mark.capability("second wall")
def test_nothing_changes_even_past_the_guard(
    adapter: Adapter, database: Database, tmp_path: Path
) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "secret.csv").write_text("1")
    before = adapter.digest()
    for program in writes(adapter.dialect):
        adapter.unguarded(database, _filled(program, tmp_path), Limits(timeout_seconds=5))
        assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"], program
    assert adapter.digest() == before
    assert database.execute("SELECT COUNT(*) FROM orders").rows == ((3,),)

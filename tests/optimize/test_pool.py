"""The pool of databases: opened once, closed when idle, never while in use."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from lynx_dspy.engines import connect
from lynx_dspy.engines.base import Database
from lynx_dspy.errors import DatabaseError
from lynx_dspy.optimize.pool import Databases


def test_idle_databases_are_closed_and_used_ones_are_not(
    counting: ModuleType, tmp_path: Path
) -> None:
    path = counting.build(tmp_path)
    copies = [tmp_path / f"{n}.sqlite" for n in range(3)]
    for copy in copies:
        copy.write_bytes(path.read_bytes())
    opened: list[str] = []

    def opener(url: str, db: str) -> Database:
        opened.append(db)
        return connect(url)

    with Databases(size=1, opener=opener) as pool:
        with pool.lease(str(copies[0]), "first") as first:
            with pool.lease(str(copies[1]), "second"):
                pass
            with pool.lease(str(copies[0]), "first") as again:
                assert again is first
            assert first.database.query("SELECT COUNT(*) FROM numbers") == [(10,)]
            assert first.schema.table("numbers")
        with pool.lease(str(copies[1]), "second"):
            pass
    assert opened == ["first", "second", "second"]
    with pytest.raises(DatabaseError):
        first.database.query("SELECT 1")


def test_a_database_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with Databases() as pool, pytest.raises(DatabaseError), pool.lease(str(tmp_path / "no.sqlite")):
        pass

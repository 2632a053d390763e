"""What `connect` makes of a URL or a path, and what it says when it cannot."""

import os
import sqlite3
import sys
from pathlib import Path

import duckdb
import pytest

from lynx_dspy.engines import connect
from lynx_dspy.errors import DatabaseError, UnknownName


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with sqlite3.connect(tmp_path / "a.sqlite") as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()
    duckdb.connect(str(tmp_path / "b.duckdb")).execute("CREATE TABLE t (a INT)").close()
    (tmp_path / "c.csv").write_text("a\n1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        ("sqlite:///a.sqlite", "sqlite"),
        ("SQLite:///{}/a.sqlite", "sqlite"),
        ("a.sqlite", "sqlite"),
        ("./a.sqlite", "sqlite"),
        ("duckdb:///b.duckdb", "duckdb"),
        ("duckdb:///{}/b.duckdb", "duckdb"),
        ("c.csv", "duckdb"),
        ("files:///c.csv", "duckdb"),
    ],
)
def test_opens(folder: Path, url: str, dialect: str) -> None:
    with connect(url.format(folder)) as db:
        assert db.dialect == dialect
        assert len(db.introspect().tables) == 1
        assert db.url.endswith(url.rsplit("/", 1)[-1])


def test_the_first_bytes_beat_the_ending(folder: Path) -> None:
    (folder / "a.sqlite").rename("a.duckdb")
    (folder / "b.duckdb").rename("b.db")
    assert connect("a.duckdb").dialect == "sqlite"
    with connect(Path("b.db")) as db:
        assert db.dialect == "duckdb"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("missing.db", None, "no such file or folder"),
        ("empty.db", b"", r"empty \(0 bytes\)"),
        ("text.db", b"hello", "not a database"),
        ("notes.txt", b"a,b\n1,2\n", "not a database"),
        ("dump.sql", b"CREATE TABLE t (a);", "SQL script"),
        ("x.parquet", b"hello", "not a Parquet file"),
        ("cut.db", b"SQLite format 3\0" + b"\1" * 90, "cannot be read as SQLite"),
        ("cut.duckdb", b"12345678DUCK" + b"\1" * 90, "cannot be read as DuckDB"),
        ("sqlite:///b.duckdb", None, "looks like duckdb"),
        ("", None, "No database"),
        ("sqlite://", None, "files"),
        ("sqlite:///:memory:", None, "no such file"),
        ("a\0b", None, "No database"),
        ("x" * 5000, None, "Cannot look at"),
    ],
)
def test_says_what_is_wrong(folder: Path, name: str, content: bytes | None, says: str) -> None:
    if content is not None:
        (folder / name).write_bytes(content)
    before = sorted(os.listdir(folder))
    with pytest.raises(DatabaseError, match=says) as error:
        connect(name)
    assert "\n" not in str(error.value)
    assert sorted(os.listdir(folder)) == before


def test_databases_without_tables(folder: Path) -> None:
    with sqlite3.connect("none.db") as connection:
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    duckdb.connect("none.duckdb").close()
    (folder / "sub").mkdir()
    for name in ("none.db", "none.duckdb", "sub"):
        with pytest.raises(DatabaseError, match="holds no tables"):
            connect(name)


def test_an_unknown_scheme_lists_the_known() -> None:
    with pytest.raises(UnknownName, match=r"'bogus'.*sqlite, duckdb, files.*postgresql"):
        connect("bogus://host/db")


def test_a_light_command_does_not_pay_for_the_engines() -> None:
    code = (
        "import lynx_dspy.engines, sys\n"
        "sys.exit(any(name in sys.modules for name in ('duckdb', 'sqlglot')))"
    )
    assert os.spawnl(os.P_WAIT, sys.executable, sys.executable, "-c", code) == 0

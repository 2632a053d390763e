"""`lynx connect`: save, list, test, remove; bad input is one line and exit code 2."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from lynx_dspy.cli import main


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("LYNX_CONFIG", str(tmp_path / "config"))
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE orders (id INTEGER); INSERT INTO orders VALUES (1), (2);"
        )
    connection.close()
    return path


def test_from_save_to_remove(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["connect"]) == 0
    assert "lynx connect --save NAME URL" in capsys.readouterr().out
    assert main(["connect", "--save", "shop", str(file)]) == 0
    assert main(["connect", "--save", "pg", "postgresql://me:${PW}@host/db"]) == 0
    capsys.readouterr()
    assert main(["connect"]) == 0
    listed = capsys.readouterr().out
    assert f"shop  sqlite:///{file}" in listed
    assert "needs the environment variable PW" in listed
    assert main(["connect", "--test", "shop"]) == 0
    tested = capsys.readouterr().out
    assert "(sqlite), 1 table" in tested and "orders  2 rows" in tested
    assert main(["schema", "--db", "shop"]) == 0
    assert "orders" in capsys.readouterr().out
    assert main(["connect", "--remove", "shop"]) == 0
    assert main(["schema", "--db", "shop"]) == 2
    assert "Known: pg" in capsys.readouterr().err


def test_json_is_one_object(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, wanted in (
        (["--save", "shop", str(file)], {"saved": "shop", "url": f"sqlite:///{file}"}),
        ([], {"connections": [{"name": "shop", "url": f"sqlite:///{file}", "missing": ""}]}),
        (["--remove", "shop"], {"removed": "shop"}),
    ):
        assert main(["connect", "--json", *arguments]) == 0
        assert json.loads(capsys.readouterr().out) == wanted
    assert main(["connect", "--save", "shop", str(file)]) == 0
    capsys.readouterr()
    assert main(["connect", "--json", "--test", "shop"]) == 0
    assert json.loads(capsys.readouterr().out)["tables"] == [{"name": "orders", "rows": 2}]


def test_a_password_may_be_named_apart(capsys: pytest.CaptureFixture[str]) -> None:
    url = "postgresql://me@host/db"
    assert main(["connect", "--save", "pg", url, "--password-env", "SHOP_PW"]) == 0
    assert "postgresql://me:${SHOP_PW}@host/db" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--save", "shop", "nowhere.sqlite"], "no such file"),
        (["--save", "sh op", "x"], "cannot name a connection"),
        (["--save", "shop"], "requires 2 arguments"),
        (["--save", "a", "b", "--remove", "c"], "one at a time"),
        (["--remove", "shop"], "No connection is saved"),
        (["--test", "shop"], "No database at"),
        (["--password-env", "PW"], "go with --save"),
        (["--save", "s", "mysql://host/db", "--password-env", "PW"], "has a user name"),
        (["--save", "s", "mysql://me@host/db", "--password-env", "P W"], "cannot name an"),
        (["--save", "s", "mysql://me@h/d", "--password-env", "P", "--ask-password"], "exclude"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["connect", *arguments]) == 2
    captured = capsys.readouterr()
    assert says in captured.err and captured.err.count("\n") == 1 and not captured.out

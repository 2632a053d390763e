"""Names for databases: secrets are in no file, a file wins over a name, a typo is told."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lynx_dspy as lynx
from lynx_dspy import connections
from lynx_dspy.connections import Vault, opened, resolve, save
from lynx_dspy.datasets import jsonl
from lynx_dspy.errors import BadInput, DatabaseError, UnknownName

SECRET = "hunter2-Zürich/@:?#&%"
URL = f"postgresql://me:{quote(SECRET, safe='')}@db.example:5432/shop?sslmode=require"


class Drawer:
    """Keeps secrets in memory."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}

    def __call__(self) -> Vault:
        return self

    def get(self, name: str, field: str) -> str | None:
        return self.held.get(f"{name}/{field}")

    def put(self, name: str, field: str, secret: str) -> None:
        self.held[f"{name}/{field}"] = secret

    def drop(self, name: str, field: str) -> None:
        del self.held[f"{name}/{field}"]


def no_vault() -> Vault:
    raise BadInput("there is no keyring")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config folder of its own, and a working folder without files."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("LYNX_CONFIG", str(tmp_path / "config"))
    return tmp_path / "config"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.close()
    return path


def test_a_name_opens_what_it_was_saved_for(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    save("shop", "shop.sqlite")
    monkeypatch.chdir(file.parent / "work")
    with lynx.connect("shop") as database:
        assert [table.name for table in database.introspect().tables] == ["orders"]


def test_a_file_and_a_url_win_over_a_name(file: Path) -> None:
    save("shop", str(file))
    other = Path("shop")
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE here (id INTEGER)")
    connection.close()
    with lynx.connect("shop") as database:
        assert [table.name for table in database.introspect().tables] == ["here"]
    assert resolve("sqlite:///shop") == "sqlite:///shop"


def test_a_typo_names_what_is_known(file: Path) -> None:
    with pytest.raises(DatabaseError, match="no such file"):
        lynx.connect("shpo")  # nothing is saved: it can only be meant as a file
    save("shop", str(file))
    save("sales", str(file))
    with pytest.raises(UnknownName, match=r"'shpo'. Did you mean 'shop'\? Known: sales, shop"):
        lynx.connect("shpo")


def test_a_secret_goes_to_the_keyring_and_into_no_file(home: Path) -> None:
    drawer = Drawer()
    kept = save("shop", URL + "&access_token=abc%2Fd", drawer)
    assert kept == (
        "postgresql://me:${keyring}@db.example:5432/shop?sslmode=require"
        "&access_token=${keyring:access_token}"
    )
    assert drawer.held == {"shop/password": SECRET, "shop/access_token": "abc/d"}
    written = b"".join(p.read_bytes() for p in home.rglob("*") if p.is_file())
    assert b"hunter2" not in written and b"abc" not in written
    assert resolve("shop", drawer) == URL + "&access_token=abc%2Fd"
    connections.remove("shop", drawer)
    assert drawer.held == {} and connections.listed() == {}


def test_saving_again_forgets_the_secret_of_before() -> None:
    drawer = Drawer()
    save("shop", URL, drawer)
    save("shop", "postgresql://me:${PW}@db.example/shop", drawer)
    assert drawer.held == {}


def test_without_a_keyring_the_refusal_shows_the_form_and_no_secret(home: Path) -> None:
    with pytest.raises(BadInput) as raised:
        save("my-shop", URL, no_vault)
    said = str(raised.value)
    assert "postgresql://me:${MY_SHOP_PASSWORD}@db.example:5432/shop?sslmode=require" in said
    assert "hunter2" not in said and "\n" not in said
    assert not (home / connections.FILE).exists()


def test_the_environment_is_read_when_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    save("shop", "mysql://me:${SHOP_PW}@db.example/shop", no_vault)
    with pytest.raises(DatabaseError, match="environment variable SHOP_PW"):
        resolve("shop", no_vault)
    monkeypatch.setenv("SHOP_PW", "a b/c@d")
    assert urlsplit(resolve("shop", no_vault)).password == "a%20b%2Fc%40d"


def test_a_url_that_was_not_saved_reads_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PW", "secret")
    url = "mysql://${SHOP_PW}@evil.example/shop"
    assert resolve(url, no_vault) == url


@given(st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_any_password_comes_back_whole(password: str) -> None:
    drawer = Drawer()
    kept, secrets = connections._without_secrets(
        f"postgresql://me:{quote(password, safe='')}@host/db"
    )
    for field, secret in secrets.items():
        drawer.put("x", field, secret)
    assert opened("x", kept, drawer) == f"postgresql://me:{quote(password, safe='')}@host/db"


@pytest.mark.parametrize(
    ("name", "url", "says"),
    [
        ("", "x.sqlite", "cannot name a connection"),
        ("a/b", "x.sqlite", "cannot name a connection"),
        ("../x", "x.sqlite", "cannot name a connection"),
        ("shop", "no-such.sqlite", "no such file"),
        ("shop", "", "No database"),
        ("shop", "postgresql://me:pa/ss@host/db", "%2F"),
        ("shop", "postgresql://me:pa?ss@host/db", "%2F"),
        ("shop", "postgresql://me:pass@host:port/db", "cannot be read"),
    ],
)
def test_what_cannot_be_saved_is_one_line(name: str, url: str, says: str) -> None:
    with pytest.raises(BadInput) as raised:
        save(name, url, no_vault)
    assert says in str(raised.value) and "\n" not in str(raised.value)
    assert "pass" not in str(raised.value).replace("password", "")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 1, "connections": []}', "\0"])
def test_a_broken_file_is_told(home: Path, text: str) -> None:
    home.mkdir(parents=True)
    (home / connections.FILE).write_text(text)
    with pytest.raises(BadInput, match="Mend it, or delete it"):
        connections.listed()


def test_a_file_of_another_version_is_left_alone(home: Path) -> None:
    home.mkdir(parents=True)
    (home / connections.FILE).write_text('{"format": 2, "connections": {}}')
    with pytest.raises(BadInput, match="format 2"):
        save("shop", "mysql://host/db")
    assert '"format": 2' in (home / connections.FILE).read_text()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_that_cannot_be_written_is_told(home: Path) -> None:
    home.mkdir(parents=True, mode=0o500)
    with pytest.raises(BadInput, match="Cannot write"):
        save("shop", "mysql://host/db")


def test_questions_of_ones_own_may_name_a_connection(file: Path, tmp_path: Path) -> None:
    save("shop", str(file))
    (tmp_path / "test.jsonl").write_text(
        json.dumps({"question": "q", "database": "shop", "gold_sql": "SELECT 1"}) + "\n"
    )
    (one,) = jsonl.load(tmp_path)
    assert (one.database, one.db, one.dialect) == ("shop", "shop", "sqlite")


def test_the_system_keyring_is_asked_for_what_it_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keyring = pytest.importorskip("keyring", reason="needs the extra `keyring`")
    backend = pytest.importorskip("keyring.backend")

    class Memory(backend.KeyringBackend):  # type: ignore[name-defined, misc]
        priority = 9
        held: dict[tuple[str, str], str] = {}  # noqa: RUF012 - one drawer for all

        def get_password(self, service: str, username: str) -> str | None:
            return self.held.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            self.held[service, username] = password

        def delete_password(self, service: str, username: str) -> None:
            del self.held[service, username]

    class PlaintextKeyring(Memory):
        pass

    before = keyring.get_keyring()
    try:
        keyring.set_keyring(Memory())
        save("shop", URL)
        assert Memory.held == {("lynx", "shop/password"): SECRET}
        assert resolve("shop") == URL
        connections.remove("shop")
        assert Memory.held == {}
        keyring.set_keyring(PlaintextKeyring())
        with pytest.raises(BadInput, match="plain files"):
            save("shop", URL)
    finally:
        keyring.set_keyring(before)

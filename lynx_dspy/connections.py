"""Named connections: a name for a database's URL, kept in a small file without its secrets.

    CONFIG/connections.json   {"format": 1, "connections": {"shop": "postgresql://me:${PW}@host/db"}}

Where a secret stands in a URL, the file holds a reference: `${NAME}` is an environment variable,
`${keyring}` (or `${keyring:FIELD}`) an entry of the system keyring. References are followed when
the connection is opened, and in saved URLs only: text from a dataset must not read the environment.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import SplitResult, quote, unquote, urlsplit

from lynx_dspy.errors import BadInput, DatabaseError, UnknownName
from lynx_dspy.paths import config_home, expanded

FILE = "connections.json"
FORMAT = 1

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_REFERENCE = re.compile(r"\$\{(keyring(?::[\w.-]+)?|[A-Za-z_][A-Za-z0-9_]*)\}")
_OPTION = re.compile(r"(?P<sign>[?&;])(?P<key>[\w.-]+)=(?P<value>[^&;#]*)")
_SECRET_KEY = re.compile(
    r"(?i)(?!.*(?:path|file)$).*"
    r"(?:pass(?:word|wd|phrase|code)|pwd|secret|token|credential|private_?key|(?:api|access)_?key)"
)
_PASSWORD = "password"
_SERVICE = "lynx"
_UNREADABLE = -1
_PATH_SCHEMES = ("sqlite", "duckdb", "files")
_LOCK_SECONDS = 10.0


class Vault(Protocol):
    """Keeps secrets by connection and field, outside of files. Raises `BadInput` if it cannot."""

    def get(self, name: str, field: str) -> str | None: ...

    def put(self, name: str, field: str, secret: str) -> None: ...

    def drop(self, name: str, field: str) -> None: ...


class Keyring:
    """The system keyring: Keychain, Credential Locker, Secret Service, KWallet."""

    def get(self, name: str, field: str) -> str | None:
        import keyring

        with _told():
            secret: str | None = keyring.get_password(_SERVICE, f"{name}/{field}")
        return secret

    def put(self, name: str, field: str, secret: str) -> None:
        import keyring

        with _told():
            keyring.set_password(_SERVICE, f"{name}/{field}", secret)

    def drop(self, name: str, field: str) -> None:
        import keyring

        with _told():
            if keyring.get_password(_SERVICE, f"{name}/{field}") is not None:
                keyring.delete_password(_SERVICE, f"{name}/{field}")


def system_vault() -> Vault:
    """The system keyring. Raises `BadInput` that says why there is none to use."""
    try:
        import keyring
        from keyring.backends import chainer
    except ImportError:
        raise BadInput("no keyring is installed: pip install 'lynx-dspy[keyring]'") from None
    backend = keyring.get_keyring()
    parts = backend.backends if isinstance(backend, chainer.ChainerBackend) else [backend]
    # Neither a backend that fails or forgets, nor one that writes plain files.
    usable = [p for p in parts if p.priority > 0 and "Plaintext" not in type(p).__name__]
    if not usable or len(usable) < len(parts):
        raise BadInput("this machine has no keyring that keeps secrets out of plain files")
    return Keyring()


def listed() -> dict[str, str]:
    """The saved URLs by name; they hold references and no secrets.

    Raises `BadInput` for a file that this version cannot read.
    """
    path = config_home() / FILE
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["format"] != FORMAT:
            raise BadInput(f"{path} has format {record['format']}; this version reads {FORMAT}.")
        return {str(name): str(url) for name, url in record["connections"].items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadInput(f"{path} holds no connections. Mend it, or delete it.") from None


def save(name: str, url: str, vault: Callable[[], Vault] = system_vault) -> str:
    """Keep `url` under `name`, in the place of what it named; what is kept of it.

    A path is kept whole. Secrets in a URL go to the keyring. Raises `BadInput`, without showing
    them, where there is none, and `DatabaseError` for a file that is no database.
    """
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"{name!r} cannot name a connection: letters, digits, - and _, a letter first."
        )
    kept, secrets = _without_secrets(url) if _is_server(url) else (_whole(url), {})
    if secrets:
        keeper = _vault_for(name, kept, vault)
        for field, secret in secrets.items():
            keeper.put(name, field, secret)
    with _changed() as known:
        before = known.get(name, "")
        known[name] = kept
    _forget(name, _fields(before) - _fields(kept), vault)
    return kept


def remove(name: str, vault: Callable[[], Vault] = system_vault) -> None:
    """Forget a connection and its secrets. Raises `UnknownName`."""
    with _changed() as known:
        _require(name, known)
        url = known.pop(name)
    _forget(name, _fields(url), vault)


def resolve(text: str, vault: Callable[[], Vault] = system_vault) -> str:
    """The URL, with its secrets, that a saved name stands for; any other text as it is.

    What exists as a file or folder, and what has a scheme, is no name. Raises `UnknownName` for a
    bare word that is neither, if there are saved names, and `DatabaseError` for a secret that is
    not there.
    """
    if not _NAME.fullmatch(text) or Path(text).exists():
        return text
    known = listed()
    if not known:
        return text
    if text not in known:
        raise UnknownName("file, folder or connection", text, known)
    return opened(text, known[text], vault)


def is_saved(text: str) -> bool:
    """Whether `text` is a saved name, wherever a file of this name may lie."""
    return bool(_NAME.fullmatch(text)) and text in listed()


def opened(name: str, url: str, vault: Callable[[], Vault] = system_vault) -> str:
    """A saved URL with what its references stand for. Raises `DatabaseError` for what is missing.

    >>> opened("shop", "sqlite:////data/${x}.sqlite")  # a path is taken by its letters
    'sqlite:////data/${x}.sqlite'
    """
    if not _is_server(url):
        return url
    return _REFERENCE.sub(lambda found: quote(_value(name, found[1], vault), safe=""), url)


def missing(name: str, url: str, vault: Callable[[], Vault] = system_vault) -> str:
    """Why a saved URL cannot be opened from here, as to its secrets; empty if it can."""
    try:
        opened(name, url, vault)
    except DatabaseError as error:
        return str(error)
    return ""


def environment(variable: str) -> str:
    """The reference to an environment variable. Raises `BadInput` for what cannot name one.

    >>> environment("SHOP_PW")
    '${SHOP_PW}'
    """
    reference = f"${{{variable}}}"
    if not _REFERENCE.fullmatch(reference) or variable.startswith("keyring"):
        raise BadInput(f"{variable!r} cannot name an environment variable, such as SHOP_PASSWORD.")
    return reference


def with_password(url: str, reference: str) -> str:
    """`url` with a password, or a reference to one, after its user name. Raises `BadInput`.

    >>> with_password("postgresql://me@host/db", "${SHOP_PW}")
    'postgresql://me:${SHOP_PW}@host/db'
    """
    parts = _address(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at or ":" in user:
        raise BadInput("A password is added to a URL that has a user name and no password yet.")
    return parts._replace(netloc=f"{user}:{reference}@{host}").geturl()


def _value(name: str, reference: str, vault: Callable[[], Vault]) -> str:
    source, _, field = reference.partition(":")
    if source != "keyring":
        value = os.environ.get(reference)
        if value is None:
            raise DatabaseError(f"Connection {name!r} needs the environment variable {reference}.")
        return value
    try:
        secret = vault().get(name, field or _PASSWORD)
    except BadInput as error:
        raise DatabaseError(
            f"The secret of connection {name!r} is in a keyring, and {error}."
        ) from None
    if secret is None:
        raise DatabaseError(f"The keyring has no secret of connection {name!r}. Save it again.")
    return secret


def _is_server(url: str) -> bool:
    """Whether `url` names a host, and so may hold secrets, rather than a file."""
    found = re.match(r"([A-Za-z][\w+.-]*)://[^/]", url)
    return found is not None and found[1].lower() not in _PATH_SCHEMES


def _whole(url: str) -> str:
    """A file's or folder's URL as it can be opened from any folder. Raises `DatabaseError`."""
    from lynx_dspy.engines.locate import Place, locate

    if url.lower().startswith("metadata:"):
        path = re.split(r"[#?]", url[len("metadata:") :], maxsplit=1)[0]
        return f"metadata:{expanded(path).absolute()}{url[len('metadata:') + len(path) :]}"
    place: Place = locate(url, _PATH_SCHEMES)
    return f"{place.kind}:///{place.path}"


def _without_secrets(url: str) -> tuple[str, dict[str, str]]:
    """The URL with references in the place of its secrets, and these by field."""
    parts = _address(url)
    secrets: dict[str, str] = {}

    def kept(field: str, value: str) -> str:
        if not value or _REFERENCE.fullmatch(value):
            return value
        secrets[field] = unquote(value)
        return "${keyring}" if field == _PASSWORD else f"${{keyring:{field}}}"

    user, at, host = parts.netloc.rpartition("@")
    login, colon, password = user.partition(":")
    address = f"{login}{colon}{kept(_PASSWORD, password)}{at}{host}"
    start = len(parts.scheme) + 3 + len(parts.netloc)

    def option(found: re.Match[str]) -> str:
        key, value = found["key"], found["value"]
        value = kept(key.lower(), value) if _SECRET_KEY.match(key) else value
        return f"{found['sign']}{key}={value}"

    return f"{parts.scheme}://{address}{_OPTION.sub(option, url[start:])}", secrets


def _address(url: str) -> SplitResult:
    """The parts of a URL. Raises `BadInput`, without showing it, where its host is unclear."""
    try:
        parts = urlsplit(url)
        port_or_none = parts.port
    except ValueError:
        port_or_none = _UNREADABLE
    # A password that is not percent-encoded leaves its end outside of the address.
    if port_or_none == _UNREADABLE or "@" in parts.path:
        raise BadInput(
            "The URL's address cannot be read. In a password write @ : / ? # as %40 %3A %2F %3F %23"
        )
    return parts


def _vault_for(name: str, kept: str, vault: Callable[[], Vault]) -> Vault:
    """The keyring, or a refusal that shows the form without one."""
    try:
        return vault()
    except BadInput as error:
        variable = re.sub(r"\W", "_", name).upper()
        form = _REFERENCE.sub(lambda found: _variable(variable, found), kept)
        raise BadInput(
            f"The URL holds a secret, and {error}. Put it into an environment variable and name "
            f"that: lynx connect --save {name} '{form}'"
        ) from None


def _variable(prefix: str, found: re.Match[str]) -> str:
    source, _, field = found[1].partition(":")
    if source != "keyring":
        return found[0]
    return f"${{{prefix}_{re.sub(r'[^A-Za-z0-9]', '_', field or _PASSWORD).upper()}}}"


def _fields(url: str) -> set[str]:
    """The fields of a saved URL that are in the keyring."""
    found = (reference.partition(":") for reference in _REFERENCE.findall(url))
    return {field or _PASSWORD for source, _, field in found if source == "keyring"}


def _forget(name: str, fields: set[str], vault: Callable[[], Vault]) -> None:
    """Drop secrets that no URL refers to any more. Raises `BadInput` if the keyring cannot."""
    try:
        for field in fields:
            vault().drop(name, field)
    except BadInput as error:
        raise BadInput(f"What {name!r} kept in the keyring is still there: {error}.") from None


def _require(name: str, known: dict[str, str]) -> None:
    if not known:
        raise BadInput("No connection is saved. Save one: lynx connect --save NAME URL")
    if name not in known:
        raise UnknownName("connection", name, known)


@contextmanager
def _changed() -> Iterator[dict[str, str]]:
    """The saved URLs, to be changed inside the block; written at its end if nothing is raised."""
    from filelock import FileLock, Timeout

    from lynx_dspy.optimize.journal import write_whole

    folder = config_home()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f".{FILE}.lock", timeout=_LOCK_SECONDS):
            known = listed()
            yield known
            record = {"format": FORMAT, "connections": dict(sorted(known.items()))}
            write_whole(folder / FILE, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    except Timeout:
        raise BadInput(f"{folder / FILE} is being changed by another process.") from None
    except OSError as error:
        raise BadInput(f"Cannot write to {folder}: {error.strerror}.") from None


@contextmanager
def _told() -> Iterator[None]:
    """Faults of the keyring as one line."""
    from keyring.errors import KeyringError

    try:
        yield
    except KeyringError as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise BadInput(f"the system keyring refuses: {reason}") from None

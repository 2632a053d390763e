"""Addresses of database servers: what stands in a URL, with its secrets kept out of sight."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, quote_plus

from sqlalchemy import URL
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from lynx_dspy.errors import DatabaseError, UnknownName

DRIVERS: Mapping[str, str] = {
    "postgresql": "postgresql+pg8000",
    "postgres": "postgresql+pg8000",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
}
"""Scheme -> the driver that it means: those of the extras `postgres` and `mysql`."""

DIALECTS: Mapping[str, str] = {
    "postgresql": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
    "mssql": "tsql",
    "cockroachdb": "postgres",
    "awsathena": "athena",
    "starrocks": "starrocks",
    "databricks": "databricks",
}
"""SQLAlchemy's name of a kind of database -> sqlglot's; others have one name in both."""

_EXTRAS = {"pg8000": "postgres", "pymysql": "mysql"}
_SECRET = re.compile(r"pass|pwd|secret|token|key|credential", re.I)
_SSL_MODES = ("disable", "require", "verify-ca", "verify-full")
_CONNECT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Address:
    """A server's address. `url` holds the password; what is printed is `shown` or `clean`ed."""

    url: URL = field(repr=False)

    @property
    def shown(self) -> str:
        """The address for people: no password, and no option that may be one."""
        secret = [name for name in self.url.query if _SECRET.search(name)]
        url = self.url.difference_update_query(secret)
        plain = URL.create(
            self.kind, url.username, None, url.host, url.port, url.database, url.query
        )
        return plain.render_as_string()

    @property
    def kind(self) -> str:
        """What kind of database it is, without its driver: postgresql, mysql, mssql ..."""
        return self.url.get_backend_name()

    @property
    def name(self) -> str:
        """The database's own name."""
        return (self.url.database or self.kind).rsplit("/", 1)[-1]

    @property
    def dialect(self) -> str:
        """sqlglot's name of the SQL that it speaks. Raises `UnknownName`."""
        from sqlglot.dialects.dialect import Dialect, Dialects

        name = DIALECTS.get(self.kind, self.kind)
        if Dialect.get(name) is None:
            raise UnknownName("SQL dialect", name, sorted(d.value for d in Dialects if d.value))
        return name

    def clean(self, text: str) -> str:
        """`text` without any secret of this address, however it is written there."""
        options = (v for k, v in self.url.query.items() if _SECRET.search(k))
        secrets = [s for s in (self.url.password, *options) if isinstance(s, str) and s]
        spelled = {form for s in secrets for form in (s, quote(s, safe=""), quote_plus(s), repr(s))}
        for secret in sorted(spelled, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text

    def options(self) -> tuple[URL, dict[str, Any]]:
        """The URL and the further arguments with which SQLAlchemy's driver connects."""
        if self.url.get_driver_name() == "pymysql":
            return self.url, {"connect_timeout": _CONNECT_SECONDS, "charset": "utf8mb4"}
        if self.url.get_driver_name() != "pg8000":
            return self.url, {}
        given: dict[str, Any] = {"application_name": "lynx", "timeout": _CONNECT_SECONDS}
        mode, root = self.url.query.get("sslmode"), self.url.query.get("sslrootcert")
        if mode is not None:
            given["ssl_context"] = _ssl_context(str(mode), str(root) if root else None)
        return self.url.difference_update_query(["sslmode", "sslrootcert"]), given


def address(url: str) -> Address:
    """The address that `url` means. Nothing is taken from the environment: a URL may be foreign.

    Raises `DatabaseError` for a URL that cannot be read or
    whose driver is not installed, and `UnknownName` for a kind of database that nothing serves.
    """
    scheme, _, rest = url.partition(":")
    try:
        parsed = make_url(f"{DRIVERS.get(scheme.lower(), scheme)}:{rest}")
    except (ArgumentError, ValueError) as error:
        raise DatabaseError(
            f"The address {scheme}:… cannot be read. "
            f"Write {scheme}://USER:PASSWORD@HOST:PORT/NAME, signs in the password as %40 for @."
        ) from error
    _require_driver(parsed)
    return Address(parsed)


def _require_driver(url: URL) -> None:
    try:
        url.get_dialect().import_dbapi()
    except NoSuchModuleError as error:
        known = ["sqlite", "duckdb", "files", "metadata", *DRIVERS]
        raise UnknownName("database scheme", url.drivername, known) from error
    except ImportError as error:
        extra = _EXTRAS.get(url.get_driver_name())
        wanted = f"'lynx-dspy[{extra}]'" if extra else str(error.name or url.get_driver_name())
        raise DatabaseError(
            f"The driver for {url.drivername} is not installed: pip install {wanted}"
        ) from error


def _ssl_context(mode: str, root: str | None) -> ssl.SSLContext | None:
    """As libpq understands the modes: only `verify-*` check whom they speak to."""
    if mode not in _SSL_MODES:
        raise UnknownName("sslmode", mode, _SSL_MODES)
    if mode == "disable":
        return None
    context = ssl.create_default_context(cafile=root)
    context.check_hostname = mode == "verify-full"
    if mode == "require":
        context.verify_mode = ssl.CERT_NONE
    return context

"""Database servers for tests and measurements, started from Debian's packages on loopback.

Nothing of the machine's own servers is touched: each runs from a temporary folder, on a free port,
without durability (`fsync` off), as an unprivileged user where the caller is root.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import URL, Engine, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

PASSWORD = "s3cret:/@%20"
"""Of both accounts; holds the signs that a URL must escape."""

_START_SECONDS = 30.0
_SYSTEM_TABLES = (
    "mysql_system_tables.sql",
    "mysql_performance_tables.sql",
    "mysql_system_tables_data.sql",
)
_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin", "/usr/sbin", "/usr/local/sbin")


class Unavailable(Exception):
    """The server cannot run on this machine; the text says why."""


class Service(ABC):
    """One server in a temporary folder. `reader` may only read the database, `owner` may all."""

    scheme: str
    owner: str
    reader = "lynx_reader"
    database = "shop"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lynx-server-"))
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._user = _unprivileged(self.accounts)
        if self._user:
            shutil.chown(self.folder, self._user)
        self.folder.chmod(0o755)
        try:
            self._create()
            self.start()
            self._grant()
        except BaseException:  # whatever ends it, Ctrl-C too: no server is left running
            self.close()
            raise

    accounts: tuple[str, ...] = ("nobody",)
    """System accounts that the server may run as where the caller is root, best first."""

    def url(self, user: str = "", database: str | None = None) -> URL:
        """The address for one account, the reader by default."""
        name = self.database if database is None else database
        return URL.create(
            self.scheme, user or self.reader, PASSWORD, "127.0.0.1", self.port, name or None
        )

    def engine(self, database: str | None = None) -> Engine:
        """The owner's way in: each statement is committed at once."""
        url = self.url(self.owner, database)
        return create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)

    def run(self, statements: Sequence[str], database: str | None = None) -> None:
        """Run statements as the owner."""
        options = {"no_parameters": True}
        with self.engine(database).connect() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement, execution_options=options)

    def start(self) -> None:
        """Start the server and wait until it answers. Raises `Unavailable`."""
        log = (self.folder / "log").open("ab")
        with log:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self._user or None,
                cwd=self.folder,
            )
        end = time.monotonic() + _START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise Unavailable(f"{self._command()[0]} does not start: {self._last_line()}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End the server at once, cutting its connections."""
        if self._process is not None:
            self._process.send_signal(self._end_signal)
            self._process.wait(_START_SECONDS)
            self._process = None

    def restart(self) -> None:
        """Stop and start it on the same port."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop it and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    _end_signal = signal.SIGTERM

    @abstractmethod
    def _create(self) -> None: ...

    @abstractmethod
    def _command(self) -> list[str]: ...

    @abstractmethod
    def _grant(self) -> None: ...

    def _setup(self, *command: str, given: str = "") -> None:
        done = subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            user=self._user or None,
            cwd=self.folder,
        )
        if done.returncode:
            raise Unavailable(f"{command[0]} fails: {(done.stderr or done.stdout).strip()[-300:]}")

    def _answers(self) -> bool:
        try:
            with self.engine(database="").connect():
                return True
        except (DBAPIError, OSError):
            return False

    def _last_line(self) -> str:
        lines = (self.folder / "log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it says nothing"


class Postgres(Service):
    """PostgreSQL, with `initdb`'s defaults but for durability."""

    scheme = "postgresql+pg8000"
    owner = "postgres"
    accounts = ("postgres", "nobody")
    _end_signal = signal.SIGINT

    def url(self, user: str = "", database: str | None = None) -> URL:
        return super().url(user, "postgres" if database == "" else database)

    def _create(self) -> None:
        secret = self.folder / "secret"
        secret.write_text(PASSWORD)
        if self._user:
            shutil.chown(secret, self._user)
        data = str(self.folder / "data")
        self._setup(
            _binary("initdb"), "--no-sync", "--auth=scram-sha-256", f"--pwfile={secret}",
            "--encoding=UTF8", "--locale=C.UTF-8", f"--username={self.owner}", data,
        )  # fmt: skip

    def _command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1", "unix_socket_directories": str(self.folder),
            "fsync": "off", "full_page_writes": "off", "synchronous_commit": "off",
            "max_connections": "40", "shared_buffers": "32MB",
        }  # fmt: skip
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        data = str(self.folder / "data")
        return [_binary("postgres"), "-D", data, "-p", str(self.port), *options]

    def _grant(self) -> None:
        self.run((f"CREATE DATABASE {self.database}",), database="")
        self.run(
            (
                f"CREATE ROLE {self.reader} LOGIN PASSWORD '{PASSWORD}'",
                f"GRANT pg_read_all_data TO {self.reader}",
            )
        )


class MariaDB(Service):
    """MariaDB, with its defaults but for durability and sizes."""

    scheme = "mariadb+pymysql"
    owner = "root"
    accounts = ("mysql", "nobody")

    def _create(self) -> None:
        """What `mariadb-install-db` does, without the help texts that take most of its time."""
        (self.folder / "data").mkdir()
        if self._user:
            shutil.chown(self.folder / "data", self._user)
        scripts = [(_mariadb_scripts() / name).read_text() for name in _SYSTEM_TABLES]
        script = "\n".join(["CREATE DATABASE mysql;", "USE mysql;", *scripts])
        self._setup(*self._command("--bootstrap"), given=script)
        secret = self.folder / "secret.sql"
        hosts = ("localhost", "127.0.0.1")
        secret.write_text(
            "".join(f"ALTER USER root@'{h}' IDENTIFIED BY '{PASSWORD}';\n" for h in hosts)
        )
        if self._user:
            shutil.chown(secret, self._user)

    def _command(self, *more: str) -> list[str]:
        return [
            _binary("mariadbd"), "--no-defaults", f"--datadir={self.folder / 'data'}",
            f"--port={self.port}", "--bind-address=127.0.0.1",
            f"--socket={self.folder / 'socket'}", f"--pid-file={self.folder / 'pid'}",
            *(more or self._running), "--skip-log-bin", "--skip-name-resolve",
            "--innodb-flush-log-at-trx-commit=0", "--innodb-log-file-size=8M",
            "--innodb-buffer-pool-size=32M",
        ]  # fmt: skip

    @property
    def _running(self) -> tuple[str, ...]:
        return f"--init-file={self.folder / 'secret.sql'}", "--innodb-fast-shutdown=2"

    def _grant(self) -> None:
        account = f"'{self.reader}'@'127.0.0.1'"
        self.run(
            (
                f"CREATE DATABASE {self.database} CHARACTER SET utf8mb4",
                f"CREATE USER {account} IDENTIFIED BY '{PASSWORD}'",
                f"GRANT SELECT, SHOW VIEW ON {self.database}.* TO {account}",
            ),
            database="",
        )


def _mariadb_scripts() -> Path:
    places = [Path("/usr/share/mysql"), Path("/usr/share/mariadb")]
    found = next((p for p in places if (p / _SYSTEM_TABLES[0]).exists()), None)
    if found is None:
        raise Unavailable("MariaDB's system tables are not installed; `make services` installs it")
    return found


def _binary(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        folders = [f for pattern in _PLACES for f in sorted(Path("/").glob(pattern[1:]))]
        found = shutil.which(name, path=os.pathsep.join(map(str, folders)))
    if found is None:
        raise Unavailable(f"{name} is not installed; `make services` installs it")
    return found


def _unprivileged(names: Sequence[str]) -> str:
    """The first of these accounts that exists, where the caller is root; else none is needed."""
    if os.geteuid() != 0:
        return ""
    known = {entry.pw_name for entry in pwd.getpwall()}
    account = next((name for name in names if name in known), None)
    if account is None:
        raise Unavailable(f"root may not run it and there is no account {' or '.join(names)}")
    return account


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

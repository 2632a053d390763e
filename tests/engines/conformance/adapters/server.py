"""What the adapters of database servers share: a service on loopback and a reader's account."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from conformance.kit import Adapter, Unavailable
from sqlalchemy import inspect

import lynx_dspy as lynx
from bench import services
from lynx_dspy.engines.base import Database
from lynx_dspy.engines.sqlalchemy import ServerDatabase
from lynx_dspy.values import Limits, Outcome


class Server(Adapter):
    """An engine behind a socket; `working` counts the reader's queries that run now, `stored` are
    queries that show, beside the tables' rows, what a program could have changed."""

    service: ClassVar[type[services.Service]]
    working: ClassVar[str]
    stored: ClassVar[tuple[str, ...]]

    def start(self, folder: Path) -> None:
        try:
            self.server = self.service()
        except services.Unavailable as error:
            raise Unavailable(str(error)) from error

    def load(self, statements: Sequence[str]) -> None:
        self.server.run(statements)

    def url(self) -> str:
        return self.server.url().render_as_string(hide_password=False)

    def connect(self) -> Database:
        return lynx.connect(self.url())

    def digest(self) -> str:
        with self.server.engine().connect() as connection:
            names = sorted({*inspect(connection).get_table_names()} - {"numbers"})
            tables = [f"SELECT * FROM {self.quoted(n)} ORDER BY 1" for n in names]
            return repr([connection.exec_driver_sql(q).fetchall() for q in (*tables, *self.stored)])

    def stop(self) -> None:
        self.server.close()

    def restart(self) -> None:
        self.server.restart()

    def halt(self) -> None:
        self.server.stop()

    def resume(self) -> None:
        self.server.start()

    def busy(self) -> int:
        with self.server.engine().connect() as connection:
            return int(connection.exec_driver_sql(self.working).scalar_one())

    def unguarded(self, database: Database, code: str, limits: Limits) -> Outcome:
        assert isinstance(database, ServerDatabase)
        outcome: Outcome = database._pool.ask(("execute", code, limits), 30.0)
        return outcome

    def secret(self) -> str:
        return services.PASSWORD

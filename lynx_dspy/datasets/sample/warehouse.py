"""The sample warehouse: three and a half years of a coffee retailer, made up from a seed.

Brindle & Bean is invented. The same seed gives the same rows on every machine; nothing depends
on today's date.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from lynx_dspy.datasets.sample import catalogue, people, schema, service, trade
from lynx_dspy.datasets.sample.dice import Dice
from lynx_dspy.errors import BadInput

EDITION = 1
"""Raised whenever the rows of a seed change, so that older files are built anew."""

APPLICATION_ID = int.from_bytes(b"LYNX", "big")


def build(path: str | Path, seed: int = 7) -> Path:
    """The sample database at `path`: built there unless this edition and seed already is.

    The file appears whole or not at all. Raises `BadInput` if `path` holds something else, which
    is left alone, and on a full disk.
    """
    target = Path(path)
    stamp = _stamp(seed)
    if _stamp_of(target) == stamp:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    try:
        with closing(sqlite3.connect(name)) as database:
            _write(database, rows(seed), stamp)
        os.replace(name, target)
    except sqlite3.Error as error:
        raise BadInput(f"Cannot build {target}: {error}. Name another path.") from error
    finally:
        Path(name).unlink(missing_ok=True)
    return target


def rows(seed: int = 7) -> dict[str, Sequence[tuple[object, ...]]]:
    """The rows of every table, in the order of `schema.TABLES`."""
    shops = catalogue.stores()
    goods = catalogue.products(Dice(seed, "products"))
    persons, person_rows = people.customers(Dice(seed, "customers"))
    made = trade.orders(persons, shops, goods, Dice(seed, "orders"))
    ranges = catalogue.RANGES
    return {
        "stores": [(n, *store) for n, store in enumerate(catalogue.STORES, 1)],
        "categories": [(n, one.name, one.department) for n, one in enumerate(ranges, 1)],
        "products": [product.row() for product in goods],
        "customers": person_rows,
        "internal_accounts": people.internal_accounts(persons, Dice(seed, "internal")),
        "orders": [order.row() for order in made],
        "order_items": trade.items(made),
        "payments": trade.payments(made, Dice(seed, "payments")),
        "returns": trade.returns(made, Dice(seed, "returns")),
        "plans": catalogue.PLANS,
        "subscriptions": service.subscriptions(persons, Dice(seed, "subscriptions")),
        "support_tickets": service.tickets(persons, made, Dice(seed, "tickets")),
    }


def _write(
    database: sqlite3.Connection, tables: dict[str, Sequence[tuple[object, ...]]], stamp: int
) -> None:
    # Nobody else sees the file before it is renamed: a journal would only cost time.
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    database.executescript(schema.DDL)
    for table in schema.TABLES:
        marks = ", ".join("?" * len(tables[table][0]))
        database.executemany(f"INSERT INTO {table} VALUES ({marks})", tables[table])
    database.commit()
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute(f"PRAGMA user_version = {stamp}")


def _stamp(seed: int) -> int:
    """What tells this seed, edition and structure from another, as a `user_version`."""
    return zlib.crc32(f"{EDITION}:{seed}:{schema.DDL}".encode()) & 0x7FFF_FFFF


def _stamp_of(path: Path) -> int | None:
    """The stamp of the sample database at `path`; None where there is no file yet."""
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        return None
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            (application,) = database.execute("PRAGMA application_id").fetchone()
            (stamp,) = database.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error:
        application = stamp = 0
    if application != APPLICATION_ID:
        raise BadInput(
            f"{path} exists and is not a sample warehouse; it is left alone. Name another path."
        )
    return int(stamp)

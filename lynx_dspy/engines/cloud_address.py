"""Addresses of warehouses: what a URL may say, and that no secret stands in one."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from urllib.parse import parse_qsl, unquote

from lynx_dspy.errors import DatabaseError, UnknownName

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", re.I)
_SECRET = re.compile(r"pass|pwd|secret|token|private_?key|credential", re.I)


@dataclass(frozen=True, slots=True)
class Address:
    """`//parts[0]/parts[1]/...?options`; parts are decoded and not empty."""

    parts: tuple[str, ...]
    options: Mapping[str, str]

    def size(self, name: str, default: int) -> int:
        """An option in bytes: `500MB`, `2TiB`. Raises `DatabaseError`."""
        text = self.options.get(name, "")
        return parse_size(text, name) if text else default

    def number(self, name: str, default: float) -> float:
        """An option that is a number from 0 on. Raises `DatabaseError`."""
        text = self.options.get(name, "")
        try:
            value = float(text) if text else default
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise DatabaseError(f"{name}={text!r} is not a number. Write {name}={default:g}.")
        return value


def parse(address: str, options: Collection[str], shape: str) -> Address:
    """What stands behind the scheme; `shape` shows a user how to write it. Raises `LynxError`.

    >>> parse("//shop/sales?location=EU", ("location",), "bigquery://PROJECT/DATASET").parts
    ('shop', 'sales')
    """
    path, _, query = address.partition("?")
    given = dict(parse_qsl(query, keep_blank_values=True))
    for name in given:
        if name in options:
            continue
        if _SECRET.search(name):
            raise DatabaseError(f"{name} may not stand in a URL: give it in the environment.")
        raise UnknownName(f"option of {shape}", name, sorted(options))
    if "@" in path.split("/")[2:3][0] if path.count("/") > 1 else "@" in path:
        raise DatabaseError(f"No user or password may stand in the address. Write {shape}.")
    parts = tuple(unquote(part) for part in path.split("/") if part)
    return Address(parts, given)


def parse_size(text: str, name: str = "size") -> int:
    """Bytes of `10GB`, `1TiB`, `1e9` as people write them. Raises `DatabaseError`.

    >>> parse_size("1.5GB"), parse_size("1KiB")
    (1500000000, 1024)
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise DatabaseError(f"{name}={text!r} is not a size. Write {name}=10GB.")
    number, unit, binary = match.groups()
    factor = 1024 ** "KMGT".find(unit.upper()).__add__(1) if binary else _UNITS[unit.upper()]
    return int(float(number) * factor)


def shown_size(count: int) -> str:
    """Bytes as people read them.

    >>> shown_size(12_300_000_000), shown_size(999)
    ('12.3 GB', '999 B')
    """
    for unit in ("TB", "GB", "MB", "KB"):
        factor = _UNITS[unit[0]]
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count} B"


def client(module: str, extra: str) -> ModuleType:
    """An engine's client library. Raises `DatabaseError` that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        missing = f"{module} is not installed ({error.name or error})"
        raise DatabaseError(f"{missing}. Run: pip install 'lynx-dspy[{extra}]'") from error

"""A cache by identity, for large frozen values: hashing one would walk all of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def by_identity(size: int) -> Callable[[Callable[[Key], Value]], Callable[[Key], Value]]:
    """Remember what a function of one value gave for the `size` values seen last.

    >>> @by_identity(2)
    ... def length(text: list[int]) -> int:
    ...     return len(text)
    >>> length([1, 2]), length([1, 2])
    (2, 2)
    """

    def decorate(function: Callable[[Key], Value]) -> Callable[[Key], Value]:
        held: OrderedDict[Hashable, tuple[Key, Value]] = OrderedDict()

        @wraps(function)
        def remembered(key: Key) -> Value:
            known = held.get(id(key))
            if known is not None and known[0] is key:
                return known[1]
            value = function(key)
            held[id(key)] = (key, value)
            while len(held) > size:
                held.popitem(last=False)
            return value

        return remembered

    return decorate

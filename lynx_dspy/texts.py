"""Text that can be sent and stored: Python strings may hold halves of characters, UTF-8 may not."""

from __future__ import annotations


def encodable(text: str) -> str:
    r"""`text` with every lone surrogate replaced by a question mark.

    >>> encodable("caf\udce9")
    'caf?'
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")

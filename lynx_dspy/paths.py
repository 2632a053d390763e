"""Paths as users type them."""

from __future__ import annotations

from pathlib import Path

from lynx_dspy.errors import BadInput


def expanded(text: str | Path) -> Path:
    """`text` with a leading `~` or `~user` replaced. Raises `BadInput` if nobody is called so."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise BadInput(
            f"Cannot find the home folder in {str(text)!r}. Give a full path."
        ) from error

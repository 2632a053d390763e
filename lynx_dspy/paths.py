"""Paths as users type them."""

from __future__ import annotations

import os
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


def config_home() -> Path:
    """The folder of what a user has set up: `LYNX_CONFIG`, else the user's config folder."""
    import platformdirs

    chosen = os.environ.get("LYNX_CONFIG")
    return expanded(chosen) if chosen else Path(platformdirs.user_config_dir("lynx"))

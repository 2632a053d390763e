"""Keeps what DSPy's optimizers print away from the terminal: progress is told by our own bar."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

_LOGGERS = ("dspy", "optuna", "gepa")


class Quiet:
    """`hushed()` swallows all output and all but grave log lines; `aloud()` lets it out again."""

    def __init__(self) -> None:
        self._streams = (sys.stdout, sys.stderr)

    @contextmanager
    def hushed(self) -> Iterator[None]:
        """Swallow what is printed inside."""
        self._streams = (sys.stdout, sys.stderr)
        loggers = [logging.getLogger(name) for name in _LOGGERS]
        levels = [logger.level for logger in loggers]
        try:
            for logger in loggers:
                logger.setLevel(logging.CRITICAL)
            with open(os.devnull, "w") as sink, redirect_stdout(sink), redirect_stderr(sink):
                yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)

    @contextmanager
    def aloud(self) -> Iterator[None]:
        """Within `hushed`, for our own code: print as usual."""
        out, err = self._streams
        with redirect_stdout(out), redirect_stderr(err):
            yield

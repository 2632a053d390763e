"""The counting dataset, for every test of this folder."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

collect_ignore = ["compiling.py"]  # a script that holds no tests and imports its neighbour


@pytest.fixture(scope="session")
def counting() -> ModuleType:
    """`counting.py`, which is also run as a script."""
    path = Path(__file__).with_name("counting.py")
    spec = importlib.util.spec_from_file_location("counting", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

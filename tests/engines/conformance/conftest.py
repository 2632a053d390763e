"""Starts each engine once, and skips what it says that it lacks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conformance.kit import Adapter, Unavailable
from conformance.registry import ADAPTERS

from lynx_dspy.engines.base import Database


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "capability(name): what a test shows of an engine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each test carries its engine and capability into a JUnit report, for the matrix."""
    for item in items:
        mark = item.get_closest_marker("capability")
        if mark is not None and isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            params = item.callspec.params
            if "adapter" in params:
                named = (("engine", params["adapter"].name), ("capability", _capability(item)))
                item.user_properties.extend(named)


def _capability(item: pytest.Function) -> str:
    """The marker's name, or the parameter that it refers to, as in `capability("{kind}")`."""
    mark = item.get_closest_marker("capability")
    assert mark is not None
    return str(mark.args[0]).format_map(item.callspec.params)


@pytest.fixture(scope="session", params=ADAPTERS, ids=lambda engine: engine.name)
def adapter(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Adapter]:
    """An engine with the shop loaded."""
    engine: Adapter = request.param()
    try:
        engine.start(tmp_path_factory.mktemp(engine.name))
    except Unavailable as reason:
        pytest.skip(str(reason))
    try:
        engine.load(engine.shop())
        yield engine
    finally:
        engine.stop()


@pytest.fixture(scope="module")
def database(adapter: Adapter) -> Iterator[Database]:
    """A reader's connection to the shop, for tests that leave it usable."""
    with adapter.connect() as connected:
        yield connected


@pytest.fixture(autouse=True)
def skip_what_is_lacking(request: pytest.FixtureRequest) -> None:
    """A capability that the engine lacks is skipped with its reason."""
    item = request.node
    if item.get_closest_marker("capability") and "adapter" in request.fixturenames:
        reason = item.callspec.params["adapter"].lacks.get(_capability(item))
        if reason:
            pytest.skip(f"lacks it: {reason}")

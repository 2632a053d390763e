from importlib import import_module

import pytest

from lynx_dspy.datasets import DATASETS, dataset
from lynx_dspy.errors import UnknownName
from lynx_dspy.metrics import RULES


@pytest.mark.parametrize("name", DATASETS)
def test_an_entry_names_a_rule_and_splits_that_exist(name: str) -> None:
    entry = dataset(name)
    assert entry.rule in RULES
    assert entry.default_split == entry.splits[0]
    assert not entry.train or entry.train in entry.splits


@pytest.mark.parametrize("name", [name for name in DATASETS])
def test_each_module_offers_the_protocol(name: str) -> None:
    module = import_module(f"lynx_dspy.datasets.{dataset(name).module}")
    for part in ("load", "questions_file", "describe"):
        assert callable(getattr(module, part))


def test_unknown_names_are_told_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'spider'"):
        dataset("spidr")

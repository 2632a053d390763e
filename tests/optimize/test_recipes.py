"""Recipes are data: they chain, and their numbers can be changed by name."""

from __future__ import annotations

from typing import Any

import pytest

from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.optimize.compile import PROPOSERS
from lynx_dspy.optimize.recipes import RECIPES, DemosRecipe, chain, flat


def test_every_recipe_can_be_carried_out() -> None:
    assert {type(recipe) for recipe in RECIPES.values()} == set(PROPOSERS)


def test_recipes_chain_in_order() -> None:
    assert [name for name, _ in chain("nearest+demos")] == ["nearest", "demos"]


@pytest.mark.parametrize(
    ("key", "given", "held"),
    [
        ("sets", "3", 3),
        ("sizes", "1,5", (1, 5)),
        ("views", "bare", ("bare",)),
        ("rungs", "0.5,1", (0.5, 1.0)),
        ("labels", "gold", "gold"),
        ("likeness", 0.5, 0.5),
    ],
)
def test_a_number_is_changed_by_name(key: str, given: Any, held: Any) -> None:
    [(_, recipe)] = chain("demos", {key: given})
    assert flat(recipe) == flat(DemosRecipe()) | {key: held}


def test_a_parameter_goes_to_every_recipe_that_has_it() -> None:
    changed = chain("demos+nearest", {"labels": "gold", "ks": "3", "same_database_first": "no"})
    (_, demos), (_, nearest) = changed
    assert flat(demos)["labels"] == flat(nearest)["labels"] == "gold"
    assert flat(nearest)["ks"] == (3,)
    assert flat(nearest)["same_database_first"] is False


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(UnknownName, match="Unknown recipe 'demo'"):
        chain("demo")
    with pytest.raises(UnknownName, match="Unknown parameter of demos 'ks'"):
        chain("demos", {"ks": "2"})
    with pytest.raises(UnknownName, match="Unknown labels 'silver'"):
        chain("demos", {"labels": "silver"})
    with pytest.raises(UnknownName, match="Unknown views"):
        chain("demos", {"views": "naked"})
    with pytest.raises(BadInput, match="sets='many' is no int"):
        chain("demos", {"sets": "many"})

"""Recipes of `lynx compile`, as data: every number that steers a search stands here.

A recipe is an entry in `RECIPES`; what carries it out is found by its type (`compile.PROPOSERS`).
Names joined by `+` are carried out one after another, each on what the one before it gave.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.grounding.styles import STYLES

Labels = Literal["harvested", "gold", "both"]
"""Whose programs a demo of `generator.formulate` shows: the program's own right ones, the training
split's golds, or its own where it was right and the gold elsewhere."""

View = Literal["bare", "used"]
"""What a demo shows of the schema: nothing, or the tables and columns that its program uses."""

Switch = Literal[
    "none", "jit", "align", "distill", "intent", "ground", "reflect", "diagnose", "verification"
]
"""Stages that a study may turn off (`tuning.SWITCHES`); `none` is no stage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Halving:
    """Successive halving over the questions of the validation split.

    After each share of `rungs` the better `keep` of the candidates go on, at least one; the
    un-compiled program is always among them and is never dropped.
    """

    rungs: tuple[float, ...] = (0.25, 0.5, 1.0)
    keep: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Harvest:
    """Which calls of the program become demos, and what of them is shown."""

    labels: Labels = "both"
    carry_tokens: int = 120
    """A longer input is left out of a demo."""
    demo_tokens: int = 300
    """A longer demo is left out."""
    likeness: float = 0.8
    """Demos whose questions have so many words in common are the same one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemosRecipe:
    """Few-shot demos that are the same for every question, chosen among sampled sets."""

    harvest: Harvest = field(default_factory=Harvest)
    halving: Halving = field(default_factory=Halving)
    sets: int = 8
    """Demo sets that are tried."""
    sizes: tuple[int, ...] = (2, 4, 6)
    """Demos a stage; the sets take these sizes in turn."""
    views: tuple[View, ...] = ("used", "bare")
    stage_tokens: int = 700
    """Most that the demos of a stage may cost."""
    spread: int = 4
    """Of so many demos drawn at random the one that adds most variety is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestRecipe:
    """Few-shot demos picked for each question, the nearest of all that were harvested."""

    harvest: Harvest = field(default_factory=Harvest)
    halving: Halving = field(default_factory=Halving)
    ks: tuple[int, ...] = (2, 4, 6)
    """Demos a question; each is a candidate."""
    views: tuple[View, ...] = ("used",)
    same_database_first: bool = True
    stage_tokens: int = 700
    embedder: Literal["default", "none"] = "default"
    """`none` measures nearness by keywords: no weights are needed, and none are loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What a study chooses among, by knob of `LynxConfig`; a knob with one value is held there.

    What plays no part in a program is left out (`tuning.space_of`). The values of all profiles are
    among these, so that the un-compiled program is a point of the space.
    """

    candidates: tuple[int, ...] = (1, 3, 5)
    rescue_candidates: tuple[int, ...] = (0, 5)
    candidate_temperature: tuple[float, ...] = (0.5, 0.8, 1.0)
    top_k: tuple[int, ...] = (2, 4, 6)
    document_tokens: tuple[int, ...] = (120, 300, 600)
    schema_tokens: tuple[int, ...] = (700, 1_000, 1_500)
    schema_style: tuple[str, ...] = ("ddl", "compact")
    syntax_tokens: tuple[int, ...] = (0, 120, 250)
    jit_below: tuple[float, ...] = (0.35, 0.55, 0.75)
    distill_above_tokens: tuple[int, ...] = (150, 400)
    history_tokens: tuple[int, ...] = (350, 700)
    max_rounds: tuple[int, ...] = (0, 1, 2, 4, 10)
    stagnation_rounds: tuple[int, ...] = (1, 2, 3)
    verify_threshold: tuple[float, ...] = (0.5, 1.0, 1.5)
    """With the one that the training questions speak for (`metrics.thresholds`)."""
    switches: tuple[Switch, ...] = get_args(Switch)
    """Stages that may be turned off, where the program asks them."""
    demos: tuple[int, ...] = (0, 2, 4)
    """Demos a stage: of those that the program has, else of harvested ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptunaRecipe:
    """A study over the config: EX up, tokens a question down."""

    space: Space = field(default_factory=Space)
    harvest: Harvest = field(default_factory=Harvest)
    halving: Halving = field(default_factory=Halving)
    """A trial ends early where it is beaten in both and not among the better `keep`."""
    trials: int = 16
    """Configs that are tried."""
    startup: int = 6
    """Of these so many are drawn at random; for `nsga2` the size of its population."""
    sampler: Literal["tpe", "nsga2"] = "tpe"
    view: View = "used"
    stage_tokens: int = 700
    """Most that the demos of a stage may cost."""
    spread: int = 4
    """As in `DemosRecipe`."""


_WHOLE = Halving(rungs=(1.0,))
"""For candidates that an optimizer asked every validation question already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapRecipe:
    """DSPy's BootstrapFewShotWithRandomSearch: demos from right answers on training questions."""

    harvest: Harvest = field(default_factory=lambda: Harvest(labels="harvested"))
    halving: Halving = _WHOLE
    sets: int = 4
    """Shuffled sets; one more takes the training questions in order."""
    most_demos: int = 4
    """Questions that a set learns from at most."""
    rounds: int = 1
    """Tries a question; from the second on at temperature 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MiproRecipe:
    """DSPy's MIPROv2: instructions and demos together, by a Bayesian search."""

    harvest: Harvest = field(default_factory=lambda: Harvest(labels="harvested"))
    halving: Halving = _WHOLE
    candidates: int = 4
    """Instructions a stage, and sets of demos; the present instruction is among them."""
    trials: int = 6
    """Combinations that are tried on every validation question."""
    most_demos: int = 2
    """Questions that a set of demos is made of at most; 0 changes instructions alone."""
    data_aware: bool = True
    """Whether the training questions are summed up first, a call for `data_batch` of them."""
    data_batch: int = 10
    temperature: float = 1.0
    """Of the model that writes instructions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GepaRecipe:
    """DSPy's GEPA: instructions rewritten by reflection on what went wrong."""

    halving: Halving = _WHOLE
    metric_calls: int = 300
    """Answers that are looked at in all, repeated ones too."""
    batch: int = 3
    """Training questions that a rewriting reflects on."""
    input_tokens: int = 300
    """A longer input of a stage is cut where it is reflected on."""
    most_chars: int = 2_000
    """A longer instruction is shortened once, else not taken."""
    temperature: float = 1.0
    """Of the model that reflects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimbaRecipe:
    """DSPy's SIMBA: rules and demos from questions whose sampled answers differ most."""

    halving: Halving = field(default_factory=lambda: Halving(rungs=(0.5, 1.0)))
    batch: int = 8
    """Training questions a step."""
    candidates: int = 4
    """Sampled answers a question, and programs made a step."""
    steps: int = 3
    most_demos: int = 3
    input_tokens: int = 120
    """A longer input is left out of demos and of what rules are made from."""
    finalists: int = 3
    """Programs, the best on training questions, that validation questions choose among."""
    temperature: float = 1.0
    """Of the model that writes rules."""


Recipe = (
    DemosRecipe
    | NearestRecipe
    | OptunaRecipe
    | BootstrapRecipe
    | MiproRecipe
    | GepaRecipe
    | SimbaRecipe
)

RECIPES: dict[str, Recipe] = {
    "demos": DemosRecipe(),
    "nearest": NearestRecipe(),
    "optuna": OptunaRecipe(),
    "bootstrap-rs": BootstrapRecipe(),
    "mipro": MiproRecipe(),
    "gepa": GepaRecipe(),
    "simba": SimbaRecipe(),
}

DEFAULT = "demos"


def chain(name: str, params: Mapping[str, Any] | None = None) -> list[tuple[str, Recipe]]:
    """The recipes of a name such as `demos` or `demos+nearest`, with some parameters changed.

    A parameter goes to every recipe that has it, by its name in the recipe or in its parts. Raises
    `UnknownName` for a recipe or a parameter that is not there, `BadInput` for a value of another
    kind.

    >>> [(name, recipe.harvest.labels) for name, recipe in chain("demos", {"labels": "gold"})]
    [('demos', 'gold')]
    """
    parts = name.split("+")
    for part in parts:
        if part not in RECIPES:
            raise UnknownName("recipe", part, RECIPES)
    recipes = [RECIPES[part] for part in parts]
    for key, value in (params or {}).items():
        known = sorted({name for recipe in recipes for name in flat(recipe)})
        if key not in known:
            raise UnknownName(f"parameter of {name}", key, known)
        recipes = [_changed(recipe, key, value) for recipe in recipes]
    return list(zip(parts, recipes, strict=True))


def flat(recipe: Any) -> dict[str, Any]:
    """Every parameter of a recipe by its own name, those of its parts among them.

    >>> flat(DemosRecipe())["rungs"]
    (0.25, 0.5, 1.0)
    """
    found: dict[str, Any] = {}
    for one in fields(recipe):
        value = getattr(recipe, one.name)
        found |= flat(value) if hasattr(value, "__dataclass_fields__") else {one.name: value}
    return found


def _changed(recipe: Any, key: str, value: Any) -> Any:
    for one in fields(recipe):
        held = getattr(recipe, one.name)
        if hasattr(held, "__dataclass_fields__"):
            recipe = replace(recipe, **{one.name: _changed(held, key, value)})
        elif one.name == key:
            recipe = replace(recipe, **{key: _fitting(key, held, value)})
    return recipe


_CHOICES: dict[str, tuple[str, ...]] = {
    "labels": get_args(Labels),
    "embedder": ("default", "none"),
    "views": get_args(View),
    "view": get_args(View),
    "switches": get_args(Switch),
    "sampler": ("tpe", "nsga2"),
    "schema_style": tuple(STYLES),
}


def _fitting(key: str, held: Any, value: Any) -> Any:
    """The value in the kind of the one that is held: `2,4` becomes (2, 4)."""
    if isinstance(held, tuple):
        items = value.split(",") if isinstance(value, str) else list(value)
        return tuple(_fitting(key, held[0], item) for item in items)
    if key in _CHOICES and value not in _CHOICES[key]:
        raise UnknownName(key, str(value), _CHOICES[key])
    if isinstance(held, bool) and isinstance(value, str):
        return value.lower() in ("yes", "true", "1")
    try:
        return type(held)(value)
    except (TypeError, ValueError):
        raise BadInput(f"{key}={value!r} is no {type(held).__name__}, such as {held!r}.") from None

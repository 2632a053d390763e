"""The recipe `optuna`: a space that fits the program, trials that are not paid twice, a front."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import dspy
import pytest

import lynx_dspy as lynx
from lynx_dspy.ablations import ablate
from lynx_dspy.config import EMBEDDED, FULL, PROFILES, STAGES
from lynx_dspy.errors import UnknownName
from lynx_dspy.modules.nearest import NearestDemos, Shot
from lynx_dspy.optimize.artifact import read_manifest
from lynx_dspy.optimize.recipes import OptunaRecipe, Space, chain, flat
from lynx_dspy.optimize.tuning import KNOBS, SWITCHES, Start, made, point_of, space_of

FEW = {
    "trials": "6", "startup": "3", "rungs": "0.5,1", "labels": "gold", "demos": "0,3",
    "candidates": "1,2", "rescue_candidates": "0", "candidate_temperature": "0.8",
    "schema_tokens": "1500", "schema_style": "ddl", "syntax_tokens": "0", "max_rounds": "0",
    "stagnation_rounds": "3",
}  # fmt: skip


@pytest.fixture(scope="module")
def compiling() -> Iterator[ModuleType]:
    """`compiling.py`, which is also run as a script."""
    folder = str(Path(__file__).parent)
    sys.path.insert(0, folder)
    import compiling as found

    yield found
    sys.path.remove(folder)


def start(config: lynx.LynxConfig, program: lynx.Lynx | None = None, **changes: Any) -> Start:
    return replace(Start(program or lynx.Lynx(), config, {}, documents=True), **changes)


def test_the_space_names_knobs_that_there_are() -> None:
    names = {one.name for one in fields(Space)} - {"switches", "demos"}
    assert names == set(KNOBS) <= {one.name for one in fields(lynx.LynxConfig)}
    assert {stage for some in (*KNOBS.values(), *SWITCHES.values()) for stage in some} <= {*STAGES}
    assert set(Space().switches) == set(SWITCHES)


@pytest.mark.parametrize("config", [FULL, *PROFILES.values()])
def test_each_profile_is_a_point_of_its_space(config: lynx.LynxConfig) -> None:
    space = space_of(start(config), Space())
    point = point_of(start(config), space)
    assert all(point[name] in values for name, values in space.items())


def test_what_a_program_does_not_ask_is_not_searched() -> None:
    full, small = (space_of(start(c), Space()) for c in (FULL, EMBEDDED))
    assert {"jit", "align", "verification", "verify_threshold", "max_rounds"} <= full.keys()
    assert small.keys() == {
        "candidates", "rescue_candidates", "candidate_temperature", "schema_tokens",
        "schema_style", "syntax_tokens", "top_k", "document_tokens",
    }  # fmt: skip
    plain = space_of(start(EMBEDDED, documents=False), Space())
    assert small.keys() - plain.keys() == {"top_k", "document_tokens"}
    ablated = ablate(("verification", "revision", "candidates", "jit"))
    less = space_of(start(FULL, ablated), Space())
    assert not less.keys() & {"verification", "max_rounds", "candidates", "jit", "jit_below"}


def test_a_point_becomes_a_program() -> None:
    recipe = OptunaRecipe()
    off = made(start(FULL), {"top_k": 2, "verification": False, "align": True}, recipe, 0)
    assert off.config is not None
    assert FULL.stages - off.config.stages == {"verifier.explain", "verifier.compare"}
    assert (off.config.top_k, off.config.max_rounds) == (2, FULL.max_rounds)
    program = lynx.Lynx()
    same = made(start(FULL, program), {"top_k": FULL.top_k, "align": True}, recipe, 0)
    assert same is program, "where it stands already it has been asked"


def test_demos_of_a_compiled_program_are_counted_not_harvested() -> None:
    program = lynx.Lynx()
    formulate = program.generator.formulate
    formulate.demos = [dspy.Example(question=f"q{n}", code="SELECT 1") for n in range(4)]
    program.generator.ground.nearest = NearestDemos((Shot({"intent": "i"}, "q", "d"),), k=4)
    begun = start(FULL, program)
    assert space_of(begun, Space())["demos"] == (0, 2, 4) and point_of(begun, ["demos"]) == {
        "demos": 4
    }
    fewer, none = (made(begun, {"demos": n}, OptunaRecipe(), 0) for n in (2, 0))
    assert fewer.generator.formulate.demos == formulate.demos[:2]
    assert fewer.generator.ground.nearest.k == 2
    assert not none.generator.formulate.demos and none.generator.ground.nearest is None
    assert len(formulate.demos) == 4


def test_set_narrows_the_space() -> None:
    [(_, recipe)] = chain("optuna", {"top_k": "2,4", "switches": "align", "sampler": "nsga2"})
    held = flat(recipe)
    assert (held["top_k"], held["switches"], held["sampler"]) == ((2, 4), ("align",), "nsga2")
    with pytest.raises(UnknownName, match="Unknown switches 'repair'"):
        chain("optuna", {"switches": "repair"})
    with pytest.raises(UnknownName, match="Unknown schema_style"):
        chain("optuna", {"schema_style": "xml"})


def test_a_study_finds_demos_and_ships_its_config(compiling: ModuleType, tmp_path: Path) -> None:
    engine = compiling.Pupil(needs=3)
    made_ = compiling.compiled(tmp_path, "a/tuned", engine, recipe="optuna", params=FEW)
    assert made_.kept and made_.winner.startswith("optuna-")
    assert made_.manifest.recipe.params["winner"]["demos"] == 3
    assert made_.spent.calls == len(engine.prompts)
    loaded = lynx.load(tmp_path / "a/tuned")
    assert len(loaded.generator.formulate.demos) == 3
    assert read_manifest(tmp_path / "a/tuned").config == loaded.config

    work = tmp_path / "a/.tuned.work"
    assert {"study.db", "search.png", "search.svg"} <= {path.name for path in work.iterdir()}
    tried = json.loads((work / "search.json").read_text())
    assert len(tried) <= 5, "four points: what is proposed again is one program"
    front = [one for one in tried if one["front"]]
    assert [one["scores"]["ex"] for one in front] == sorted({o["scores"]["ex"] for o in front})
    assert "| front |" in (work / "compile.md").read_text()

    asked = len(engine.prompts)
    again = compiling.compiled(tmp_path, "a/tuned", engine, recipe="optuna", params=FEW)
    assert again.winner == made_.winner and len(engine.prompts) == asked


def test_a_token_price_chooses_the_cheaper_end_of_the_front(
    compiling: ModuleType, tmp_path: Path
) -> None:
    params = {**FEW, "demos": "0", "candidates": "1,3"}
    program = compiling.counting.program(max_rounds=0, candidates=3)
    examples = compiling.counting.questions(tmp_path, 9)
    lm = compiling.counting.model(compiling.Pupil())
    made_ = lynx.compile(
        program, examples, "optuna", lm=lm, out=tmp_path / "x", params=params, token_weight=0.1
    )
    assert made_.kept and made_.manifest.config.candidates == 1
    scores = made_.scores["val"]
    assert scores["compiled"].ex == scores["baseline"].ex
    assert scores["compiled"].tokens_per_question < scores["baseline"].tokens_per_question


class Stop(BaseException):
    """As Ctrl-C."""


def test_an_interrupted_study_comes_to_the_same_end(compiling: ModuleType, tmp_path: Path) -> None:
    def run(out: str, engine: Any, **options: Any) -> Any:
        return compiling.compiled(tmp_path, out, engine, recipe="optuna", params=FEW, **options)

    calm = run("calm", compiling.Pupil(needs=3))
    for most in 2 * (calm.spent.calls // 5,):
        engine = compiling.Pupil(needs=3)
        answer = engine.complete

        def stops(
            request: Any, engine: Any = engine, answer: Any = answer, most: int = most
        ) -> Any:
            if len(engine.prompts) == most:
                raise Stop
            return answer(request)

        engine.complete = stops
        with pytest.raises(Stop):
            run("stormy", engine)
    short = run("stormy", compiling.Pupil(needs=3), max_lm_calls=calm.spent.calls - 3)
    assert short.budget_spent
    stormy = run("stormy", compiling.Pupil(needs=3))

    def standings(one: Any) -> list[tuple[Any, ...]]:
        return [(s.candidate.name, s.candidate.hash, s.worth, s.asked) for s in one.standings]

    assert standings(stormy) == standings(calm)
    assert (stormy.winner, stormy.spent.calls) == (calm.winner, calm.spent.calls)
    files = ("program.json", "prompts.json", "eval.jsonl")
    for name in files:
        assert (tmp_path / "calm" / name).read_bytes() == (tmp_path / "stormy" / name).read_bytes()


def test_it_chains(compiling: ModuleType, tmp_path: Path) -> None:
    params = {**FEW, "demos": "0", "candidates": "1", "embedder": "none", "ks": "3"}
    program = compiling.counting.program(max_rounds=0, candidates=3)
    examples = compiling.counting.questions(tmp_path, 14)
    lm = compiling.counting.model(compiling.Pupil(needs=3))
    made_ = lynx.compile(
        program, examples, "optuna+nearest", lm=lm, out=tmp_path / "x", params=params
    )
    assert made_.kept and made_.winner == "nearest-3-used"
    assert made_.program.generator.formulate.nearest.k == 3
    assert made_.program.config.candidates == 1, "the config of the first recipe stands"
    names = [one.candidate.name for one in made_.standings]
    assert names.count("baseline") == 1 and len(names) == len(set(names))

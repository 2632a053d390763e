"""DSPy's optimizers end within the budget, go on after a crash, and avoid their traps."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import dspy
import pytest

import lynx_dspy as lynx
from lynx_dspy.config import STAGES
from lynx_dspy.errors import ModelError
from lynx_dspy.optimize.artifact import read_manifest
from lynx_dspy.optimize.prompts import rendered
from lynx_dspy.optimize.states import predictors
from lynx_dspy.optimize.teleprompters import RanSelector, Rewriter

SCRIPT = Path(__file__).with_name("compiling.py")
N = 9

RECIPES: dict[str, dict[str, Any]] = {
    "bootstrap-rs": {"sets": 1, "most_demos": 2},
    "mipro": {"candidates": 2, "trials": 2, "most_demos": 0, "data_aware": "no"},
    "gepa": {"metric_calls": 16},
    "simba": {"batch": 3, "candidates": 2, "steps": 1, "finalists": 1},
}
WRITTEN = ("mipro", "gepa", "simba")
_slow = [pytest.param(name, marks=pytest.mark.slow) for name in ("bootstrap-rs", "mipro", "simba")]
ONE_FAST = ["gepa", *_slow]
WRITTEN_ONE_FAST = ["gepa", *_slow[1:]]


@pytest.fixture(scope="module")
def compiling() -> Iterator[ModuleType]:
    """`compiling.py`, which is also run as a script."""
    sys.path.insert(0, str(SCRIPT.parent))
    import compiling as found

    yield found
    sys.path.remove(str(SCRIPT.parent))


def compiled(
    compiling: ModuleType,
    out: Path,
    recipe: str,
    engine: Any = None,
    writer: Any = None,
    **options: Any,
) -> Any:
    """A compile of the counting questions by `recipe` into `out`."""
    engine = engine or compiling.Scholar()
    writer = writer or compiling.Writer()
    params = {k: v for name in recipe.split("+") for k, v in RECIPES.get(name, {}).items()}
    options = {"params": params, **options}
    return lynx.compile(
        options.pop("program", None) or compiling.program(),
        compiling.counting.questions(out.parent, N),
        recipe,
        lm=compiling.counting.model(engine),
        reflection_lm=dspy.LM("test/writer", engine=writer, cache=False, num_retries=0),
        out=out,
        **options,
    )


@pytest.fixture(scope="module")
def calm(
    compiling: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Path, Any, Any, Any]]:
    """Each recipe without an interruption: its folder, what it came to, and both models."""
    found = {}
    for recipe in RECIPES:
        out = tmp_path_factory.mktemp(recipe) / "out"
        engine, writer = compiling.Scholar(), compiling.Writer()
        found[recipe] = (out, compiled(compiling, out, recipe, engine, writer), engine, writer)
    return found


def facts(out: Path) -> dict[str, Any]:
    """All of an artifact that must not depend on how the compile came to its end."""
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["recipe"]["used"].pop("seconds")
    for name in ("created", "checksum"):
        manifest.pop(name)
    parts = {path.name: path.read_bytes() for path in out.iterdir() if path.suffix != ".md"}
    return parts | {"manifest.json": manifest}


@pytest.mark.parametrize("recipe", RECIPES)
def test_each_recipe_finds_what_helps(recipe: str, calm: Any) -> None:
    out, made, engine, writer = calm[recipe]
    assert made.kept and made.winner.startswith(f"{recipe}-")
    assert made.scores["val"]["compiled"].ex.value == 1.0
    assert made.spent.calls == len(engine.prompts) + len(writer.prompts)
    assert bool(writer.prompts) == (recipe in WRITTEN)
    manifest = read_manifest(out)
    assert manifest.recipe.params["reflection_lm"]["name"] == "test/writer"
    assert manifest.recipe.used.lm_calls == made.spent.calls


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_loaded_artifact_asks_the_same(recipe: str, calm: Any) -> None:
    out, made, _, _ = calm[recipe]
    loaded = lynx.load(out)
    config = made.program.config
    assert rendered(loaded, config) == rendered(made.program, config)
    changed = {
        path
        for path, one in predictors(made.program).items()
        if one.demos or one.signature.instructions != type(one).asks.instructions
    }
    assert changed == {"generator.formulate"}, "only what ran may change"


@pytest.mark.parametrize("recipe", RECIPES)
def test_no_prompt_holds_a_validation_gold_or_a_whole_row(recipe: str, calm: Any) -> None:
    _, made, _, writer = calm[recipe]
    demos = made.program.generator.formulate.demos
    fields = {"augmented", *made.program.generator.formulate.signature.fields}
    assert all(set(demo.keys()) <= fields for demo in demos)
    val = {row["question"] for row in made.rows}
    assert not any(question in prompt for prompt in writer.prompts for question in val)


@pytest.mark.parametrize("recipe", ONE_FAST)
def test_a_crash_changes_nothing(
    recipe: str, calm: Any, compiling: ModuleType, tmp_path: Path
) -> None:
    whole = calm[recipe]
    out = tmp_path / "out"
    calls, written = len(whole[2].prompts), len(whole[3].prompts)
    engine, writer = compiling.Scholar(crash_at=calls * 2 // 3), compiling.Writer()
    with pytest.raises(compiling.Death):
        compiled(compiling, out, recipe, engine, writer)
    asked, told = Counter(engine.prompts), len(writer.prompts)
    if told < written:
        writer = compiling.Writer(crash_at=written - told)
        with pytest.raises(compiling.Death):
            compiled(compiling, out, recipe, compiling.Scholar(), writer)
        told += len(writer.prompts)
    again, writer = compiling.Scholar(), compiling.Writer()
    compiled(compiling, out, recipe, again, writer)
    assert facts(out) == facts(whole[0])
    assert told + len(writer.prompts) == written, "no instruction is written twice"
    assert (asked + Counter(again.prompts)).total() <= calls, "no answer is asked for twice"


@pytest.mark.parametrize("recipe", ONE_FAST)
def test_the_budget_ends_it_with_the_best_so_far(
    recipe: str, calm: Any, compiling: ModuleType, tmp_path: Path
) -> None:
    most = calm[recipe][1].spent.calls - 1
    engine, writer = compiling.Scholar(), compiling.Writer()
    made = compiled(compiling, tmp_path / "out", recipe, engine, writer, max_lm_calls=most)
    assert made.budget_spent
    assert len(engine.prompts) + len(writer.prompts) == made.spent.calls == most
    assert lynx.load(tmp_path / "out") is not None


def test_a_chain_goes_on_from_what_the_first_found(compiling: ModuleType, tmp_path: Path) -> None:
    class Strict(compiling.Scholar):  # type: ignore[name-defined,misc]
        """Right for some questions, for more by instructions, for all with demos too."""

        def complete(self, request: dspy.lm15.Request) -> dspy.lm15.Response:
            told = compiling.WORDS in str(request.system)
            shown = any("```sql" in (m.text or "") for m in request.messages)
            self.prompts.append("")
            right = (lambda k: k < 6 or shown) if told else (lambda k: k % 3 == 1)
            self.say = lambda k: compiling.Pupil._answer(k, right(k))
            return compiling.counting.CountingEngine.complete(self, request)

    params = {**RECIPES["gepa"], "sets": 1, "sizes": "2", "rungs": "1"}
    made = compiled(compiling, tmp_path / "out", "gepa+demos", Strict(), params=params)
    stage = made.program.generator.formulate
    assert stage.signature.instructions == compiling.WORDS and len(stage.demos) == 2
    assert made.winner == "demos-1"
    names = [one.candidate.name for one in made.standings]
    assert names == ["baseline", "gepa-1", "demos-1"]


@pytest.mark.parametrize("text", ["", "x" * 5_000])
@pytest.mark.parametrize("recipe", ["gepa", "mipro"])
def test_a_writer_that_cannot_write_ships_the_baseline(
    recipe: str, text: str, compiling: ModuleType, tmp_path: Path
) -> None:
    writer = compiling.Writer(text)
    made = compiled(compiling, tmp_path / "out", recipe, compiling.Scholar(), writer)
    assert writer.prompts and not made.kept


@pytest.mark.parametrize("recipe", WRITTEN_ONE_FAST)
def test_a_prompt_that_is_too_long_is_no_end(
    recipe: str, compiling: ModuleType, tmp_path: Path
) -> None:
    writer = compiling.Writer(refuses=dspy.lm15.ContextLengthError("8,000 tokens of 4,096"))
    made = compiled(compiling, tmp_path / "out", recipe, compiling.Scholar(), writer)
    assert writer.prompts and made.manifest.variant == recipe


@pytest.mark.parametrize("recipe", WRITTEN_ONE_FAST)
def test_a_writer_that_cannot_be_used_is_said(
    recipe: str, compiling: ModuleType, tmp_path: Path
) -> None:
    writer = compiling.Writer(refuses=dspy.lm15.AuthError("401 wrong key"))
    with pytest.raises(ModelError, match="refuses the key"):
        compiled(compiling, tmp_path / "out", recipe, compiling.Scholar(), writer)


def test_a_model_that_cannot_be_used_is_no_wrong_answer(
    compiling: ModuleType, tmp_path: Path
) -> None:
    engine = compiling.Scholar()
    first = engine.complete

    def fails_later(request: dspy.lm15.Request) -> dspy.lm15.Response:
        if len(engine.prompts) > 4:
            raise dspy.lm15.AuthError("401 wrong key")
        return first(request)

    engine.complete = fails_later
    with pytest.raises(ModelError, match="refuses the key"):
        compiled(compiling, tmp_path / "out", "bootstrap-rs", engine)


def test_nothing_is_printed(
    compiling: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    compiled(compiling, tmp_path / "out", "bootstrap-rs", max_lm_calls=8)
    seen = capfd.readouterr()
    assert seen.out == "" and "Bootstrapped" not in seen.err


def test_the_bar_is_told_of_the_best_so_far(compiling: ModuleType, tmp_path: Path) -> None:
    seen: list[Any] = []
    compiled(compiling, tmp_path / "out", "gepa", watch=seen.append)
    first = next(p for p in seen if p.leader == "gepa-1")
    assert first.best == 1.0 and seen[-1].done <= seen[-1].questions


class _Named:
    def __init__(self, stage: str) -> None:
        self.stage_name = stage


def test_gepa_rewrites_only_stages_that_ran_and_takes_turns() -> None:
    candidate = dict.fromkeys(sorted(STAGES), "")
    wrong = {
        "score": 0.0,
        "trace": [(_Named(s), {}, {}) for s in ("generator.ground", "critic.diagnose")],
    }
    right = {"score": 1.0, "trace": [(_Named("reviser.repair"), {}, {})]}
    choose = RanSelector()
    names = [choose(None, [wrong, right], [0.0, 1.0], 0, candidate)[0] for _ in range(4)]
    assert names == ["critic.diagnose", "generator.ground"] * 2
    assert choose(None, [right], [1.0], 1, candidate) == ["reviser.repair"]
    assert choose(None, [], [], 2, candidate)[0] in candidate


def test_a_rewriter_keeps_the_instruction_it_cannot_better() -> None:
    with dspy.context(lm=dspy.utils.DummyLM([{"new_instruction": "x" * 30}] * 9)):
        records = {"a": [{"Inputs": {}, "Generated Outputs": {}, "Feedback": "wrong"}]}
        assert Rewriter(20)({"a": "old"}, records, ["a"]) == {"a": "old"}
        assert Rewriter(200)({"a": "old"}, records, ["a"]) != {"a": "old"}


ASKED = ("intent", "ground", "formulate")


@pytest.mark.parametrize("recipe", ["gepa", pytest.param("mipro", marks=pytest.mark.slow)])
def test_stages_of_the_full_program_are_rewritten(
    recipe: str, compiling: ModuleType, tmp_path: Path
) -> None:
    class Staged(compiling.Scholar):  # type: ignore[name-defined,misc]
        """Answers every stage in JSON; right once the intent was written as it should be."""

        def complete(self, request: dspy.lm15.Request) -> dspy.lm15.Response:
            text = "\n".join(m.text or "" for m in request.messages)
            self.prompts.append(text)
            intent = "at least" if compiling.WORDS in str(request.system) else "count"
            numbers = [int(n) for n in re.findall(r"batch (\d+)", text)] or [0]
            right = "at least" in text or numbers[-1] % 2 == 1
            code = compiling.counting.gold(numbers[-1] + (not right))
            reply = {"intent": intent, "grounding": "numbers.n", "analysis": "counts"}
            reply |= {"code": code, "explanation": "It counts.", "consistent": True, "mismatch": ""}
            return compiling.answered(json.dumps(reply))

    stages = {f"generator.{name}" for name in ASKED} | {"verifier.explain", "verifier.compare"}
    program = compiling.counting.program(
        stages=frozenset(stages), adapter="json", omitted_outputs=frozenset(), max_rounds=0
    )
    writer = compiling.Writer()
    made = compiled(compiling, tmp_path / "out", recipe, Staged(), writer, program=program)
    assert made.kept and made.scores["val"]["compiled"].ex.value == 1.0
    written = {
        path
        for path, one in predictors(made.program).items()
        if one.signature.instructions != type(one).asks.instructions
    }
    assert "generator.intent" in written <= stages
    config = made.program.config
    assert rendered(lynx.load(tmp_path / "out"), config) == rendered(made.program, config)

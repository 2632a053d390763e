"""Artifacts: what is saved comes back, and what does not fit is refused with both sides named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lynx_dspy as lynx
from lynx_dspy.ablations import ABLATIONS, ablate
from lynx_dspy.config import EMBEDDED, FULL, LynxConfig
from lynx_dspy.engines.base import Database
from lynx_dspy.errors import ArtifactError, BadInput, LynxError
from lynx_dspy.metrics.intervals import Interval
from lynx_dspy.modules.critic import Critic
from lynx_dspy.modules.nearest import NearestDemos, Shot
from lynx_dspy.optimize import artifact, manifest, plainjson
from lynx_dspy.optimize.artifact import Manifest, origin, read_manifest, save, verify
from lynx_dspy.optimize.manifest import Backbone, RecipeRun, Scores, SplitRecord, identity
from lynx_dspy.optimize.prompts import rendered
from lynx_dspy.program import Lynx

BACKBONE = Backbone(name="test/scripted")
DEMO = {
    "dialect": "sqlite",
    "grounding": "customers(id, name)",
    "syntax": "",
    "intent": "count",
    "question": "How many customers — in all?",
    "analysis": "counts",
    "code": "SELECT COUNT(*)\nFROM customers",
}
REPLIES: dict[str, list[Any]] = {
    "generator.formulate": [{"analysis": "", "code": "SELECT name FROM customers"}],
    "generator.intent": [{"intent": "names"}],
    "generator.ground": [{"grounding": "customers"}],
    "generator.align": [{"links": []}],
    "verifier.explain": [{"explanation": "names"}],
    "verifier.compare": [{"consistent": True, "mismatch": ""}],
}

Change = Callable[[Any], Any]


def compiled(*without: str) -> Lynx:
    """A program as an optimizer leaves it."""
    program = ablate(without, Lynx(config=LynxConfig(adapter="json", top_k=3)))
    stage = program.generator.formulate
    stage.demos = [dspy.Example(**DEMO, augmented=True), dict(DEMO)]
    stage.signature = stage.signature.with_instructions("Write SQL.\n\nBe brief.")
    stage.signature = stage.signature.with_updated_fields("question", desc="what is asked")
    stage.config = {"temperature": 0.3}
    return program


def about(variant: str = "demos", **fields: Any) -> Manifest:
    return Manifest(variant=variant, backbone=BACKBONE, **fields)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(compiled(), tmp_path_factory.mktemp("whole") / "demos", about(), [{"id": "q1"}])


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A saved artifact of the test's own."""
    return Path(shutil.copytree(whole, tmp_path / "demos"))


def tamper(folder: Path, name: str, change: Change, *, cover_up: bool = True) -> None:
    """Change a file, and with `cover_up` every hash that would tell."""
    value = json.loads((folder / name).read_text())
    value = change(value) or value
    (folder / name).write_text(json.dumps(value))
    if cover_up:
        record = json.loads((folder / "manifest.json").read_text())
        if name in record["files"]:
            record["files"][name] = plainjson.digest(folder / name)
        record["checksum"] = manifest.checksum(record)
        (folder / "manifest.json").write_text(json.dumps(record))


def refusal(folder: Path, **options: Any) -> str:
    with pytest.raises(ArtifactError) as caught:
        artifact.load(folder, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def asked(scripted: Any, shop: Database, program: Lynx) -> dict[str, list[str]]:
    lm, engine = scripted(REPLIES)
    with dspy.context(lm=lm):
        program(question="Which customers are there?", database=shop)
    return dict(engine.prompts)


# What is saved comes back


def test_instructions_demos_fields_decoding_config_and_adapter(whole: Path) -> None:
    program, stage = compiled(), compiled().generator.formulate
    loaded = lynx.load(whole)
    again = loaded.generator.formulate
    assert again.signature.instructions == "Write SQL.\n\nBe brief."
    assert [dict(demo) for demo in again.demos] == [dict(demo) for demo in stage.demos]
    assert again.signature.input_fields["question"].json_schema_extra["desc"] == "what is asked"
    assert again.config == {"temperature": 0.3}
    assert loaded.config == program.config


def test_a_program_without_config_keeps_that_of_its_backbone(tmp_path: Path) -> None:
    save(Lynx(), tmp_path / "a", Manifest(variant="a", backbone=Backbone(name="local/tiny")))
    assert lynx.load(tmp_path / "a").config == EMBEDDED


def test_the_adapter_that_the_model_chose_is_kept(scripted: Any, tmp_path: Path) -> None:
    lm, _ = scripted({})
    with dspy.context(lm=lm):
        save(Lynx(), tmp_path / "a", about())
    assert lynx.load(tmp_path / "a").config == FULL.with_(adapter="json")


@pytest.mark.parametrize(
    "without", [(), ("ssd-saa", "verification"), ("jit", "staged-reasoning"), tuple(ABLATIONS)]
)
def test_ablations_are_read_off_the_program(without: tuple[str, ...], tmp_path: Path) -> None:
    program = ablate(without)
    save(program, tmp_path / "a", about())
    loaded = lynx.load(tmp_path / "a")
    assert [n for n, _ in loaded.named_predictors()] == [n for n, _ in program.named_predictors()]
    assert type(loaded.critic) is type(program.critic)
    assert type(loaded.checker) is type(program.checker)


def test_a_loaded_program_sends_the_very_same_prompts(
    scripted: Any, shop: Database, whole: Path
) -> None:
    before = asked(scripted, shop, compiled())
    assert "Be brief." in before["generator.formulate"][0]
    assert "in all?" in before["generator.formulate"][0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert asked(scripted, shop, lynx.load(whole)) == before


def test_prompts_are_the_same_bytes_in_another_process(whole: Path) -> None:
    script = (
        "import sys, lynx_dspy as lynx\n"
        "from lynx_dspy.optimize import plainjson\n"
        "from lynx_dspy.optimize.prompts import prompts_hash, rendered\n"
        "program = lynx.load(sys.argv[1])\n"
        "prompts = rendered(program, program.config)\n"
        "record = {'hash': prompts_hash(prompts), 'prompts': prompts}\n"
        "sys.stdout.buffer.write(plainjson.dumped(record).encode())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(whole)],
        capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
        timeout=300,
        check=True,
    )
    assert done.stdout == (whole / "prompts.json").read_bytes()
    assert b"Be brief." in done.stdout


def test_saving_a_loaded_program_gives_the_same_files(whole: Path, tmp_path: Path) -> None:
    again = save(lynx.load(whole), tmp_path / "again", about())
    assert (again / "program.json").read_bytes() == (whole / "program.json").read_bytes()
    assert (again / "prompts.json").read_bytes() == (whole / "prompts.json").read_bytes()
    was, now = read_manifest(whole), read_manifest(again)
    assert identity(now) == identity(was) == now.parent


def test_the_manifest_comes_back_whole(tmp_path: Path) -> None:
    told = about(
        recipe=RecipeRun(name="gepa+demos", params={"k": 4}, seed=3, budget={"lm_calls": 30}),
        metric={"rule": "bird"},
        splits={"train": SplitRecord(hash="ab", n=105, dataset="sql_eval")},
        scores={"val": {"compiled": Scores(ex=Interval(0.5, 0.25, 0.75, 40))}},
        notes="naïve",
    )
    found = read_manifest(save(Lynx(), tmp_path / "a", told))
    assert (found.recipe, found.metric, found.splits) == (told.recipe, told.metric, told.splits)
    assert (found.scores, found.notes) == (told.scores, told.notes)
    assert manifest.from_json(manifest.to_json(found)) == found


def test_files_read_well_in_review(whole: Path) -> None:
    text = (whole / "program.json").read_text()
    assert '    "question": "How many customers — in all?",\n' in text
    assert text == plainjson.dumped(json.loads(text))
    assert (whole / "eval.jsonl").read_text() == '{"id": "q1"}\n'


# Traps of DSPy's own format


def test_a_sub_module_marked_as_compiled_is_saved(tmp_path: Path) -> None:
    program = compiled()
    program.generator._compiled = True
    assert "generator.formulate" not in dict(program.named_predictors())
    loaded = lynx.load(save(program, tmp_path / "a", about()))
    assert len(loaded.generator.formulate.demos) == 2
    assert "generator.formulate" in dict(loaded.named_predictors())


def test_training_rows_leave_no_golds(tmp_path: Path) -> None:
    program = compiled()
    program.generator.formulate.demos = [
        dspy.Example(**DEMO, gold_sql="SELECT secret_gold", database=object())
    ]
    folder = save(program, tmp_path / "a", about())
    assert "secret_gold" not in "".join(p.read_text() for p in folder.iterdir())


def test_a_full_artifact_does_not_load_into_an_ablated_program(folder: Path) -> None:
    said = refusal(folder, into=ablate(["verification"]))
    assert "verifier is Verifier in the artifact, NoVerifier in this program" in said


def test_an_ablated_artifact_does_not_load_into_a_full_program(tmp_path: Path) -> None:
    save(ablate(["jit"]), tmp_path / "a", about())
    said = refusal(tmp_path / "a", into=Lynx())
    assert "generator.unknown_terms is Rule in the artifact, UnknownTerms in this program" in said


@pytest.mark.parametrize(
    "asks",
    [
        "dialect, grounding, syntax, question, intent -> analysis, code",
        "dialect, grounding, syntax, intent, question -> analysis: list[str], code",
        "dialect, grounding, syntax, intent, question -> code",
    ],
)
def test_other_fields_are_refused_with_both_sides(folder: Path, asks: str) -> None:
    program = Lynx()
    program.generator.formulate.signature = dspy.Signature(asks)
    said = refusal(folder, into=program)
    assert "generator.formulate asks (dialect: str, grounding: str, syntax: str, intent" in said
    assert said.count("-> ") == 2


def test_no_language_model_is_saved(tmp_path: Path) -> None:
    program = compiled()
    program.generator.formulate.lm = dspy.LM("openai/gpt-4o", api_key="sk-0123456789abcdefgh")
    folder = save(program, tmp_path / "a", about())
    text = "".join(p.read_text() for p in folder.iterdir())
    assert "api_key" not in text
    assert "sk-0123" not in text


# Own parts


class QuietCritic(Critic):
    """A part that no ablation makes."""


def test_own_parts_are_loaded_into_a_program_of_the_same_parts(tmp_path: Path) -> None:
    with pytest.warns(artifact.ArtifactWarning, match="into="):
        save(Lynx(critic=QuietCritic()), tmp_path / "a", about())
    assert "critic is QuietCritic in the artifact, Critic in this" in refusal(tmp_path / "a")
    assert artifact.load(tmp_path / "a", into=Lynx(critic=QuietCritic()))


def test_what_cannot_be_loaded_again_is_not_saved(tmp_path: Path) -> None:
    program = Lynx()
    program.generator.intent.signature = dspy.Signature("question -> intent")
    with pytest.raises(ArtifactError, match=r"generator\.intent asks"):
        save(program, tmp_path / "a", about())
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan")])
def test_what_json_cannot_hold_is_named(tmp_path: Path, value: object) -> None:
    program = compiled()
    program.generator.formulate.demos[1]["analysis"] = value
    with pytest.raises(ArtifactError, match=r"generator\.formulate\.demos\.1\.analysis"):
        save(program, tmp_path / "a", about())


# Demos that are picked for each question


def picking() -> Lynx:
    program = compiled()
    shots = tuple(
        Shot({**DEMO, "intent": f"count {n}"}, question=f"How many of {n}?", database="shop")
        for n in range(6)
    )
    program.generator.formulate.nearest = NearestDemos(shots, k=2, shared=("grounding",))
    return program


def test_picked_demos_come_back(scripted: Any, shop: Database, tmp_path: Path) -> None:
    folder = save(picking(), tmp_path / "a", about())
    before = asked(scripted, shop, picking())
    loaded = lynx.load(folder)
    assert loaded.generator.formulate.nearest == picking().generator.formulate.nearest
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert asked(scripted, shop, loaded) == before
    assert verify(folder) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda r: [1], "demos.json"),
        (lambda r: {"generator.formulate": 1}, "demos.json"),
        (lambda r: {"critic": r["generator.formulate"]}, "critic"),
        (lambda r: r["generator.formulate"].update(k="many"), "k: input should be"),
        (lambda r: r["generator.formulate"].update(tokens=None), "tokens: input should be"),
        (lambda r: r["generator.formulate"].update(shots=[{}]), "shots.0"),
        (lambda r: r["generator.formulate"]["shots"][0].update(fields=[]), "shots.0.fields"),
    ],
)
def test_hostile_picked_demos_are_one_line(change: Change, says: str, tmp_path: Path) -> None:
    folder = save(picking(), tmp_path / "a", about())
    tamper(folder, "demos.json", change)
    assert says in refusal(folder)


# Warnings


def test_another_backbone_is_a_warning_once(scripted: Any, shop: Database, tmp_path: Path) -> None:
    other = Backbone(name="openai/gpt-4o", digest="abc")
    save(compiled(), tmp_path / "a", Manifest(variant="a", backbone=other))
    program = lynx.load(tmp_path / "a")
    with pytest.warns(artifact.BackboneWarning, match="model openai/gpt-4o there, test/scr") as got:
        asked(scripted, shop, program)
        asked(scripted, shop, program)
    assert len([w for w in got if w.category is artifact.BackboneWarning]) == 1


def test_the_same_backbone_is_none(scripted: Any) -> None:
    lm, _ = scripted({})
    told = Manifest(variant="a", backbone=Backbone.described(lynx.lm.describe(lm)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert artifact.check_backbone(told, lm) == []
    with pytest.warns(artifact.BackboneWarning):
        assert artifact.check_backbone(told, lm.copy(temperature=0.9))


def test_another_package_version_is_a_warning(folder: Path) -> None:
    tamper(folder, "manifest.json", lambda r: r["packages"].update(dspy="3.0.0", gone="1"))
    with pytest.warns(artifact.PackageWarning, match=r"dspy 3\.0\.0 there, 3\.\S+ here; gone 1"):
        artifact.load(folder)


def test_other_prompts_are_a_warning(folder: Path) -> None:
    tamper(folder, "manifest.json", lambda r: r.update(prompt_hash="0" * 16))
    with pytest.warns(artifact.PackageWarning, match="other prompts"):
        artifact.load(folder)


def test_changed_files_are_refused_or_with_strict_off_told(folder: Path) -> None:
    tamper(folder, "program.json", lambda r: r["critic.reflect"].update(config={"n": 2}),
           cover_up=False)  # fmt: skip
    assert "program.json was changed after it was saved" in refusal(folder)
    with pytest.warns(artifact.ArtifactWarning, match=r"program\.json was changed"):
        assert artifact.load(folder, strict=False).critic.reflect.config == {"n": 2}


# Where an artifact lies


def test_a_crash_between_the_renames_leaves_the_old_one(folder: Path) -> None:
    (folder / "journal.jsonl").write_text("kept\n")
    folder.rename(folder.with_name(".demos.old"))
    assert artifact.load(folder).generator.formulate.demos
    save(Lynx(), folder, about("second"))
    assert origin(lynx.load(folder)).manifest.variant == "second"  # type: ignore[union-attr]
    assert (folder / "journal.jsonl").read_text() == "kept\n"
    assert not folder.with_name(".demos.old").exists()


def test_saving_again_drops_old_files_and_keeps_others(folder: Path) -> None:
    (folder / "notes.md").write_text("mine")
    tamper(folder, "manifest.json", lambda r: r["files"].update({"stale.json": "0" * 16}))
    (folder / "stale.json").write_text("{}")
    save(Lynx(), folder, about("second"))
    names = {p.name for p in folder.iterdir()}
    assert names == {"manifest.json", "program.json", "prompts.json", "eval.jsonl", "notes.md"}


def test_killed_while_saving_the_artifact_is_whole(folder: Path) -> None:
    """One process saves two variants in turn, without end; it is killed at some moment."""
    script = (
        "import sys\n"
        "from lynx_dspy.optimize import folders\n"
        "from pathlib import Path\n"
        "place = Path(sys.argv[1])\n"
        "texts = {p.name: p.read_text() for p in sorted(place.iterdir(), reverse=True)}\n"
        "print('saving', flush=True)\n"
        "while True:\n"
        "    folders.replace_files(place, texts, set(texts))\n"
    )
    for pause in (0.01, 0.05, 0.11):
        saving = subprocess.Popen(
            [sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert saving.stdout is not None
        assert saving.stdout.readline() == "saving\n"
        with pytest.raises(subprocess.TimeoutExpired):
            saving.wait(pause)
        saving.kill()
        saving.wait()
        saving.stdout.close()
        place = artifact.located(folder)
        assert {p.name for p in place.iterdir()} == {*artifact.read_manifest(folder).files,
                                                     "manifest.json"}  # fmt: skip
        for name, digest in read_manifest(folder).files.items():
            assert plainjson.digest(place / name) == digest
        save(Lynx(), folder, about("mended"))


def test_a_manifest_of_something_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "my web page"}')
    with pytest.raises(BadInput, match="name another folder"):
        save(Lynx(), tmp_path, about())
    assert [p.name for p in tmp_path.iterdir()] == ["manifest.json"]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="Cannot write"):
        save(Lynx(), tmp_path / "file" / "a", about())


# Hostile files


def outside(folder: Path) -> None:
    (folder.parent / "outside.json").write_text("{}")
    tamper(folder, "manifest.json", lambda r: r["files"].update({"../outside.json": "0" * 16}))


def link(folder: Path) -> None:
    (folder / "program.json").rename(folder / "elsewhere")
    (folder / "program.json").symlink_to(folder / "elsewhere")


def huge(folder: Path) -> None:
    with (folder / "manifest.json").open("ab") as stream:
        stream.truncate(100_000_000_000)


def pipe(folder: Path) -> None:
    (folder / "program.json").unlink()
    os.mkfifo(folder / "program.json")


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "outside": (outside, "no file name of an artifact"),
    "link": (link, "is a link"),
    "huge": (huge, "100,000,000,000 bytes"),
    "pipe": (pipe, "device"),
    "missing": (lambda f: (f / "program.json").unlink(), "no such file"),
    "no manifest": (lambda f: (f / "manifest.json").unlink(), "no such file"),
    "no folder": (shutil.rmtree, "no such folder"),
    "nan": (lambda f: (f / "manifest.json").write_text('{"format": NaN}'), "NaN"),
    "infinity": (lambda f: (f / "manifest.json").write_text('{"format": 1e999}'), "finite"),
    "deep": (lambda f: (f / "manifest.json").write_text("[" * 300_000), "nested too deep"),
    "deepish": (
        lambda f: tamper(
            f,
            "manifest.json",
            lambda r: r["recipe"]["params"].update(a=json.loads("[" * 99 + "]" * 99)),
        ),
        "nested too deep",
    ),
    "twice": (lambda f: (f / "manifest.json").write_text('{"format": 1, "format": 1}'), "twice"),
    "no text": (lambda f: (f / "manifest.json").write_bytes(b"\xff\xfe"), "not plain JSON"),
    "half": (lambda f: (f / "manifest.json").write_text('{"notes": "\\ud800"}'), "half a char"),
    "list": (lambda f: (f / "manifest.json").write_text("[]"), "a JSON object is needed"),
    "newer": (lambda f: tamper(f, "manifest.json", lambda r: r.update(format=2)), "format 2"),
    "unknown": (lambda f: tamper(f, "manifest.json", lambda r: r.update(colour=1)), "colour"),
    "type": (lambda f: tamper(f, "manifest.json", lambda r: r.update(variant=3)), "variant"),
    "knob": (
        lambda f: tamper(f, "manifest.json", lambda r: r["config"].update(top_q=1)),
        "config.top_q",
    ),
    "adapter": (lambda f: tamper(f, "manifest.json", lambda r: r.update(adapter="xml")), "xml"),
    "part": (lambda f: tamper(f, "manifest.json", lambda r: r.update(without=["x"])), "'x'"),
    "extra": (
        lambda f: (
            (f / "bait.json").write_text("{}"),
            tamper(f, "manifest.json", lambda r: r["files"].update({"bait.json": "0" * 16})),
            tamper(f, "bait.json", lambda r: r),
        ),
        "bait.json",
    ),
    "states": (lambda f: tamper(f, "program.json", lambda r: [1]), "not an object"),
    "stage": (lambda f: tamper(f, "program.json", lambda r: r.update(x={})), "x"),
    "demo": (
        lambda f: tamper(f, "program.json", lambda r: r["critic.reflect"].update(demos=["x"])),
        "critic.reflect.demos",
    ),
    "address": (
        lambda f: tamper(
            f,
            "program.json",
            lambda r: r["critic.reflect"]["config"].update(api_base="http://elsewhere.example"),
        ),
        "critic.reflect.config.api_base is no option of decoding",
    ),
    "decoding": (
        lambda f: tamper(
            f, "program.json", lambda r: r["critic.reflect"]["config"].update(temperature="hot")
        ),
        "critic.reflect.config.temperature is a str",
    ),
    "field": (
        lambda f: tamper(f, "program.json", lambda r: r["critic.reflect"].update(fields={})),
        "critic.reflect.fields",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_one_clear_line(folder: Path, name: str) -> None:
    spoil, says = HOSTILE[name]
    spoil(folder)
    assert says in refusal(folder)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES, data=st.data())
def test_any_value_anywhere_is_read_or_refused(whole: Path, value: Any, data: Any) -> None:
    name = data.draw(st.sampled_from(["manifest.json", "program.json"]))
    record = json.loads((whole / name).read_text())
    inner, keys = record, []
    while isinstance(inner, dict) and inner and (not keys or data.draw(st.booleans())):
        keys.append(data.draw(st.sampled_from(sorted(inner))))
        inner = inner[keys[-1]]

    def change(record: Any) -> None:
        for key in keys[:-1]:
            record = record[key]
        record[keys[-1]] = value

    folder = whole.with_name("spoilt")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    if name == "manifest.json":
        tamper(folder, name, change, cover_up=False)
    else:
        tamper(folder, name, change)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            artifact.load(folder)
        except LynxError as error:
            assert "\n" not in str(error)


def test_knobs_that_name_places_do_not_travel(folder: Path) -> None:
    if "fix_patterns" not in {f for f in LynxConfig.__dataclass_fields__}:
        pytest.skip("no knob names a place")
    tamper(folder, "manifest.json", lambda r: r["config"].update(fix_patterns="/etc/passwd"))
    config = artifact.load(folder).config
    assert config is not None
    assert config.fix_patterns == ""


# Verify


def test_a_sound_artifact_has_no_differences(whole: Path) -> None:
    assert verify(whole) == []


@pytest.mark.parametrize(
    ("name", "change", "cover_up", "says"),
    [
        ("manifest.json", lambda r: r.update(notes="better"), False, "manifest.json was changed"),
        ("program.json", lambda r: r["critic.reflect"].update(config={"n": 2}), False, "program."),
        ("manifest.json", lambda r: r.update(prompt_hash="0" * 16), True, "the prompt hash"),
        ("manifest.json", lambda r: r["config_changes"].clear(), True, "config_changes"),
        (
            "manifest.json",
            lambda r: r["signatures"].update({"critic.reflect": "0" * 16}),
            True,
            "signature hash of critic.reflect",
        ),
        (
            "program.json",
            lambda r: r["critic.reflect"].update(instructions=["Ignore all."]),
            True,
            "the prompt of critic.reflect",
        ),
        (
            "program.json",
            lambda r: r["critic.reflect"].update(instructions=["Use AKIA0123456789ABCDEF."]),
            True,
            "an AWS key",
        ),
        ("prompts.json", lambda r: [1], True, "holds no prompts"),
        ("manifest.json", lambda r: r["modules"].update(critic="Other"), True, "critic is Other"),
    ],
)
def test_verify_names_what_changed(
    folder: Path, name: str, change: Change, cover_up: bool, says: str
) -> None:
    tamper(folder, name, change, cover_up=cover_up)
    assert any(says in line for line in verify(folder)), verify(folder)


def test_rendering_leaves_the_program_as_it_was() -> None:
    program = compiled()
    assert program.config is not None
    first = rendered(program, program.config)
    assert rendered(program, program.config) == first
    assert set(first) == {name for name, _ in program.named_predictors()}
    assert program.generator.formulate.lm is None

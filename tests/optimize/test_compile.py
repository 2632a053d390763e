"""A compile chooses on validation questions alone, ships no loser, and survives being killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import lynx_dspy as lynx
from lynx_dspy.datasets.splits import leaks
from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.optimize.artifact import read_manifest
from lynx_dspy.optimize.splitting import splits_of

SCRIPT = Path(__file__).with_name("compiling.py")
SPLIT_FIELDS = ("question", "database", "gold_sql")


@pytest.fixture(scope="module")
def compiling() -> Iterator[ModuleType]:
    """`compiling.py`, which is also run as a script."""
    sys.path.insert(0, str(SCRIPT.parent))
    import compiling as found

    yield found
    sys.path.remove(str(SCRIPT.parent))


def test_demos_that_teach_are_found_and_shipped(compiling: ModuleType, tmp_path: Path) -> None:
    engine = compiling.Pupil(needs=3)
    seen: list[Any] = []
    made = compiling.compiled(tmp_path, "a/demos", engine, watch=seen.append)
    assert made.kept and made.winner.startswith("demos-")
    assert made.manifest.recipe.params["winner"]["size"] == 3
    before, after = made.scores["val"]["baseline"].ex, made.scores["val"]["compiled"].ex
    assert after.value == 1.0 > before.value
    assert made.spent.calls == len(engine.prompts)
    assert seen[-1].spent == made.spent and seen[-1].leader == made.winner
    assert any(progress.seconds_left is not None for progress in seen)

    again = lynx.load(tmp_path / "a/demos")
    demos = again.generator.formulate.demos
    assert len(demos) == 3 and all("COUNT(*)" in demo.code for demo in demos)
    manifest = read_manifest(tmp_path / "a/demos")
    assert manifest.recipe.used.lm_calls == made.spent.calls
    assert set(manifest.splits) == {"train", "val"}
    assert manifest.scores["val"]["compiled"].ex == after
    page = (tmp_path / "a/.demos.work/compile.md").read_text()
    assert "Kept: demos-" in page and "| val | compiled |" in page


def test_the_baseline_is_shipped_where_demos_do_harm(compiling: ModuleType, tmp_path: Path) -> None:
    made = compiling.compiled(tmp_path, "out", compiling.Pupil(needs=99, spoiled_by="\n```"))
    assert not made.kept and made.winner == "baseline"
    assert "un-compiled program is shipped" in made.manifest.notes
    assert lynx.load(tmp_path / "out").generator.formulate.demos == []
    assert made.scores["val"]["baseline"] == made.scores["val"]["compiled"]


def test_picked_demos_never_show_the_question_itself(compiling: ModuleType, tmp_path: Path) -> None:
    engine = compiling.Pupil(needs=2)
    params = {"embedder": "none", "ks": "2", "rungs": "1"}
    made = compiling.compiled(tmp_path, "out", engine, recipe="nearest", params=params)
    assert made.kept and made.winner == "nearest-2-used"
    for prompt in engine.prompts:
        *shown, asked = [line for line in prompt.splitlines() if line.startswith("Question: ")]
        assert asked not in shown
    program = lynx.load(tmp_path / "out")
    pool = program.generator.formulate.nearest
    assert pool.k == 2 and pool.shots == made.program.generator.formulate.nearest.shots


def test_golds_cost_no_call(compiling: ModuleType, tmp_path: Path) -> None:
    engine = compiling.Pupil(needs=2)
    params = {**compiling.PARAMS, "labels": "gold", "sets": 1, "sizes": "2"}
    made = compiling.compiled(tmp_path, "out", engine, params=params)
    assert made.kept
    assert made.spent.calls == len(engine.prompts) == 2 * made.manifest.splits["val"].n
    assert made.manifest.recipe.params["winner"]["labels"] == {"gold": 2}


def test_recipes_chain(compiling: ModuleType, tmp_path: Path) -> None:
    params = {**compiling.PARAMS, "embedder": "none", "ks": "2"}
    made = compiling.compiled(
        tmp_path,
        "out",
        compiling.Pupil(needs=2, needs_for_all=4),
        n=18,
        recipe="demos+nearest",
        params=params,
    )
    stage = made.program.generator.formulate
    assert made.kept and stage.demos and stage.nearest
    assert made.manifest.recipe.name == "demos+nearest"


def test_a_spent_budget_ships_what_is_known(compiling: ModuleType, tmp_path: Path) -> None:
    engine = compiling.Pupil()
    made = compiling.compiled(tmp_path, "out", engine, max_lm_calls=2)
    assert made.budget_spent and not made.kept
    assert made.spent.calls == len(engine.prompts) == 2
    assert "budget ended the search" in made.manifest.notes


@pytest.fixture
def table(compiling: ModuleType, tmp_path: Path) -> Path:
    """Own questions in three files."""
    counting = compiling.counting
    folder = tmp_path / "data"
    folder.mkdir()
    examples = counting.questions(folder, 9)  # the tenth has the gold of the first again
    parts = {"train": examples[:4], "val": examples[4:7], "test": examples[7:]}
    for name, part in parts.items():
        rows = [
            {"id": one.id, "question": one.question, "database": "numbers.sqlite",
             "gold_sql": one.gold_sql[0]} for one in part
        ]  # fmt: skip
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text)
    return folder


def asked_in(prompts: list[str]) -> set[str]:
    lines = (p.splitlines() for p in prompts)
    return {[x for x in one if x.startswith("Question: ")][-1] for one in lines}


def test_no_search_sees_the_test_split(compiling: ModuleType, table: Path, tmp_path: Path) -> None:
    tested = {f"Question: How many numbers of batch {k} count?" for k in range(7, 9)}
    engine = compiling.Pupil(needs=2)
    lm = compiling.counting.model(engine)
    where: list[tuple[str, int]] = []
    made = lynx.compile(
        compiling.program(), "jsonl", data=table, lm=lm, out=tmp_path / "out", max_lm_calls=60,
        test_split="test", params=compiling.PARAMS,
        watch=lambda progress: where.append((progress.phase, len(engine.prompts))),
    )  # fmt: skip
    first_test = min(n for phase, n in where if phase.startswith("test"))
    assert not asked_in(engine.prompts[:first_test]) & tested
    assert asked_in(engine.prompts[first_test:]) == tested
    assert len(engine.prompts) - first_test == 2 * len(tested)
    assert set(made.scores) == {"val", "test"}
    rows = (tmp_path / "out/eval.jsonl").read_text().splitlines()
    assert Counter(json.loads(row)["split"] for row in rows) == {"val": 3, "test": 2}
    assert not any("gold" in row for row in rows)


def test_questions_that_leak_are_left_out(table: Path) -> None:
    val = (table / "val.jsonl").read_text().splitlines()
    with (table / "train.jsonl").open("a") as stream:
        stream.write(json.dumps(json.loads(val[0]) | {"id": "copy"}) + "\n")
    # The counting questions are all alike, so each file gets words of its own.
    for name in ("train", "val"):
        lines = (table / f"{name}.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        for n, row in enumerate(rows):
            if row["id"] != "copy" and (name, n) != ("val", 0):
                row["question"] = f"{name} question {name}{n} with words{n} of {name}s{n} own{n}"
                row["gold_sql"] = f"SELECT {n} AS {name}"
        (table / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    found = splits_of("jsonl", table)
    assert found.left_out == ("copy",)
    assert len(found.train.examples) == 4
    assert leaks(found.train.examples, found.val.examples) == []


def test_one_file_is_shared_out(table: Path) -> None:
    examples = [json.loads(line) for line in (table / "train.jsonl").read_text().splitlines()]
    for n, one in enumerate(examples):
        one["question"] = f"a{n} b{n} c{n} d{n}"
        one["gold_sql"] = f"SELECT {n}"
    one_file = table / "mine.jsonl"
    one_file.write_text("".join(json.dumps(one) + "\n" for one in examples))
    found = splits_of("jsonl", one_file)
    assert (len(found.train.examples), len(found.val.examples)) == (3, 1)
    assert found.val.split == "train-val"


def test_what_cannot_be_compiled_is_said(compiling: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="Unknown recipe"):
        compiling.compiled(tmp_path, "out", compiling.Pupil(), recipe="magic")
    with pytest.raises(BadInput, match="cannot be shared out"):
        compiling.compiled(tmp_path, "out", compiling.Pupil(), n=1)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="it is a file"):
        compiling.compiled(tmp_path, "file", compiling.Pupil())
    with pytest.raises(BadInput, match="spider2 has no split to compile on"):
        lynx.compile(
            lynx.Lynx(), "spider2", data=tmp_path, lm=compiling.counting.model(compiling.Pupil())
        )


class Compiles:
    """Starts compiles in forks of one process."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def start(self, out: str, most_bytes: int = 0) -> int:
        assert self._process.stdin
        self._process.stdin.write(f"{out} {most_bytes}\n")
        self._process.stdin.flush()
        return self.number()

    def number(self) -> int:
        assert self._process.stdout
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate(timeout=20)


def facts(folder: Path, out: str) -> dict[str, Any]:
    """All that must not depend on how a compile came to its end."""
    found: dict[str, Any] = {
        path.name: path.read_bytes()
        for path in sorted((folder / out).iterdir())
        if path.name != "manifest.json"
    }
    manifest = json.loads((folder / out / "manifest.json").read_text())
    manifest["recipe"]["used"].pop("seconds")
    for name in ("created", "checksum"):
        manifest.pop(name)
    return found | {"manifest": manifest}


def journals(folder: Path, out: str) -> dict[str, list[str]]:
    work = folder / f".{out}.work"
    return {
        str(path.relative_to(work)): [json.loads(x)["id"] for x in path.read_text().splitlines()]
        for path in sorted(work.rglob("predictions.jsonl"))
    }


def test_kills_and_a_full_disk_change_nothing(tmp_path: Path) -> None:
    runs, chance = Compiles(tmp_path), random.Random(7)
    try:
        runs.start("calm")
        assert runs.number() == 0
        log = tmp_path / "stormy.log"
        for kill in range(5):
            before = len(log.read_text().splitlines()) if log.exists() else 0
            child = runs.start("stormy")
            until = time.monotonic() + 60
            while time.monotonic() < until:
                if log.exists() and len(log.read_text().splitlines()) > before + kill % 3:
                    break
                time.sleep(0.002)
            time.sleep(chance.uniform(0, 0.05))
            os.kill(child, signal.SIGKILL)
            assert runs.number() == signal.SIGKILL, "the compile had ended before it was killed"
        runs.start("stormy")
        assert runs.number() == 0
        runs.start("full", most_bytes=4_000)
        assert runs.number() != 0, "the disk was not full"
        runs.start("full")
        assert runs.number() == 0
    finally:
        runs.close()
    assert facts(tmp_path, "full") == facts(tmp_path, "stormy") == facts(tmp_path, "calm")
    kept = journals(tmp_path, "stormy")
    assert kept == journals(tmp_path, "calm")
    assert all(len(ids) == len(set(ids)) for ids in kept.values()), "a question was asked twice"
    asked = Counter(log.read_text().split()) - Counter((tmp_path / "calm.log").read_text().split())
    assert sum(asked.values()) <= 5, "more was repeated than was under way at the kills"

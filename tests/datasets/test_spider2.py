import json
from collections import Counter
from pathlib import Path

import dspy
import pytest

from lynx_dspy import datasets
from lynx_dspy.datasets.golds import matches_gold_csv
from lynx_dspy.engines import Database, connect
from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.identifiers import full_name
from lynx_dspy.metrics.frames import read_csv
from lynx_dspy.optimize.evaluate import evaluate
from lynx_dspy.values import Status

DATA = Path(__file__).parents[2] / "../shared/data/spider2-lite"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="Spider 2.0-Lite is not here")


def unpack(root: Path) -> Path:
    """A download of one SQLite and one BigQuery task, its database in the second official place."""
    tasks = [
        {"instance_id": "local001", "db": "Shop", "question": "q", "external_knowledge": "k.md"},
        {"instance_id": "bq001", "db": "ga4", "question": "q", "external_knowledge": None},
    ]
    records = [
        {"instance_id": "local001", "condition_cols": [0], "ignore_order": True, "toks": "159"}
    ]
    gold = root / "evaluation_suite" / "gold"
    results = gold / "exec_result"
    results.mkdir(parents=True)
    for name in ("local001_a.csv", "local001_b.csv", "local0012_a.csv"):
        (results / name).write_text("k,v\n1,2\n")
    as_lines = "\n".join(map(json.dumps, tasks))
    (root / "spider2-lite.jsonl").write_text(as_lines)
    (gold / "spider2lite_eval.jsonl").write_text("\n".join(map(json.dumps, records)))
    place = root / "resource" / "databases" / "sqlite" / "Shop"
    place.mkdir(parents=True)
    (place / "shop.sqlite").touch()
    (place / "t.json").write_text(
        '{"table_name": " t", "column_names": ["a", "b"], "description": ["the a", null],'
        ' "sample_rows": [{"a": NaN}]}'
    )
    return root


def test_tasks_get_their_database_documents_and_golds(tmp_path: Path) -> None:
    local, bq = datasets.load("spider2", unpack(tmp_path))
    assert local.database.endswith("sqlite/Shop/shop.sqlite")
    assert [Path(path).name for path in local.documents] == ["k.md"]
    assert [Path(path).name for path in local.gold_csv] == ["local001_a.csv", "local001_b.csv"]
    assert (local.difficulty, local.condition_cols) == ("medium", [0])
    assert (bq.dialect, bq.database) == ("bigquery", "")
    assert "account" in bq.reason
    assert not {"gold_csv", "condition_cols", "gold_sql"} & set(local.inputs().keys())


def test_a_task_without_an_engine_gets_the_database_of_its_metadata(tmp_path: Path) -> None:
    place = unpack(tmp_path) / "resource" / "databases" / "bigquery" / "ga4" / "p.d"
    place.mkdir(parents=True)
    (place / "t.json").write_text(
        '{"table_name": "t", "table_fullname": "p.d.t", "column_names": ["a"],'
        ' "column_types": ["INT64"]}'
    )
    _, bq = datasets.load("spider2", tmp_path)
    with connect(bq.database) as database:
        assert (database.dialect, database.name) == ("bigquery", "ga4")
        assert database.execute("SELECT a FROM `p.d.t`").status is Status.UNAVAILABLE


def test_descriptions_come_from_metadata_with_its_quirks(tmp_path: Path) -> None:
    assert datasets.describe("spider2", unpack(tmp_path), "Shop") == {"t": {"a": "the a"}}


def test_a_lone_gold_counts_before_suffixed_ones(tmp_path: Path) -> None:
    results = unpack(tmp_path) / "evaluation_suite" / "gold" / "exec_result"
    (results / "local001.csv").write_text("k,v\n5,6\n")
    local = datasets.load("spider2", tmp_path)[0]
    assert [Path(path).name for path in local.gold_csv] == ["local001.csv"]
    assert matches_gold_csv(local, read_csv("x\n5\n"))


def test_records_that_were_left_out_are_told(tmp_path: Path) -> None:
    (unpack(tmp_path) / "evaluation_suite" / "gold" / "spider2lite_eval.jsonl").unlink()
    with pytest.raises(BadInput, match=r"evaluation records \(spider2lite_eval\.jsonl\)"):
        datasets.load("spider2", tmp_path)


@needs_data
def test_lite_has_547_tasks_in_three_dialects() -> None:
    loaded = datasets.load("spider2", DATA)
    assert Counter(one.dialect for one in loaded) == {
        "bigquery": 205,
        "snowflake": 207,
        "sqlite": 135,
    }
    documented = [path for one in loaded for path in one.documents]
    assert len(documented) == 107
    assert all(Path(path).is_file() for path in documented)
    described = {one.db for one in loaded if one.database.startswith("metadata:")}
    assert described == {"ga4", "NOAA_DATA", "_1000_GENOMES", "f1"}
    runnable = {one.id for one in loaded if one.database.endswith(".sqlite")}
    assert runnable == {"local244", "local054", "local055", "local198"}


@needs_data
def test_every_gold_result_matches_itself() -> None:
    judged = 0
    for one in datasets.load("spider2", DATA):
        for path in one.gold_csv:
            frame = read_csv(Path(path))
            assert matches_gold_csv(one, frame, "spider2"), path
            assert matches_gold_csv(one, frame, "spider2-fixed"), path
        judged += bool(one.gold_csv)
    assert judged == 146


class Writes(dspy.Module):
    """A program that answers each question in the dialect of its database, and notes the schema."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, str] = {}

    def forward(self, question: str, database: Database, **_: object) -> dspy.Prediction:
        table = database.introspect().tables[0]
        self.seen[database.name] = database.dialect
        return dspy.Prediction(code=f"SELECT * FROM {full_name(table, database.dialect)}")


@needs_data
def test_programs_of_all_dialects_are_written_and_stay_unscored(tmp_path: Path) -> None:
    program, out = Writes(), tmp_path / "run"
    ids = ["bq011", "sf_bq117", "local344"]
    lm = dspy.LM("none/none")
    report = evaluate(program, "spider2", data=DATA, ids=ids, lm=lm, out=out)
    assert program.seen == {"ga4": "bigquery", "NOAA_DATA": "snowflake", "f1": "sqlite"}
    assert (report.n, report.scored, report.statuses) == (3, 0, {"unavailable": 3})
    lines = [json.loads(line) for line in (out / "predictions.jsonl").read_text().splitlines()]
    assert all(line["code"].startswith("SELECT * FROM ") for line in lines)
    assert all("metadata only" in line["error"] for line in lines)

import sqlite3
from pathlib import Path

import pytest

from lynx_dspy import datasets
from lynx_dspy.datasets import sql_eval
from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.metrics import RULES, any_gold

DATA = Path(__file__).parents[2] / "../shared/data/sql_eval"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="sql_eval is not here")


def unpack(root: Path, script: str = "CREATE TABLE t (day TEXT DEFAULT (DATE('now')));") -> Path:
    (root / "databases").mkdir()
    (root / "databases" / "shop.sql").write_text(script)
    (root / "extra.jsonl").write_text(
        '{"id": "1", "db": "shop", "question": "q", "knowledge": "k",'
        ' "gold": ["SELECT 1", "SELECT 2"]}'
    )
    return root


def test_databases_are_built_freshly_where_the_run_wants_them(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    (one,) = datasets.load("sql_eval", unpack(tmp_path), "extra", run_dir)
    assert Path(one.database) == run_dir / "shop.sqlite"
    assert one.evidence == "k"
    assert one.gold_sql == ("SELECT 1", "SELECT 2")
    before = (run_dir / "shop.sqlite").stat().st_ino
    datasets.load("sql_eval", tmp_path, "extra", run_dir)
    assert (run_dir / "shop.sqlite").stat().st_ino != before
    assert [path.name for path in run_dir.iterdir()] == ["shop.sqlite"]


def test_without_a_run_folder_databases_last_as_long_as_the_process(tmp_path: Path) -> None:
    (one,) = datasets.load("sql_eval", unpack(tmp_path), "extra")
    assert sqlite3.connect(one.database).execute("SELECT count(*) FROM t").fetchone() == (0,)


@pytest.mark.parametrize(
    "script", ["ATTACH '{}' AS other;", "VACUUM INTO '{}';", "SELECT * FRM t;"]
)
def test_a_script_reaches_no_other_file(tmp_path: Path, script: str) -> None:
    outside = tmp_path / "outside.sqlite"
    unpack(tmp_path, script.format(outside))
    with pytest.raises(BadInput, match=r"shop\.sql cannot be loaded"):
        datasets.load("sql_eval", tmp_path, "extra", tmp_path / "run")
    assert not outside.exists()
    assert list((tmp_path / "run").iterdir()) == []


def test_other_splits_and_missing_databases_are_told(tmp_path: Path) -> None:
    unpack(tmp_path)
    with pytest.raises(UnknownName, match=r"'vall'.*Known: extra"):
        datasets.load("sql_eval", tmp_path, "vall")
    (tmp_path / "databases" / "shop.sql").unlink()
    with pytest.raises(BadInput, match=r"No database .*shop\.sql.*sql-eval page"):
        datasets.load("sql_eval", tmp_path, "extra")


@needs_data
def test_every_gold_agrees_with_its_question(tmp_path: Path) -> None:
    counts = []
    for split in ("train", "val"):
        loaded = datasets.load("sql_eval", DATA, split, tmp_path)
        counts.append(len(loaded))
        for one in loaded:
            connection = sqlite3.connect(f"file:{one.database}?mode=ro", uri=True)
            prepare = RULES[one.rule].prepare
            golds = [connection.execute(prepare(sql)).fetchall() for sql in one.gold_sql]
            connection.close()
            assert all(any_gold(golds, rows, one.rule) for rows in golds), one.id
    assert counts == [105, 40]


@needs_data
def test_columns_are_described() -> None:
    described = sql_eval.describe(DATA, "broker")
    assert "active" in described["sbCustomer"]["sbCustStatus"]
    assert sql_eval.describe(DATA, "nothing") == {}

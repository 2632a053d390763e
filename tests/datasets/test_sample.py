"""The sample: is it the same everywhere, is it sound, and is every gold what it should be?"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from lynx_dspy.datasets import sample
from lynx_dspy.datasets.sample import benchmark, schema, warehouse
from lynx_dspy.errors import BadInput, UnknownName

CONTENT = "ec159faa0346a7da6d1abca2ec9fd8351fe58632d9c58a1a9c6e8d79b7898eee"
COUNTS = {
    "stores": 14,
    "categories": 12,
    "products": 116,
    "customers": 6_000,
    "internal_accounts": 60,
    "orders": 15_771,
    "order_items": 35_349,
    "payments": 16_654,
    "returns": 1_502,
    "plans": 7,
    "subscriptions": 2_081,
    "support_tickets": 2_669,
}
EVERY = [question for split in sample.SPLITS for question in sample.questions(split)]
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in sample.documents_path().iterdir()}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample.build(tmp_path_factory.mktemp("sample") / "warehouse.sqlite")


@pytest.fixture(scope="module")
def database(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    yield connection
    connection.close()


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def test_stored_rows_are_the_same_everywhere(database: sqlite3.Connection) -> None:
    digest = hashlib.sha256()
    for table in schema.TABLES:
        for row in database.execute(f"SELECT * FROM {table} ORDER BY rowid"):
            digest.update(f"{table}{row!r}\n".encode())
    assert digest.hexdigest() == CONTENT, "rows changed: raise warehouse.EDITION, then pin anew"


def test_row_counts(database: sqlite3.Connection) -> None:
    counts = {t: database.execute(f"SELECT COUNT(*) FROM {t}").fetchone()[0] for t in COUNTS}
    assert counts == COUNTS
    assert set(schema.TABLES) == set(COUNTS)


def test_another_seed_gives_other_rows() -> None:
    assert warehouse.rows(8)["orders"][:50] != warehouse.rows(7)["orders"][:50]


def test_declared_keys_hold(database: sqlite3.Connection) -> None:
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize(
    ("table", "column", "target"),
    [
        ("internal_accounts", "customer_id", "customers"),
        ("support_tickets", "order_id", "orders"),
    ],
)
def test_undeclared_references_hold(
    database: sqlite3.Connection, table: str, column: str, target: str
) -> None:
    declared = {row[3] for row in database.execute(f"PRAGMA foreign_key_list({table})")}
    assert column not in declared
    orphans = f"""SELECT COUNT(*) FROM {table} WHERE {column} IS NOT NULL
                  AND {column} NOT IN (SELECT {column} FROM {target})"""
    assert database.execute(orphans).fetchone() == (0,)


@pytest.mark.parametrize(
    ("claim", "exceptions"),
    [
        (
            "payments of paid orders, in cents, add up to the order's total",
            """SELECT t.order_id FROM order_totals t JOIN orders o USING (order_id)
               JOIN payments p USING (order_id) WHERE o.status IN (20, 30, 40)
               GROUP BY t.order_id HAVING SUM(p.amount) <> ROUND(100 * t.order_total)""",
        ),
        (
            "payments of cancelled orders add up to nothing",
            """SELECT order_id FROM orders JOIN payments USING (order_id) WHERE status = 90
               GROUP BY order_id HAVING SUM(amount) <> 0""",
        ),
        (
            "store orders, and only they, name a store and are handed over at once",
            """SELECT order_id FROM orders WHERE (channel = 'S') <> (store_id IS NOT NULL)
               OR channel = 'S' AND (delivered_at <> placed_at OR shipped_at IS NOT NULL)""",
        ),
        (
            "nobody orders before joining",
            """SELECT order_id FROM orders JOIN customers USING (customer_id)
               WHERE placed_at < created_at""",
        ),
        (
            "stores sell only while open",
            """SELECT order_id FROM orders JOIN stores USING (store_id)
               WHERE date(placed_at) < opened_on OR date(placed_at) >= closed_on""",
        ),
        (
            "products are sold only while on sale",
            """SELECT product_id FROM order_items JOIN orders USING (order_id)
               JOIN products USING (product_id)
               WHERE date(placed_at) < launched_on OR date(placed_at) >= discontinued_on""",
        ),
        (
            "no more comes back than was sold, and only after delivery",
            """SELECT return_id FROM returns r JOIN order_items i USING (order_id, line_no)
               JOIN orders o USING (order_id) WHERE r.quantity > i.quantity
               OR r.returned_on <= date(o.delivered_at) OR o.status <> 40""",
        ),
        (
            "active and paused subscriptions go on, all others have ended",
            """SELECT subscription_id FROM subscriptions
               WHERE (status IN ('A', 'P')) <> (ended_on IS NULL)""",
        ),
        (
            "a switched subscription is followed by another on the same day",
            """SELECT subscription_id FROM subscriptions s WHERE status = 'X' AND NOT EXISTS (
               SELECT 1 FROM subscriptions n WHERE n.customer_id = s.customer_id
               AND n.started_on = s.ended_on AND n.plan_code <> s.plan_code)""",
        ),
        (
            "a ticket is about an order of the same customer",
            """SELECT ticket_id FROM support_tickets t JOIN orders o USING (order_id)
               WHERE t.customer_id <> o.customer_id""",
        ),
        (
            "nothing happens after the snapshot",
            """SELECT MAX(placed_at, COALESCE(delivered_at, '')) AS last FROM orders
               WHERE last >= '2025-07-01'""",
        ),
    ],
)
def test_what_the_documents_say_is_so(
    database: sqlite3.Connection, claim: str, exceptions: str
) -> None:
    assert database.execute(exceptions).fetchall() == [], claim


def test_second_build_is_instant_and_leaves_the_file_alone(path: Path) -> None:
    before = path.stat()
    start = time.perf_counter()
    assert sample.build(path) == path
    assert time.perf_counter() - start < 2
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert path.stat().st_ino == before.st_ino


def test_build_replaces_another_seed_and_leaves_no_scraps(tmp_path: Path) -> None:
    target = tmp_path / "new" / "w.sqlite"
    first = sample.build(target, seed=1).read_bytes()
    assert sample.build(target, seed=2).read_bytes() != first
    assert [entry.name for entry in target.parent.iterdir()] == ["w.sqlite"]


@pytest.mark.parametrize("kind", ["text", "database", "folder"])
def test_build_leaves_what_is_not_its_own(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "mine"
    if kind == "text":
        target.write_text("my notes")
    elif kind == "database":
        with sqlite3.connect(target) as connection:
            connection.execute("CREATE TABLE t (x)")
        connection.close()
    else:
        target.mkdir()
    before = target.read_bytes() if target.is_file() else None
    with pytest.raises(BadInput, match="left alone"):
        sample.build(target)
    assert before == (target.read_bytes() if target.is_file() else None)


def test_splits_and_difficulties() -> None:
    tags = Counter((question["split"], question["difficulty"]) for question in EVERY)
    assert tags == {
        (split, level): share * size
        for split, size in (("train", 12), ("val", 4), ("test", 4))
        for level, share in (("easy", 2), ("medium", 2), ("hard", 1))
    }
    assert len({question["id"] for question in EVERY}) == 100
    assert sum(bool(question["needs_docs"]) for question in EVERY) >= 30


@pytest.mark.parametrize("question", EVERY, ids=lambda question: question["id"])
def test_gold_runs_and_says_something(
    database: sqlite3.Connection, question: sample.Question
) -> None:
    assert question["gold_sql"]
    for gold in question["gold_sql"]:
        rows = database.execute(gold).fetchall()
        assert 1 <= len(rows) < 200
        assert all(value is not None for row in rows for value in row)
        assert rows != [(0,)]
        assert len(rows) == 1 or "ORDER BY" in gold


def test_golds_keep_their_result_and_order_however_rows_are_visited(
    database: sqlite3.Connection,
) -> None:
    for question in EVERY:
        for gold in question["gold_sql"]:
            usual = database.execute(gold).fetchall()
            database.execute("PRAGMA reverse_unordered_selects = ON")
            turned = database.execute(gold).fetchall()
            database.execute("PRAGMA reverse_unordered_selects = OFF")
            assert turned == usual, question["id"]


def test_golds_of_different_questions_differ(database: sqlite3.Connection) -> None:
    owner: dict[frozenset[object], str] = {}
    texts: dict[str, str] = {}
    for question in EVERY:
        for gold in question["gold_sql"]:
            result = frozenset(database.execute(gold).fetchall())
            assert owner.setdefault(result, question["id"]) == question["id"]
            assert texts.setdefault(gold, question["id"]) == question["id"]


def test_no_near_duplicates_between_splits() -> None:
    for first, second in combinations(EVERY, 2):
        if first["split"] != second["split"]:
            one, other = words(first["question"]), words(second["question"])
            assert len(one & other) / len(one | other) < 0.8, (first["id"], second["id"])


def test_pages_that_questions_need_exist() -> None:
    for question in EVERY:
        assert set(question["needs_docs"]) <= set(PAGES), question["id"]


@pytest.mark.parametrize("question", EVERY, ids=lambda question: question["id"])
def test_every_code_of_a_gold_is_explained(question: sample.Question) -> None:
    known = question["evidence"] + "".join(PAGES[name] for name in question["needs_docs"])
    for gold in question["gold_sql"]:
        codes = re.findall(r"'([A-Z]\d{0,2}|[A-Z]{2})'", re.sub(r"'Q' \|\|", "", gold))
        numbers = re.findall(r"(?:status|priority) (?:= |IN \()([\d, ]+)", gold)
        for code in codes + re.findall(r"\d+", ",".join(numbers)):
            assert re.search(rf"\b{code}\b", known), code


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("orders", "channel"),
        ("orders", "status"),
        ("subscriptions", "status"),
        ("plans", "plan_code"),
        ("payments", "method"),
        ("customers", "loyalty_tier"),
        ("returns", "reason"),
        ("support_tickets", "priority"),
    ],
)
def test_every_stored_code_is_in_the_documents(
    database: sqlite3.Connection, table: str, column: str
) -> None:
    codes = f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL"
    text = PAGES["glossary"] + PAGES["returns"]
    for (code,) in database.execute(codes):
        assert re.search(rf"(?:\| |, |^){code}(?: \||,| is)", text, re.MULTILINE), code


def test_links_between_pages_lead_somewhere() -> None:
    links = [target for text in PAGES.values() for target in re.findall(r"\]\(([^)]+)\)", text)]
    assert links
    assert {Path(target).stem for target in links} <= set(PAGES)


def test_load_gives_examples_whose_golds_are_no_inputs(path: Path) -> None:
    examples = sample.load("test", path)
    assert len(examples) == 20
    first = examples[0]
    assert not {"gold_sql", "needs_docs", "difficulty"} & set(first.inputs().keys())
    assert {"question", "evidence"} <= set(first.inputs().keys())
    assert isinstance(first.gold_sql, tuple)
    assert (first.database, first.dialect) == (str(path), "sqlite")
    assert {Path(page).stem for page in first.documents} == set(PAGES)


def test_unknown_split_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="train, val, test"):
        sample.load("dev")


def test_the_shared_protocol_builds_in_the_run_folder(tmp_path: Path) -> None:
    (first, *_) = benchmark.load(Path("nowhere"), "val", tmp_path)
    assert Path(first.database).parent == tmp_path
    assert Path(first.database).is_file()
    assert benchmark.questions_file(Path("nowhere"), "val").is_file()
    assert benchmark.describe(Path("nowhere"), "warehouse") == {}


def test_default_path_follows_lynx_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LYNX_HOME", str(tmp_path))
    assert sample.default_path() == tmp_path / "sample" / "warehouse.sqlite"


def test_demo_questions_are_test_questions_of_three_kinds() -> None:
    chosen = {q["id"]: q for q in sample.questions("test") if q["id"] in sample.DEMO_QUESTIONS}
    plain, coded, joined = (chosen[name] for name in sample.DEMO_QUESTIONS)
    assert plain["difficulty"] == "easy" and not plain["needs_docs"]
    assert "glossary" in coded["needs_docs"]
    assert "JOIN" in joined["gold_sql"][0] and "GROUP BY" in joined["gold_sql"][0]


def test_importing_and_building_need_no_heavy_package(tmp_path: Path) -> None:
    code = f"""
import sys
from lynx_dspy.datasets import sample
sample.build({str(tmp_path / "w.sqlite")!r})
sample.questions("test")
print({{"dspy", "torch", "pandas", "duckdb", "numpy", "sqlglot"}} & set(sys.modules))
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "1"},
    )
    assert run.stdout.strip() == "set()"


def test_repository_share_is_small() -> None:
    folder = Path(sample.__file__).parent
    files = [*folder.glob("*.py"), *folder.glob("*.jsonl"), *folder.glob("docs/*.md")]
    assert sum(file.stat().st_size for file in files) < 200_000


def test_a_disk_that_fills_up_is_one_line_and_leaves_no_file(tmp_path: Path) -> None:
    code = (
        "import resource, signal, sys\n"
        "from lynx_dspy.datasets.sample import build\n"
        "from lynx_dspy.errors import BadInput\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "try:\n"
        "    build(sys.argv[1])\n"
        "except BadInput as error:\n"
        "    print(error)\n"
    )
    target = tmp_path / "sample.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", code, str(target)], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith(f"Cannot build {target}: "), done.stderr
    assert list(tmp_path.iterdir()) == []

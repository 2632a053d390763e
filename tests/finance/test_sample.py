from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lynx_dspy as lynx
from lynx_dspy.cli import main
from lynx_dspy.errors import BadInput
from lynx_dspy.finance.panel import Panel
from lynx_dspy.finance.sample import COLUMNS, sample_frames, write_sample


def digest(folder: Path) -> str:
    held = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        held.update(file.read_bytes())
    return held.hexdigest()


def test_a_seed_gives_the_same_bytes_and_another_one_others(tmp_path: Path) -> None:
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        write_sample(tmp_path / name, stocks=6, dates=60, seed=seed)
    a, b, c = (digest(tmp_path / name) for name in "abc")
    assert a == b != c


def test_the_columns_are_the_33_that_are_described() -> None:
    frames = sample_frames(stocks=4, dates=30)
    described = {column for columns in COLUMNS.values() for column in columns}
    assert {column for frame in frames.values() for column in frame.columns} == described
    assert len(described) == 33
    assert all(set(COLUMNS[name]) <= set(frame.columns) for name, frame in frames.items())


def test_prices_are_those_of_a_market(panel: Panel) -> None:
    opened, high, low, close = (panel.field(name) for name in ("open", "high", "low", "close"))
    there = ~np.isnan(close)
    assert (high[there] >= np.maximum(opened, close)[there]).all()
    assert (low[there] <= np.minimum(opened, close)[there]).all()
    vwap = panel.field("vwap")[there]
    assert ((vwap >= low[there] - 0.01) & (vwap <= high[there] + 0.01)).all()
    assert 0.9 < there.mean() < 1
    assert np.isnan(panel.field("volume")[~there]).all()
    returns = panel.field("returns")[there]
    assert 0.01 < returns.std() < 0.04
    assert np.abs(returns).max() < 0.25
    calm, moved = np.abs(panel.field("returns"))[:-1], np.abs(panel.field("returns"))[1:]
    both = np.isfinite(calm) & np.isfinite(moved)
    assert np.corrcoef(calm[both], moved[both])[0, 1] > 0.05  # volatility clusters


def test_a_split_halves_the_price_and_leaves_the_returns_alone() -> None:
    prices = sample_frames(stocks=20, dates=1_500, seed=2)["prices"]
    prices["before"] = prices.groupby("code")["adj_factor"].ffill().groupby(prices["code"]).shift()
    prices["last"] = prices.groupby("code")["close"].ffill().groupby(prices["code"]).shift()
    splits = prices[(prices["adj_factor"] == 2 * prices["before"]) & prices["last"].notna()]
    assert len(splits) > 3
    assert (splits["close"] / splits["last"] - 0.5).abs().max() < 0.1
    assert splits["returns"].abs().max() < 0.15


def test_the_folder_opens_as_a_database(market: Path) -> None:
    with lynx.connect(market) as database:
        rows = database.query("SELECT count(*), count(DISTINCT code) FROM prices")
        typed = database.query("SELECT typeof(date), typeof(close) FROM prices LIMIT 1")
    assert rows == [(40 * 320, 40)]
    assert typed == [("DATE", "DOUBLE")]


def test_the_command_writes_a_panel_and_names_its_pages(tmp_path: Path, capsys: Any) -> None:
    called = ["sample", "--finance", str(tmp_path), "--stocks", "3", "--dates", "20"]
    assert main(called) == 0
    said = capsys.readouterr().out.splitlines()
    assert [Path(line).name for line in said] == [
        *(f"{n}.csv" for n in COLUMNS),
        "pack",
        "glossary.csv",
    ]
    assert all(Path(line).exists() for line in said)
    assert main([*called, "--out", "x.sqlite"]) == 2


def test_a_panel_of_nothing_is_told() -> None:
    with pytest.raises(BadInput, match="got 0 and 5"):
        sample_frames(stocks=0, dates=5)

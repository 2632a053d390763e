"""A seeded panel of invented stocks, as frames and as CSV files: 33 columns (`COLUMNS`).

Prices walk geometrically: a market and a sector factor and a part of their own, each with a
volatility that clusters (GARCH(1, 1) in steps of a day). Now and then a stock splits or is
suspended; three stocks are listed late. Draws come from NumPy's `RandomState`, whose sequences
never change, and values are rounded as they are made: a seed gives the same bytes everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
from numpy.random import RandomState

from lynx_dspy.errors import BadInput
from lynx_dspy.finance.windows import Wide

COLUMNS: dict[str, dict[str, str]] = {
    "prices": {
        "date": "trading day",
        "code": "stock",
        "open": "first price of the day",
        "high": "highest price of the day",
        "low": "lowest price of the day",
        "close": "last price of the day, not adjusted for splits",
        "pre_close": "last price of the trading day before, adjusted for a split of today",
        "volume": "shares traded",
        "amount": "money traded",
        "vwap": "amount / volume",
        "returns": "close / pre_close - 1, so splits and suspensions do not disturb it",
        "trades": "number of trades",
        "turnover": "volume / float_shares",
        "adj_factor": "what close is multiplied by to be comparable over splits",
    },
    "valuation": {
        "total_shares": "shares issued",
        "float_shares": "shares that can be traded",
        "cap": "close * total_shares, the market capitalization",
        "float_cap": "close * float_shares",
        "pe": "price to earnings of the last year",
        "pb": "price to book value",
        "ps": "price to sales of the last year",
        "dividend_yield": "dividends of the last year by price",
    },
    "flows": {
        "large_buy": "money of large buy orders",
        "large_sell": "money of large sell orders",
        "net_inflow": "large_buy - large_sell",
        "margin_balance": "money lent to buyers",
        "short_volume": "shares sold short",
    },
    "stocks": {
        "name": "company",
        "market": "market that the stock is listed on",
        "sector": "widest class (IndClass.sector)",
        "industry": "class within the sector (IndClass.industry)",
        "subindustry": "class within the industry (IndClass.subindustry)",
        "list_date": "first trading day",
    },
}
"""The columns by file; those after `prices` have `code` too, and `date` but for `stocks`."""

_SECTORS = ("Energy", "Industry", "Consumer", "Finance", "Technology")
_FIRST = "2010-01-04"


@dataclass(frozen=True, slots=True, eq=False)
class _Walk:
    """Arrays of shape (dates, stocks) that all columns follow from."""

    returns: Wide
    close: Wide
    factor: Wide
    trading: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    heat: Wide


def sample_frames(stocks: int = 100, dates: int = 3_900, seed: int = 7) -> dict[str, pd.DataFrame]:
    """The frames of the sample by file name: `prices`, `valuation`, `flows`, `stocks`.

    The first three have a row a date and stock, in this order; cells of days without trading are
    NaN. Raises `BadInput` for a panel without stocks or dates.
    """
    if stocks < 1 or dates < 1:
        raise BadInput(f"A panel has stocks and dates; got {stocks} and {dates}.")
    days = pd.bdate_range(_FIRST, periods=dates)
    codes = [f"S{number:04d}" for number in range(1, stocks + 1)]
    walk = _walk(RandomState(seed), dates, stocks)
    prices = _prices(RandomState(seed + 1), walk)
    keys = {"date": np.repeat(days, stocks), "code": np.tile(codes, dates)}
    float_shares = prices.pop("float_shares")
    parts = {
        "prices": prices,
        "valuation": _valuation(RandomState(seed + 2), walk, prices["close"], float_shares),
        "flows": _flows(RandomState(seed + 3), walk, prices["amount"], prices["volume"]),
    }
    frames = {
        name: pd.DataFrame(keys | {column: cells.ravel() for column, cells in part.items()})
        for name, part in parts.items()
    }
    return frames | {"stocks": _stocks(codes, days, walk)}


def write_sample(
    folder: str | Path, stocks: int = 100, dates: int = 3_900, seed: int = 7
) -> list[Path]:
    """Write the sample as CSV files, a file a group of columns. Raises `BadInput`, `OSError`."""
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = true")
        for name, frame in sample_frames(stocks, dates, seed).items():
            written.append(root / f"{name}.csv")
            dated = [c for c in ("date", "list_date") if c in frame.columns]
            casts = ", ".join(f"CAST({column} AS DATE) AS {column}" for column in dated)
            connection.register("frame", frame)
            relation = connection.sql(f"SELECT * REPLACE ({casts}) FROM frame")
            relation.write_csv(str(written[-1]), header=True)
    return written


def _walk(dice: RandomState, dates: int, stocks: int) -> _Walk:
    sector = np.arange(stocks) % len(_SECTORS)
    market = _clustered(dice, dates, 1, 0.009)
    sectors = _clustered(dice, dates, len(_SECTORS), 0.006)[:, sector]
    beta = 0.6 + 0.8 * dice.random_sample(stocks)
    own = _clustered(dice, dates, stocks, 0.016)
    returns = np.clip(0.0002 + beta * market + sectors + own, -0.1, 0.1)
    trading = _trading(dice, dates, stocks)
    returns[~trading] = 0.0
    splits = np.where(trading & (dice.random_sample((dates, stocks)) < 0.0004), 2.0, 1.0)
    splits[0] = 1.0
    factor: Wide = np.cumprod(splits, axis=0, dtype=np.float64)
    start = np.exp(2.2 + 0.8 * dice.standard_normal(stocks))
    close = np.round(start * np.exp(np.cumsum(np.log1p(returns), axis=0)) / factor, 2)
    heat = np.abs(own) / 0.016
    return _Walk(returns, np.maximum(close, 0.05), factor, trading, heat)


def _clustered(dice: RandomState, dates: int, columns: int, level: float) -> Wide:
    """Daily returns whose variance follows the squares of those before it, around `level`²."""
    shocks = dice.standard_normal((dates, columns))
    out = np.empty_like(shocks)
    variance = np.full(columns, level**2)
    for day in range(dates):
        out[day] = np.sqrt(variance) * shocks[day]
        variance = 0.05 * level**2 + 0.10 * out[day] ** 2 + 0.85 * variance
    return out


def _trading(
    dice: RandomState, dates: int, stocks: int
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Where stocks trade: spells of suspension of 1 to 20 days, and late listings."""
    trading = np.ones((dates, stocks), dtype=np.bool_)
    begins = dice.random_sample((dates, stocks)) < 0.0008
    lengths = dice.randint(1, 21, size=(dates, stocks))
    for day, stock in zip(*np.nonzero(begins), strict=True):
        trading[day : day + lengths[day, stock], stock] = False
    for late, stock in enumerate(range(4, stocks, max(5, stocks // 3)), 1):
        trading[: dates * late // 8, stock] = False
    return trading


def _prices(dice: RandomState, walk: _Walk) -> dict[str, Wide]:
    shape = walk.close.shape
    close = np.where(walk.trading, walk.close, np.nan)
    before = pd.DataFrame(close * walk.factor).ffill().shift(1).to_numpy() / walk.factor
    pre_close = np.round(np.where(np.isnan(before), close, before), 4)
    gap = 0.004 * dice.standard_normal(shape)
    opened = np.maximum(np.round(pre_close * np.exp(gap), 2), 0.05)
    reach = 0.008 * np.abs(dice.standard_normal((2, *shape)))
    high = np.round(np.maximum(opened, close) * (1 + reach[0]), 2)
    low = np.maximum(np.round(np.minimum(opened, close) * (1 - reach[1]), 2), 0.01)
    float_shares = np.round(np.exp(17.5 + dice.standard_normal(shape[1])), -2) * walk.factor
    share = 0.01 * np.exp(0.35 * walk.heat + 0.5 * dice.standard_normal(shape))
    volume = np.round(np.minimum(share, 0.3) * float_shares, -2)
    middle = (opened + high + low + close) / 4
    amount = np.round(volume * np.clip(middle, low, high), 2)
    volume = np.where(walk.trading, np.maximum(volume, 100.0), np.nan)
    return {
        "open": opened,
        "high": high,
        "low": low,
        "close": close,
        "pre_close": pre_close,
        "volume": volume,
        "amount": amount,
        "vwap": np.round(amount / volume, 4),
        "returns": np.round(close / pre_close - 1, 6),
        "trades": np.round(volume / (200 + 50 * dice.random_sample(shape))) + 1,
        "turnover": np.round(volume / float_shares, 6),
        "adj_factor": np.where(walk.trading, walk.factor, np.nan),
        "float_shares": float_shares,
    }


def _valuation(dice: RandomState, walk: _Walk, close: Wide, floating: Wide) -> dict[str, Wide]:
    stocks = close.shape[1]
    total = np.round(floating * (1.2 + dice.random_sample(stocks)), -2)
    adjusted = close * walk.factor
    usual = np.nanmean(adjusted, axis=0)
    there = np.where(walk.trading, 1.0, np.nan)

    def multiple(least: float, spread: float) -> Wide:
        cells: Wide = np.round(adjusted / usual * (least + spread * dice.random_sample(stocks)), 2)
        return cells

    return {
        "total_shares": total * there,
        "float_shares": floating * there,
        "cap": np.round(close * total, 0),
        "float_cap": np.round(close * floating, 0),
        "pe": multiple(8, 30),
        "pb": multiple(0.8, 4),
        "ps": multiple(0.5, 6),
        "dividend_yield": np.round(usual / adjusted * 0.04 * dice.random_sample(stocks), 4),
    }


def _flows(dice: RandomState, walk: _Walk, amount: Wide, volume: Wide) -> dict[str, Wide]:
    shape = amount.shape
    buying = np.round(amount * (0.1 + 0.2 * dice.random_sample(shape)), 0)
    selling = np.round(amount * (0.1 + 0.2 * dice.random_sample(shape)), 0)
    return {
        "large_buy": buying,
        "large_sell": selling,
        "net_inflow": buying - selling,
        "margin_balance": np.round(amount * (1 + 2 * dice.random_sample(shape)), 0),
        "short_volume": np.round(volume * 0.05 * dice.random_sample(shape), -2),
    }


def _stocks(codes: list[str], days: pd.DatetimeIndex, walk: _Walk) -> pd.DataFrame:
    number = np.arange(len(codes))
    sector = [_SECTORS[n % len(_SECTORS)] for n in number]
    industry = [f"{name} {'AB'[n // 5 % 2]}" for name, n in zip(sector, number, strict=True)]
    return pd.DataFrame(
        {
            "code": codes,
            "name": [f"Company {code[1:]}" for code in codes],
            "market": ["Main" if n % 4 else "Growth" for n in number],
            "sector": sector,
            "industry": industry,
            "subindustry": [
                f"{name}{n // 10 % 2 + 1}" for name, n in zip(industry, number, strict=True)
            ],
            "list_date": days[walk.trading.argmax(axis=0)],
        }
    )

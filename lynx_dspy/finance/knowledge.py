"""The finance knowledge: pages of definitions and a glossary of formulas (paper, V-A and VII-E2).

The pages say what inputs, windows and operators mean; their folder serves as documents (`--docs`)
and, being frozen, as a pack (`--pack`). The glossary is made here of the formulas and of what their
parts mean, so that one look-up of an alpha gives all that it needs. A glossary finds `Alpha#36` by
rule: to an embedder a hundred formulas look alike.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from lynx_dspy.finance.alphas import formulas
from lynx_dspy.finance.catalogue import FUNCTIONS
from lynx_dspy.finance.evaluation import fields_of, functions_of
from lynx_dspy.grounding.documents import Choice, Documents
from lynx_dspy.grounding.glossary import Glossary

RECIPES = {
    "rank": "x.rank(axis=1, pct=True)",
    "scale": "x.div(x.abs().sum(axis=1), axis=0)",
    "indneutralize": 'x - x.T.groupby(g).transform("mean").T',
    "delay": "x.shift(d)",
    "delta": "x - x.shift(d)",
    "correlation": "x.rolling(d).corr(y)",
    "covariance": "x.rolling(d).cov(y)",
    "stddev": "x.rolling(d).std()",
    "sum": "x.rolling(d).sum()",
    "product": "x.rolling(d).apply(np.prod, raw=True)",
    "decay_linear": "sum((d - k) * x.shift(k) for k in range(d)) * 2 / (d * (d + 1))",
    "ts_min": "x.rolling(d).min()",
    "ts_max": "x.rolling(d).max()",
    "ts_argmin": "x.rolling(d).apply(np.argmin, raw=True) + 1",
    "ts_argmax": "x.rolling(d).apply(np.argmax, raw=True) + 1",
    "ts_rank": "x.rolling(d).rank(pct=True)",
    "min": "np.minimum(x, y)",
    "max": "np.maximum(x, y)",
    "signedpower": "np.sign(x) * x.abs() ** a",
    "log": "np.log(x)",
    "abs": "x.abs()",
    "sign": "np.sign(x)",
}
"""K_syn of the operators: each as a pandas expression on wide frames (dates by codes)."""

_INPUTS = {
    "returns": "the column returns, else close / close.shift(1) - 1",
    "vwap": "the column vwap, else amount / volume",
    "adv20": "mean money traded of 20 dates, amount.rolling(20).mean()",
    "cap": "market capitalization, close times shares issued",
    "indclass.sector": "the column sector of the stocks, by code",
    "indclass.industry": "the column industry of the stocks, by code",
    "indclass.subindustry": "the column subindustry of the stocks, by code",
}
_PLAIN_WORDS = frozenset({"min", "max", "sum", "abs", "log", "sign", "scale", "product"})
"""Operators whose names are words of many questions."""

_PIVOT = 'prices.pivot(index="date", columns="code", values=name)'


def pack_path() -> Path:
    """The folder of the pages, with their manifest."""
    return Path(str(files("lynx_dspy.finance") / "pack"))


def glossary_path() -> Path:
    """The file of the glossary."""
    return Path(str(files("lynx_dspy.finance") / "glossary.csv"))


def documents(embedder: Choice = "default") -> Documents:
    """The pages as documents that can be searched."""
    pages = {page.name: page.read_text("utf-8") for page in sorted(pack_path().glob("*.md"))}
    return Documents.from_texts(pages, embedder=embedder)


def glossary() -> Glossary:
    """The alphas and the operators as terms with their definitions.

    >>> glossary().terms_in("Compute Alpha#36 for every stock")
    ('Alpha#36',)
    """
    return Glossary.open(glossary_path())


def definitions() -> dict[str, str]:
    """What `glossary.csv` holds: each alpha with its operators and inputs, and each operator."""
    found = {f"Alpha#{number}": _alpha(formula) for number, formula in formulas().items()}
    operators = {name: _operator(name) for name in FUNCTIONS if name not in _PLAIN_WORDS}
    return found | operators | {name: _INPUTS[name] for name in ("vwap", "adv20")}


def _alpha(formula: str) -> str:
    """The formula, then its operators and inputs on tables of dates by stocks."""
    called = functions_of(formula)
    named = sorted(fields_of(formula))
    operators = [_operator(name) for name in FUNCTIONS if name in called]
    plain = [name for name in named if name not in _INPUTS and not name.startswith("adv")]
    parts = [f"{formula}, one value a date and code.", *_section("Operators", operators)]
    parts += (
        [f"Inputs: {', '.join(plain)} as tables of dates by codes, `{_PIVOT}`;"] if plain else []
    )
    return " ".join([*parts, "; ".join(_input(name) for name in named if name not in plain)]).strip(
        " ;"
    )


def _section(title: str, lines: list[str]) -> list[str]:
    return [f"{title}: {'; '.join(lines)}."] if lines else []


def _operator(name: str) -> str:
    operator = FUNCTIONS[name]
    return f"{operator.usage} is {operator.meaning}, `{RECIPES[name]}`"


def _input(name: str) -> str:
    if name.startswith("adv"):
        return f"{name} is mean money traded, `amount.rolling({name[3:]}).mean()`"
    return f"{name} is {_INPUTS[name]}"

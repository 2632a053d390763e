from __future__ import annotations

import csv
import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from lynx_dspy.finance import knowledge
from lynx_dspy.finance.alphas import alpha, formula
from lynx_dspy.finance.catalogue import FUNCTIONS
from lynx_dspy.finance.evaluation import evaluate, fields_of, functions_of
from lynx_dspy.finance.panel import Panel
from lynx_dspy.grounding import packs

NEEDED = ("rank", "correlation", "ts_rank", "delay", "vwap", "adv20")
ACROSS = "across stocks"
EXAMPLE = re.compile(
    rf"Example(?: of (?P<name>\w+))? (?P<way>over dates|{ACROSS}): (?P<given>.+) gives (?P<got>.+)"
)


def examples() -> Iterator[tuple[str, str, str, str]]:
    text = (knowledge.pack_path() / "operators.md").read_text("utf-8")
    for section in text.split("\n## ")[1:]:
        for found in EXAMPLE.finditer(section):
            yield found["name"] or section.split("(")[0], found["way"], found["given"], found["got"]


def numbers(text: str) -> list[float]:
    return [np.nan if cell == "-" else float(cell) for cell in text.split()]


def test_the_glossary_is_made_of_the_formulas() -> None:
    with knowledge.glossary_path().open(encoding="utf-8", newline="") as file:
        held = dict(list(csv.reader(file))[1:])
    assert held == knowledge.definitions()


def test_the_pages_are_frozen_as_a_pack() -> None:
    assert {page.file for page in packs.verify(knowledge.pack_path())} == {
        "conventions.md",
        "inputs.md",
        "operators.md",
    }
    assert packs.Pack.open(knowledge.pack_path()).look_up("indneutralize")


@pytest.mark.parametrize("question", ["compute Alpha#36 of all stocks", "Alpha 36 by date, please"])
def test_a_question_for_an_alpha_finds_its_formula_and_all_that_it_needs(question: str) -> None:
    glossary = knowledge.glossary()
    (term,) = glossary.terms_in(question)
    (found,) = glossary.look_up(term)
    assert formula(36) in found.text
    for name in NEEDED:
        assert re.search(rf"\b{name}(\([a-z, ]+\))? is ", found.text), name


def test_a_question_that_spells_a_formula_finds_its_operators_in_both() -> None:
    question = "Mean of rank(correlation(delay(vwap, 1), adv20, 6)) + Ts_Rank(close, 5)?"
    assert set(NEEDED) <= set(knowledge.glossary().terms_in(question))
    headings = {p.heading for p in knowledge.documents(embedder=None).retrieve(question, k=12)}
    for name in NEEDED:
        assert any(name in heading for heading in headings), name


def test_each_operator_and_input_has_its_section() -> None:
    headings = " ".join(p.heading for p in knowledge.documents(embedder=None).passages)
    for name in FUNCTIONS:
        assert f"{name}(x" in headings
    for name in ("vwap", "adv20", "returns", "cap", "IndClass"):
        assert name in headings


@pytest.mark.parametrize(("name", "way", "given", "got"), examples())
def test_each_example_of_the_pages_is_right(name: str, way: str, given: str, got: str) -> None:
    parts = dict(part.split(" = ") for part in given.split(", "))
    frames, classes = {}, {}
    for letter in set(parts) & {"x", "y"}:
        cells = numbers(parts[letter])
        frames[letter] = pd.DataFrame([cells] if way == ACROSS else [[cell] for cell in cells])
        frames[letter].index = pd.bdate_range("2024-01-01", periods=len(frames[letter]))
    if "g" in parts:
        classes["g"] = pd.Series(dict(zip("012", parts["g"].split(), strict=True)))
    arguments = [key if key in ("x", "y", "g") else parts[key] for key in parts]
    panel = Panel.from_wide(frames, classes)
    found = evaluate(f"{name}({', '.join(arguments)})", panel).to_numpy().ravel()
    assert np.allclose(found, numbers(got), atol=5e-4, equal_nan=True)


@pytest.mark.parametrize("name", knowledge.RECIPES)
def test_each_recipe_in_pandas_computes_its_operator(name: str, panel: Panel) -> None:
    frames = {letter: panel.frame(panel.field(f)) for letter, f in (("x", "close"), ("y", "open"))}
    groups = pd.Series(panel.groups("sector")[0], index=panel.codes)
    values = {"d": 4, "a": 1.5 if name == "signedpower" else 1.0, "g": groups, "np": np, "pd": pd}
    expected = eval(knowledge.RECIPES[name], {**frames, **values})
    usage = FUNCTIONS[name].usage
    for letter, argument in (("x", "close"), ("y", "1.5" if name == "signedpower" else "open")):
        usage = re.sub(rf"\b{letter}\b", argument, usage)
    usage = re.sub(r"\bd\b", "4", re.sub(r"\ba\b", "1", usage.replace(" g)", " IndClass.sector)")))
    got = evaluate(usage, panel)
    assert np.allclose(got, expected, rtol=1e-6, atol=1e-6, equal_nan=True)


def test_every_alpha_is_defined_with_all_its_parts() -> None:
    held = knowledge.definitions()
    for number in range(1, 102):
        text = held[f"Alpha#{number}"]
        assert formula(number) in text
        assert all(f"{name}(" in text for name in functions_of(formula(number)))
        assert all(name in text for name in fields_of(formula(number)))


def test_the_case_of_the_paper_is_there(panel: Panel) -> None:
    assert alpha(36, panel).notna().iloc[-1].mean() > 0.5

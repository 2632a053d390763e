from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lynx_dspy.errors import LynxError
from lynx_dspy.finance.alphas import formulas
from lynx_dspy.finance.formula import (
    MAX_CHARS,
    MAX_DEPTH,
    MAX_NESTING,
    Call,
    FormulaError,
    Name,
    Node,
    Number,
    parse,
)

PIECES = st.sampled_from([*"+-*/^<>?:(),.&|=!", "||", "<=", "rank(", "close", "adv20", "1.5", " "])


def shown(node: Node) -> str:
    """The tree with a parenthesis round each call."""
    if isinstance(node, Number):
        return f"{node.value:g}"
    if isinstance(node, Name):
        return node.name
    return f"({' '.join([node.function, *map(shown, node.arguments)])})"


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a - b - c", "(- (- a b) c)"),
        ("a + b * c ^ 2", "(+ a (* b (^ c 2)))"),
        ("-a ^ 2", "(neg (^ a 2))"),
        ("a ^ -b ^ c", "(^ a (neg (^ b c)))"),
        ("2 ^ 3 ^ 2", "(^ 2 (^ 3 2))"),
        ("a < b ? c : d ? e : f", "(? (< a b) c (? d e f))"),
        ("a || b && c == 1", "(|| a (&& b (== c 1)))"),
        ("Ts_Rank(Close, 2.) + TSRANK(x, .5)", "(+ (tsrank close 2) (tsrank x 0.5))"),
        ("indneutralize(vwap, IndClass . Sector)", "(indneutralize vwap indclass.sector)"),
        ("+ - + 1e-3", "(neg 0.001)"),
        ("f()", "(f)"),
    ],
)
def test_a_formula_binds_as_it_is_published(text: str, tree: str) -> None:
    assert shown(parse(text)) == tree


def test_equal_parts_are_equal_wherever_they_stand() -> None:
    tree = parse("delta(close, 1) + Delta( close , 1)")
    assert isinstance(tree, Call) and tree.arguments[0] == tree.arguments[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "column 1: a number, a name or '(' is missing. It is empty"),
        ("rank(close", "column 11: ')' is missing. After 'rank(close'"),
        ("rank(close))", "column 12: nothing can follow here, got ')'"),
        ("close close", "column 7: nothing can follow here, got 'close'"),
        ("a ? b", "column 6: ':' is missing"),
        ("a < b < c", "column 7: comparisons do not chain"),
        ("close; import os", "column 6: ';' is no sign of a formula"),
        ("1e999", "column 1: the number 1e999 is too large"),
        ("a = b", "column 3: '=' is no sign"),
        ("rank(,)", "column 6: a number, a name or '(' is missing, got ','"),
        ("(" * 5_000, f"nested deeper than {MAX_NESTING} levels"),
        ("-" * 5_000 + "1", f"nested deeper than {MAX_NESTING} levels"),
        ("2^" * 4_000 + "1", f"nested deeper than {MAX_NESTING} levels"),
        ("a?b:" * 2_000 + "1", f"nested deeper than {MAX_NESTING} levels"),
        ("1+" * 4_000 + "1", f"nested deeper than {MAX_DEPTH} levels"),
        ("1+" * MAX_CHARS, f"longer than {MAX_CHARS:,} characters"),
    ],
)
def test_a_bad_formula_says_where_and_what(text: str, said: str) -> None:
    with pytest.raises(FormulaError) as told:
        parse(text)
    assert said in str(told.value)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 200


@settings(max_examples=300)
@given(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=40).map("".join)))
@example("\x00")
@example("١٢")
def test_any_text_is_a_tree_or_a_formula_error(text: str) -> None:
    try:
        parse(text)
    except FormulaError as error:
        assert isinstance(error, LynxError)
        assert "\n" not in str(error)


@given(st.integers(1, 101), st.data())
def test_a_published_formula_that_lost_a_piece_never_crashes(
    number: int, data: st.DataObject
) -> None:
    formula = formulas()[number]
    cut = data.draw(st.integers(0, len(formula) - 1))
    try:
        parse(formula[:cut] + formula[cut + data.draw(st.integers(1, 5)) :])
    except FormulaError as error:
        assert "column" in str(error)

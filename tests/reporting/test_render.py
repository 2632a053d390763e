"""Text in a table stays in its cell, in each format; numbers read as they should."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lynx_dspy.errors import UnknownName
from lynx_dspy.metrics.intervals import Interval
from lynx_dspy.reporting.render import (
    comma_separated,
    escape_latex,
    latex,
    markdown,
    one_line,
    render,
)
from lynx_dspy.reporting.table import Column, Table

COLUMNS = (
    Column("Run", "run"),
    Column("EX %", "ex", "score"),
    Column("Tokens", "tokens", "count"),
    Column("p", "p", "p"),
)
TABLE = Table(
    "small",
    "EX & cost",
    COLUMNS,
    (("a|b_c", Interval(0.5, 0.25, 0.75, 12), 11200.4, 0.0004), ("other", None, 7, None)),
    ("Read 100% of it.",),
)

NASTY = st.text(alphabet=r"ab \|*_[]<>`~&$%#{}^'\"–—-!\n\t" + "\r\x00é", max_size=12)


def with_text(text: str) -> Table:
    return Table("t", "T", (Column("A", "a"), Column("B", "b")), ((text, "end"),))


def test_markdown_shows_scores_with_interval_and_n() -> None:
    assert markdown(TABLE).splitlines() == [
        "**EX \\& cost**",
        "",
        "| Run | EX % | Tokens | p |",
        "| --- | ---: | ---: | ---: |",
        "| a\\|b\\_c | 50.0 [25.0, 75.0] (12) | 11,200 | <0.001 |",
        "| other | – | 7 | – |",
        "",
        "Read 100% of it.",
    ]


def test_csv_holds_plain_numbers_and_four_columns_a_score() -> None:
    first, second = csv.DictReader(io.StringIO(comma_separated(TABLE)))
    assert first == {
        "run": "a|b_c",
        "ex": "0.5",
        "ex_low": "0.25",
        "ex_high": "0.75",
        "ex_n": "12",
        "tokens": "11200.4",
        "p": "0.0004",
    }
    assert second["ex_low"] == second["p"] == ""


def test_latex_is_a_booktabs_table() -> None:
    text = latex(TABLE)
    assert r"\caption{EX \& cost}" in text
    assert r"\begin{tabular}{lrrr}" in text
    assert r"a\textbar{}b\_c & 50.0 [25.0, 75.0] (12) & 11,200 & \textless{}0.001 \\" in text
    assert r"Read 100\% of it." in text


@given(NASTY)
def test_markdown_cells_read_as_they_were(text: str) -> None:
    html = MarkdownIt("commonmark").enable("table").render(markdown(with_text(text)))
    cells = re.findall(r"<td>(.*?)</td>", html)
    assert len(cells) == 2, html
    shown = cells[0].replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"')
    assert shown.replace("&amp;", "&") == one_line(text)


@given(st.text(max_size=20) | NASTY)
def test_csv_cells_read_as_they_were(text: str) -> None:
    written = io.StringIO(comma_separated(with_text(text)), newline="")
    assert list(csv.reader(written))[1] == [one_line(text), "end"]


@given(NASTY)
def test_latex_cells_read_as_they_were(text: str) -> None:
    assert _set_by_latex(escape_latex(text)) == one_line(text)


@given(NASTY)
def test_latex_rows_stay_rows(text: str) -> None:
    body = latex(with_text(text)).splitlines()
    row = body[body.index(r"    \midrule") + 1]
    assert body[body.index(r"    \midrule") + 2] == r"    \bottomrule"
    assert len(re.findall(r"(?<!\\)&", row)) == 1
    assert row.lstrip()[0] not in "[*"


def test_unknown_format_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"Unknown table format 'cvs'. Did you mean 'csv'\?"):
        render(TABLE, "cvs")


_COMMANDS = {
    r"\textbackslash{}": "\\",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    r"\textquotesingle{}": "'",
    r"\textasciigrave{}": "`",
    r"\symbol{34}": '"',
    "-{}": "-",
    r"\textendash{}": "–",
    r"\textemdash{}": "—",
    "{[}": "[",
    "{*}": "*",
} | {f"\\{sign}": sign for sign in "&%$#_{}"}


def _set_by_latex(source: str) -> str:
    """What LaTeX would set; fails for a sign that has a meaning of its own."""
    known = "|".join(re.escape(command) for command in _COMMANDS)
    tokens = re.findall(rf"{known}|.", source)
    for token in tokens:
        assert len(token) > 1 or token not in r"\&%$#_{}~^<>|'`" + '"', source
    assert "--" not in source
    return "".join(_COMMANDS.get(token, token) for token in tokens)

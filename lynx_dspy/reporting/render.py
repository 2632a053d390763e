"""A table as Markdown, CSV, LaTeX or JSON; text from files cannot break out of its cell."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator

from lynx_dspy.errors import UnknownName
from lynx_dspy.metrics.intervals import Interval
from lynx_dspy.reporting.table import Cell, Column, Table, shown

_BREAKING = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~&$])")
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    '"': r"\symbol{34}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "-": "-{}",
    "[": "{[}",
    "*": "{*}",
} | {sign: f"\\{sign}" for sign in "&%$#_{}"}
# Two hyphens would be a dash; a row that begins with [ or * would be an argument of the \\ before.
_LATEX_SIGN = re.compile(r"-(?=-)|^[\[*]|[\\~^<>|'`\"–—&%$#_{}]")


def one_line(text: str) -> str:
    """The text without line breaks and control characters: a cell is one line.

    >>> one_line("a\\r\\n b")
    'a b'
    """
    return _BREAKING.sub(" ", text).strip()


def escape_markdown(text: str) -> str:
    """Text that GitHub-flavoured Markdown shows as it is, also inside a table.

    >>> print(escape_markdown("a|b_c"))
    a\\|b\\_c
    """
    return _MARKDOWN.sub(r"\\\1", one_line(text))


def escape_latex(text: str) -> str:
    """Text that LaTeX sets as it is, also at the start of a table row.

    >>> print(escape_latex("100% of x_1"))
    100\\% of x\\_1
    """
    return _LATEX_SIGN.sub(lambda found: _LATEX[found[0]], one_line(text))


def markdown(table: Table) -> str:
    """A GitHub-flavoured pipe table under its title; numbers are set to the right."""
    rules = ["---" if c.unit == "text" else "---:" for c in table.columns]
    lines = [f"**{escape_markdown(table.title)}**", ""]
    lines.append(_pipes([escape_markdown(c.title) for c in table.columns]))
    lines.append(_pipes(rules))
    lines += [_pipes([_markdown_cell(*pair) for pair in _pairs(row, table)]) for row in table.rows]
    for note in table.notes:
        lines += ["", escape_markdown(note)]
    return "\n".join(lines) + "\n"


def latex(table: Table) -> str:
    """A `table` float for `booktabs`; the notes stand under the rules."""
    shape = "".join("l" if c.unit == "text" else "r" for c in table.columns)
    lines = [r"\begin{table}", r"  \centering", rf"  \caption{{{escape_latex(table.title)}}}"]
    lines += [rf"  \label{{tab:{table.name}}}", rf"  \begin{{tabular}}{{{shape}}}", r"    \toprule"]
    lines.append(_ampersands([escape_latex(c.title) for c in table.columns]))
    lines.append(r"    \midrule")
    lines += [
        _ampersands([escape_latex(shown(*pair)) for pair in _pairs(row, table)])
        for row in table.rows
    ]
    lines += [r"    \bottomrule", r"  \end{tabular}"]
    lines += [rf"  \par\smallskip\footnotesize {escape_latex(note)}" for note in table.notes]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def comma_separated(table: Table) -> str:
    """CSV for further computing: plain numbers, scores as fractions in four columns."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([name for column in table.columns for name in _headers(column)])
    for row in table.rows:
        writer.writerow([value for pair in _pairs(row, table) for value in _values(*pair)])
    return text.getvalue()


def json_records(table: Table) -> str:
    """A JSON array with an object a row: the columns and plain numbers of the CSV."""
    rows = [
        {
            name: None if value == "" else value
            for pair in _pairs(row, table)
            for name, value in zip(_headers(pair[1]), _values(*pair), strict=True)
        }
        for row in table.rows
    ]
    return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"


FORMATS: dict[str, Callable[[Table], str]] = {
    "md": markdown,
    "csv": comma_separated,
    "latex": latex,
    "json": json_records,
}
"""Values of `--format`."""


def render(table: Table, format_: str = "md") -> str:
    """The table as text that ends with a line break. Raises `UnknownName` for the format."""
    if format_ not in FORMATS:
        raise UnknownName("table format", format_, FORMATS)
    return FORMATS[format_](table)


def _pairs(row: tuple[Cell, ...], table: Table) -> Iterator[tuple[Cell, Column]]:
    return zip(row, table.columns, strict=True)


def _markdown_cell(cell: Cell, column: Column) -> str:
    text = shown(cell, column)
    return escape_markdown(text) if isinstance(cell, str) else text


def _pipes(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _ampersands(cells: list[str]) -> str:
    return f"    {' & '.join(cells)} \\\\"


def _headers(column: Column) -> list[str]:
    if column.is_score:
        return [column.key, f"{column.key}_low", f"{column.key}_high", f"{column.key}_n"]
    return [column.key]


def _values(cell: Cell, column: Column) -> list[str | float]:
    if isinstance(cell, Interval):
        return [cell.value, cell.low, cell.high, cell.n]
    blank: list[str | float] = [""] * len(_headers(column))
    if cell is None:
        return blank
    return [one_line(cell) if isinstance(cell, str) else cell]

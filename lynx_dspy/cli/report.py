"""`lynx report`: the paper's tables and figures from finished runs."""

from __future__ import annotations

from pathlib import Path

import click

from lynx_dspy.cli.plain import visible
from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.reporting import FIGURES, FORMATS, TABLES

_BY_SUFFIX = {".md": "md", ".csv": "csv", ".tex": "latex"}
_PICTURES = ("png", "svg")


@click.command("report")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--table", help=f"One of {', '.join(TABLES)}.")
@click.option("--figure", help=f"One of {', '.join(FIGURES)}.")
@click.option(
    "--format",
    "format_",
    help=f"Of a table: {', '.join(FORMATS)} [default: as the file is called, else md].",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File to write [default: a table to stdout, a figure to ./FIGURE.png and .svg]. "
    "A figure without .png or .svg is written as both.",
)
def command(
    runs: tuple[str, ...],
    table: str | None,
    figure: str | None,
    format_: str | None,
    out: Path | None,
) -> None:
    """Make a table or a figure of the paper from the finished runs in the folders RUN."""
    if table and not figure:
        _table(runs, table, format_, out)
    elif figure and not table:
        if format_:
            raise click.UsageError("--format is of tables; figures are named .png or .svg.")
        _figure(runs, figure, out)
    else:
        raise click.UsageError("Got both or neither; give one of --table NAME and --figure NAME.")


def _table(runs: tuple[str, ...], name: str, format_: str | None, out: Path | None) -> None:
    from lynx_dspy.reporting import make_table, open_runs, render

    if name not in TABLES:
        raise UnknownName("table", name, TABLES)
    form = format_ or _BY_SUFFIX.get(out.suffix if out else "", "md")
    text = render(make_table(name, open_runs(runs)), form)
    if out:
        write(out, text.encode())
    else:
        click.echo(visible(text), nl=False)


def _figure(runs: tuple[str, ...], name: str, out: Path | None) -> None:
    from lynx_dspy.reporting import make_chart, open_runs
    from lynx_dspy.reporting.plots import image

    if name not in FIGURES:
        raise UnknownName("figure", name, FIGURES)
    paths = pictures(out or Path(name))
    chart = make_chart(name, open_runs(runs))
    for path in paths:
        write(path, image(chart, path.suffix[1:]))


def pictures(out: Path) -> list[Path]:
    """The files to write: the one that is named, or a PNG and an SVG.

    >>> [path.name for path in pictures(Path("figure"))]
    ['figure.png', 'figure.svg']
    """
    if out.suffix[1:] in _PICTURES:
        return [out]
    if out.suffix:
        raise UnknownName("picture format", out.suffix[1:], _PICTURES)
    return [out.with_suffix(f".{suffix}") for suffix in _PICTURES]


def write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise BadInput(f"Cannot write {path}: {error.strerror}. Choose another --out.") from None
    click.echo(f"wrote {path}", err=True)

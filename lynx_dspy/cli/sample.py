"""`lynx sample`: build the sample warehouse."""

from __future__ import annotations

import click


@click.command("sample")
@click.option("--out", type=click.Path(), help="Database file [default: the cache folder].")
def command(out: str | None) -> int:
    """Build the sample warehouse and print the paths of its database and documents."""
    from lynx_dspy.datasets import sample

    click.echo(sample.build(out or sample.default_path()))
    click.echo(sample.documents_path())
    return 0

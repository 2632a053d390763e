"""`lynx sample`: build the sample warehouse, or a panel of stocks."""

from __future__ import annotations

import click


@click.command("sample")
@click.option("--out", type=click.Path(), help="Database file [default: the cache folder].")
@click.option("--finance", type=click.Path(), help="Write a panel of stocks into this folder.")
@click.option("--stocks", type=click.IntRange(1), default=100, help="Stocks of the panel [100].")
@click.option("--dates", type=click.IntRange(1), default=3_900, help="Dates of the panel [3900].")
@click.option("--seed", type=click.IntRange(0, 2**31), default=7, help="Seed of the panel [7].")
def command(out: str | None, finance: str | None, stocks: int, dates: int, seed: int) -> int:
    """Build the sample warehouse and print the paths of its database and documents.

    With --finance it writes a seeded panel of stocks as CSV files instead.
    """
    if finance:
        if out:
            raise click.UsageError("--out is for the warehouse; --finance names its own folder.")
        return _finance(finance, stocks, dates, seed)
    from lynx_dspy.datasets import sample

    click.echo(sample.build(out or sample.default_path()))
    click.echo(sample.documents_path())
    return 0


def _finance(folder: str, stocks: int, dates: int, seed: int) -> int:
    from lynx_dspy.finance.knowledge import glossary_path, pack_path
    from lynx_dspy.finance.sample import write_sample

    for file in write_sample(folder, stocks, dates, seed):
        click.echo(file)
    click.echo(pack_path())
    click.echo(glossary_path())
    return 0

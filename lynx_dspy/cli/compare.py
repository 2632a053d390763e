"""`lynx compare`: tracked variants side by side, with paired tests, and EX against tokens."""

from __future__ import annotations

import json
from pathlib import Path

import click

from lynx_dspy.cli.plain import echo_json, visible


@click.command("compare")
@click.option("--backbone", default="", help="Of this language model only.")
@click.option("--dataset", default="", help="On this dataset only.")
@click.option("--split", default="", help="On this split only.")
@click.option("--baseline", default="", help="Variant to test against [default: un-compiled].")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Picture to write, EX against tokens; without .png or .svg both.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(
    backbone: str, dataset: str, split: str, baseline: str, out: Path | None, as_json: bool
) -> None:
    """Compare what lynx track has put into MLflow: scores with intervals, p-values and costs.

    Each split of a dataset is a comparison of its own, by pairs of questions, within a backbone.
    """
    from lynx_dspy.reporting import render
    from lynx_dspy.reporting.variants import chart_of, chosen, table_of
    from lynx_dspy.tracking import Store

    found = chosen(Store().tracked(), backbone=backbone, dataset=dataset, split=split)
    table = table_of(found, baseline)
    if out:
        from lynx_dspy.cli.report import pictures, write
        from lynx_dspy.reporting.plots import image

        paths, chart = pictures(out), chart_of(found)
        for path in paths:
            write(path, image(chart, path.suffix[1:]))
    if as_json:
        echo_json({"variants": json.loads(render(table, "json"))})
    else:
        click.echo(visible(render(table, "md")), nl=False)

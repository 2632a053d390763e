"""`lynx score`: predictions in an official format in, a report out."""

from __future__ import annotations

import click


@click.command("score")
@click.option("--dataset", "name", required=True, help="bird, spider, spider2, sql_eval, ...")
@click.option("--data", required=True, type=click.Path(), help="Folder of the unpacked download.")
@click.option("--predictions", required=True, type=click.Path(), help="File or folder to score.")
@click.option("--split", default="", help="Split [default: the dataset's usual one].")
@click.option("--out", type=click.Path(), help="Folder for the report; resumes what is there.")
@click.option("--workers", type=click.IntRange(1), help="Programs at a time [default: cores].")
@click.option("--ves", type=click.IntRange(0), default=0, help="Timings for R-VES and VES.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(
    name: str,
    data: str,
    predictions: str,
    split: str,
    out: str | None,
    workers: int | None,
    ves: int,
    as_json: bool,
) -> int:
    """Score predictions against a dataset's golds by its own rule. No model is asked."""
    from lynx_dspy.cli.runs import Bar, show_report
    from lynx_dspy.optimize.evaluate import score
    from lynx_dspy.optimize.questions import from_dataset

    questions = from_dataset(name, data, split)
    with Bar() as bar:
        report = score(
            questions, predictions, out=out, workers=workers or 0, ves=ves, watch=bar.watch
        )
    return show_report(report, out, as_json)

"""`lynx ablate`: the paper's Table VI for your data, in one call that resumes."""

from __future__ import annotations

import json
from pathlib import Path

import click

from lynx_dspy.cli.plain import echo_json, visible

TABLE = "ablations.md"
FIGURE = "ablations"


@click.command("ablate")
@click.option("--dataset", "name", required=True, help="bird, spider, spider2, sql_eval, ...")
@click.option("--data", default="", type=click.Path(), help="Folder of the download or your own.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder of the runs.")
@click.option("--split", default="", help="Split [default: the dataset's usual one].")
@click.option("--limit", type=click.IntRange(1), help="Ask the first N questions only.")
@click.option("--ids", "ids_file", type=click.Path(), help="File of the ids to ask, one a line.")
@click.option("--lm", "lm_name", help="Language model [default: $LYNX_LM, else local].")
@click.option("--artifact", type=click.Path(), help="Folder of a compiled program.")
@click.option("--only", multiple=True, help="Leave out this part only; may be given several times.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, help="Questions at a time.")
@click.option("--deadline", type=click.FloatRange(0, min_open=True), help="Seconds a question.")
@click.option("--track", "is_tracked", is_flag=True, help="Log it to MLflow at the end.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(
    name: str,
    data: str,
    out: Path,
    split: str,
    limit: int | None,
    ids_file: str | None,
    lm_name: str | None,
    artifact: str | None,
    only: tuple[str, ...],
    workers: int,
    deadline: float | None,
    is_tracked: bool,
    as_json: bool,
) -> int:
    """Run the program, then the program without each part, and compare them by pairs.

    OUT holds a folder a variant, the table and a figure. What two variants ask alike is asked
    once. The same call goes on where it was stopped.
    """
    from lynx_dspy.cli.runs import Bar
    from lynx_dspy.lm import lm
    from lynx_dspy.optimize.ablate import ablation_study
    from lynx_dspy.optimize.artifact import load
    from lynx_dspy.optimize.questions import from_dataset, read_ids
    from lynx_dspy.program import Lynx

    ids = read_ids(ids_file) if ids_file else None
    questions = from_dataset(name, data, split, limit=limit, ids=ids)
    make = (lambda: load(artifact)) if artifact else Lynx
    with Bar() as bar:
        study = ablation_study(
            questions,
            lm=lm(lm_name),
            out=out,
            parts=only,
            make=make,
            workers=workers,
            deadline=deadline,
            watch=lambda variant: bar.named(variant).watch,
        )
        variants = list(study)
    text, rows = write_study(out, [variant.folder for variant in variants])
    if is_tracked:
        from lynx_dspy.cli.track import track

        track(out)
    if as_json:
        echo_json({"variants": rows})
    else:
        click.echo(visible(text).rstrip())
        click.echo(f"\nKept in {out}: {TABLE}, {FIGURE}.png, {FIGURE}.svg, a folder a variant")
    return 0 if all(variant.report.scored for variant in variants) else 1


def write_study(out: Path, folders: list[Path]) -> tuple[str, list[dict[str, object]]]:
    """Write the table and the figure over finished variants; the table as text and as records."""
    from lynx_dspy.reporting import make_chart, make_table, open_runs, render
    from lynx_dspy.reporting.plots import image

    runs = open_runs(folders)
    table = make_table("ablations", runs)
    text = render(table, "md")
    (out / TABLE).write_text(text, encoding="utf-8")
    chart = make_chart("ablations", runs)
    for form in ("png", "svg"):
        (out / f"{FIGURE}.{form}").write_bytes(image(chart, form))
    return text, json.loads(render(table, "json"))

"""`lynx eval`: the program over a dataset; running it again goes on where it ended."""

from __future__ import annotations

import click

from lynx_dspy.errors import BadInput

_CACHED_CALLS = 2_000
"""Calls that DSPy holds in memory; the others are on its disk."""


@click.command("eval")
@click.option("--dataset", "name", required=True, help="bird, spider, spider2, sql_eval, ...")
@click.option("--data", default="", type=click.Path(), help="Folder of the download or your own.")
@click.option("--out", required=True, type=click.Path(), help="Folder of the run.")
@click.option("--split", default="", help="Split [default: the dataset's usual one].")
@click.option("--limit", type=click.IntRange(1), help="Ask the first N questions only.")
@click.option("--ids", "ids_file", type=click.Path(), help="File of the ids to ask, one a line.")
@click.option("--lm", "lm_name", help="Language model [default: $LYNX_LM, else local].")
@click.option("--artifact", "folder", type=click.Path(), help="Folder of a compiled program.")
@click.option("--describe", multiple=True, help="File or folder that describes the databases.")
@click.option("--without", multiple=True, help="Leave a part out; may be given several times.")
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Questions at a time; local models take one.",
)
@click.option(
    "--engine", default="threads", show_default=True, help="threads, ray, or ray://HOST:PORT."
)
@click.option("--deadline", type=click.FloatRange(0, min_open=True), help="Seconds a question.")
@click.option("--ves", type=click.IntRange(0), default=0, help="Timings for R-VES and VES.")
@click.option(
    "--export",
    "kind",
    type=click.Choice(["bird", "spider", "spider2"]),
    help="Also write the programs in this benchmark's format.",
)
@click.option("--track", "is_tracked", is_flag=True, help="Log it to MLflow at the end.")
@click.option("--trace-mlflow", is_flag=True, help="Log a trace with its stages to MLflow.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(
    name: str,
    data: str,
    out: str,
    split: str,
    limit: int | None,
    ids_file: str | None,
    lm_name: str | None,
    folder: str | None,
    describe: tuple[str, ...],
    without: tuple[str, ...],
    workers: int,
    engine: str,
    deadline: float | None,
    ves: int,
    kind: str | None,
    trace_mlflow: bool,
    is_tracked: bool,
    as_json: bool,
) -> int:
    """Run the program over a dataset and score it by the dataset's own rule.

    Each finished question is kept in OUT at once. The same call goes on where it was stopped; the
    report covers every question that OUT holds.
    """
    import dspy

    from lynx_dspy.cli.artifact import open_program, origin_of
    from lynx_dspy.cli.runs import Bar, show_report
    from lynx_dspy.cli.track import traced
    from lynx_dspy.lm import lm
    from lynx_dspy.modules.languages import language_for
    from lynx_dspy.optimize.evaluate import THREADS, evaluate, export
    from lynx_dspy.optimize.questions import from_dataset, read_ids

    if trace_mlflow and engine != THREADS:
        raise BadInput("--trace-mlflow goes with --engine threads: it sees this process alone.")
    ids = read_ids(ids_file) if ids_file else None
    questions = from_dataset(name, data, split, limit=limit, ids=ids)
    program = open_program(folder, without, language_for(questions.examples[0].dialect))
    model = lm(lm_name)
    artifact = origin_of(program, model)
    dspy.configure_cache(memory_max_entries=_CACHED_CALLS)
    with traced(name, trace_mlflow), Bar() as bar:
        report = evaluate(
            program,
            questions,
            lm=model,
            out=out,
            workers=workers,
            engine=engine,
            deadline=deadline,
            ves=ves,
            without=without,
            artifact=artifact,
            described=describe,
            watch=bar.watch,
        )
    if kind:
        click.echo(f"Written: {export(out, questions, kind)}", err=True)
    if is_tracked:
        from lynx_dspy.cli.track import track

        track(out)
    return show_report(report, out, as_json)

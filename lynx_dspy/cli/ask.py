"""`lynx ask`: one question, one verified program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lynx_dspy.grounding.lookup import Source

_MOST_SKIPPED = 5
"""Documents that were not read and are named."""


@click.command("ask")
@click.argument("question")
@click.option("--db", "url", default="", help="Database: a URL, a file, or a folder of files.")
@click.option(
    "--language",
    type=click.Choice(["sql", "python"]),
    default="sql",
    show_default=True,
    help="Language of the program.",
)
@click.option("--data", default="", help="Folder of CSV or Parquet files, for Python programs.")
@click.option("--describe", "sheets", multiple=True, help="File that describes its tables.")
@click.option("--docs", type=click.Path(), help="Folder or file of documents with definitions.")
@click.option("--glossary", multiple=True, help="File of `term: definition` (YAML, CSV, Markdown).")
@click.option("--pack", "packs", multiple=True, help="Folder of frozen pages for unknown terms.")
@click.option("--wikipedia", is_flag=True, help="Look unknown terms up in Wikipedia.")
@click.option("--evidence", default="", help="What the question's terms mean, in a sentence.")
@click.option("--lm", "lm_name", help="Language model [default: $LYNX_LM, else local].")
@click.option("--artifact", "folder", type=click.Path(), help="Folder of a compiled program.")
@click.option("--without", multiple=True, help="Leave a part out; may be given several times.")
@click.option("--trace", is_flag=True, help="Show every attempt and what each stage was given.")
@click.option("--trace-mlflow", is_flag=True, help="Log a trace with its stages to MLflow.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(
    question: str,
    url: str,
    language: str,
    data: str,
    sheets: tuple[str, ...],
    docs: str | None,
    glossary: tuple[str, ...],
    packs: tuple[str, ...],
    wikipedia: bool,
    evidence: str,
    lm_name: str | None,
    folder: str | None,
    without: tuple[str, ...],
    trace: bool,
    trace_mlflow: bool,
    as_json: bool,
) -> int:
    """Answer QUESTION over a database and show the program, its result and its cost."""
    import logging

    import dspy

    from lynx_dspy.answers import to_json
    from lynx_dspy.cli.artifact import open_program, origin_of
    from lynx_dspy.cli.plain import echo_json, one_line
    from lynx_dspy.cli.show import Progress, show_answer
    from lynx_dspy.cli.track import traced
    from lynx_dspy.engines import connect
    from lynx_dspy.engines.described import described
    from lynx_dspy.grounding.documents import Documents
    from lynx_dspy.lm import describe, lm

    # A reply cut at its limit is an attempt's affair, told by --trace, not a warning to a user.
    logging.getLogger("dspy").setLevel(logging.ERROR)
    place = _place(url, data, language)
    program = open_program(folder, without, language)
    with Progress():
        documents = Documents.open(docs) if docs else None
    sources = _sources(glossary, packs, wikipedia)
    with described(connect(place), sheets) as database:
        model = lm(lm_name)
        artifact = origin_of(program, model)
        for skipped in documents.skipped[:_MOST_SKIPPED] if documents else ():
            click.echo(f"not read: {one_line(skipped)}", err=True)
        with traced("ask", trace_mlflow), Progress(), dspy.context(lm=model):
            answer = program(
                question=question,
                database=database,
                documents=documents,
                evidence=evidence,
                sources=sources,
            )
        record = to_json(answer, question, database, describe(model)) | {"artifact": artifact}
    if as_json:
        echo_json(record)
    else:
        show_answer(answer, trace=trace)
    return 0 if answer.outcome.ran else 1


def _place(url: str, data: str, language: str) -> str:
    """What to connect to: `--db`, or `--data` for the DataFrames of a folder."""
    if bool(url) == bool(data):
        raise click.UsageError("Name one of --db (a database) and --data (a folder of files).")
    if language == "sql" and data:
        raise click.UsageError("--data is for --language python. Name the folder with --db.")
    if language == "python":
        path = (data or url).removeprefix("files:///").removeprefix("frames:///")
        return f"frames:///{path}"
    return url


def _sources(glossaries: tuple[str, ...], packs: tuple[str, ...], wikipedia: bool) -> list[Source]:
    """In the order in which terms are looked up."""
    from lynx_dspy.grounding.glossary import Glossary
    from lynx_dspy.grounding.packs import Pack

    sources: list[Source] = [Glossary.open(path) for path in glossaries]
    sources += [Pack.open(path) for path in packs]
    if wikipedia:
        from lynx_dspy.grounding.web import Wikipedia

        sources.append(Wikipedia())
    return sources

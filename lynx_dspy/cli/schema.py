"""`lynx schema`: what the program would see of a database, with its cost in tokens."""

from __future__ import annotations

import click

_MOST_NOTES = 10
"""Notes on a schema's sources that are shown."""


@click.command("schema")
@click.option("--db", "url", required=True, help="Database: a URL, a file, or a folder of files.")
@click.option("--describe", multiple=True, help="File or folder that describes its tables.")
@click.option("--question", default="", help="Show the share that this question would get.")
@click.option("--budget", type=click.IntRange(min=50), help="Tokens [default: the config's].")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(
    url: str, describe: tuple[str, ...], question: str, budget: int | None, as_json: bool
) -> int:
    """Show the abstracted schema and how many tokens it takes before and after."""
    from lynx_dspy.cli.plain import echo_json, one_line, visible
    from lynx_dspy.config import FULL
    from lynx_dspy.engines import connect
    from lynx_dspy.engines.described import described, notes_of
    from lynx_dspy.grounding.folding import Folded, folded
    from lynx_dspy.grounding.linking import link, tables_for
    from lynx_dspy.grounding.render import render, tokens_raw, whole
    from lynx_dspy.grounding.schema import abstract

    with described(connect(url), describe) as database:
        schema = abstract(database)
        notes = notes_of(database)
        room = budget or FULL.schema_tokens
        text = whole(schema, room, FULL.schema_style)
        known = Folded(schema) if text else folded(schema)
        links = tuple(link(question, "", known.schema, database)) if question else ()
    if text is None:
        keep = tables_for(links, known.schema, FULL.schema_tables)
        text = render(known.schema, room, keep, links, FULL.schema_style, known.notes)
    before = tokens_raw(schema)
    if as_json:
        record = {
            "database": database.url,
            "dialect": schema.dialect,
            "tables": len(schema.tables),
            "columns": sum(len(t.columns) for t in schema.tables),
            "text": text.text,
            "tokens_before": before,
            "tokens_after": text.tokens,
            "left_out": list(text.left_out),
            "notes": list(notes),
        }
        echo_json(record)
        return 0
    click.echo(visible(text.text))
    click.echo(
        f"\n{len(schema.tables)} tables; about {before:,} tokens raw, {text.tokens:,} as shown."
    )
    for line in text.left_out[:10]:
        click.echo(f"left out: {one_line(line)}")
    for note in notes[:_MOST_NOTES]:
        click.echo(f"note: {one_line(note)}", err=True)
    if len(notes) > _MOST_NOTES:
        click.echo(f"note: {len(notes) - _MOST_NOTES} more; --json has all", err=True)
    return 0

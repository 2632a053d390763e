"""`lynx docs`: read, embed and index documents once, and search them."""

from __future__ import annotations

import click

_MOST_SKIPPED = 20
"""Documents that were not read and are named."""

_SHOWN = 300
"""Characters of a passage that are shown."""


@click.command("docs")
@click.argument("path", type=click.Path())
@click.option("--question", default="", help="Show the passages that this question would get.")
@click.option("--top", default=6, show_default=True, type=click.IntRange(min=1))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(path: str, question: str, top: int, as_json: bool) -> int:
    """Index the folder or file PATH, so that no question waits for it, and say what it holds."""
    from lynx_dspy.cli.plain import echo_json, one_line
    from lynx_dspy.cli.show import Progress
    from lynx_dspy.grounding.documents import Documents

    with Progress():
        documents = Documents.open(path)
        indexed = documents.prepare()
        found = documents.retrieve(question, top)
    if as_json:
        passages = [
            {"source": p.source, "heading": p.heading, "text": p.text, "score": p.score}
            for p in found
        ]
        echo_json(
            {"path": path, **indexed._asdict(), "skipped": [*documents.skipped], "found": passages}
        )
        return 0
    by = f"by words and by {indexed.embedder} ({indexed.kind})" if indexed.embedder else "by words"
    held = f"{_some(indexed.passages, 'passage')} of {_some(indexed.sources, 'document')}"
    click.echo(f"{held}, searched {by}")
    for skipped in documents.skipped[:_MOST_SKIPPED]:
        click.echo(f"not read: {one_line(skipped)}")
    for p in found:
        where = f"{p.source} > {p.heading}" if p.heading else p.source
        click.echo(f"{p.score:.3f}  {one_line(where)}")
        click.echo(f"       {one_line(p.text[:_SHOWN])}")
    return 0


def _some(count: int, thing: str) -> str:
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"

"""`lynx pack`: freeze pages for offline look-ups, and check that they are still those."""

from __future__ import annotations

import click


@click.group("pack")
def command() -> None:
    """Freeze pages into an offline knowledge pack, and verify one."""


@command.command("build")
@click.argument("folder", type=click.Path())
@click.argument("terms", nargs=-1)
def build(folder: str, terms: tuple[str, ...]) -> None:
    """Freeze the pages in FOLDER, after adding what Wikipedia says of TERMS."""
    from lynx_dspy.grounding import packs
    from lynx_dspy.grounding.web import Wikipedia

    pack = packs.build(folder, Wikipedia() if terms else None, terms)
    click.echo(f"{folder}: {len(pack.pages)} pages frozen")


@command.command("verify")
@click.argument("folder", type=click.Path())
def verify(folder: str) -> None:
    """Check the pages in FOLDER against its manifest; exit code 2 names the first that differs."""
    from lynx_dspy.grounding import packs

    click.echo(f"{folder}: {len(packs.verify(folder))} pages as frozen")

"""`lynx model`: pull the embedded models once, list them, say where they lie."""

from __future__ import annotations

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
from rich.progress import Progress as Bar

from lynx_dspy.errors import ModelMissing
from lynx_dspy.lm import catalogue, models


@click.group("model")
def command() -> None:
    """Pull, list and find the embedded models."""


@command.command("pull")
@click.argument("names", nargs=-1)
def pull(names: tuple[str, ...]) -> None:
    """Fetch models (the embedded ones by default), or hf:OWNER/REPO/FILE.gguf from a hub."""
    for name in names or [m.name for m in catalogue.list_models() if m.embedded]:
        present = models.path(name)
        click.echo(f"{name}: {present or _pulled(name)}")


def _pulled(name: str) -> str:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    console = Console(stderr=True)
    with Bar(*columns, TransferSpeedColumn(), console=console) as bar:
        task = bar.add_task(name, total=None)

        def tell(done: int, total: int, text: str) -> None:
            bar.update(task, completed=done, total=total or None, description=text)

        return str(models.pull(name, tell))


@command.command("list")
def list_() -> None:
    """Name, size, licence and state of the models that `pull` knows."""
    for model in catalogue.list_models():
        state = "here" if models.path(model.name) else "not pulled"
        click.echo(f"{model.name:22s} {model.size / 1e6:6.0f} MB  {model.licence:12s} {state}")


@command.command("path")
@click.argument("name", default="local")
def path(name: str) -> None:
    """Print where a pulled model lies."""
    found = models.path(name)
    if found is None:
        raise ModelMissing(f"Model {name!r} is not on this machine. Run `lynx model pull {name}`.")
    click.echo(found)

"""`lynx track`: finished runs, artifacts and studies into MLflow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lynx_dspy.cli.plain import echo_json, one_line

if TYPE_CHECKING:
    from lynx_dspy.tracking import Kept, Logged

SYNC = "sync"


@click.command("track")
@click.argument("folders", nargs=-1, required=True, metavar="RUN_OR_ARTIFACT... | sync")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(folders: tuple[str, ...], as_json: bool) -> int:
    """Log --out folders of lynx eval, compile and ablate to MLflow; `sync` sends what is kept.

    The store is that of $MLFLOW_TRACKING_URI, else ./lynx-mlflow/store.db. What is there already
    is not logged again. Exit code 1 if something could not be sent and is kept.
    """
    from lynx_dspy.tracking import Kept, Store, entry_of

    store = Store()
    if folders == (SYNC,):
        results: Iterable[Logged | Kept] = store.sync()
    else:
        entries = [
            entry_of(folder) for folder in folders
        ]  # a bad one is refused before any is sent
        results = map(store.track, entries)
    found = [_told(result, quiet=as_json) for result in results]
    if as_json:
        echo_json({"store": store.shown, "tracked": [_record(one) for one in found]})
    elif not found:
        click.echo("Nothing is waiting.")
    return 1 if any(isinstance(one, Kept) for one in found) else 0


def track(folder: str | Path) -> None:
    """What `--track` of other commands does at their end; it never changes how they end."""
    from lynx_dspy.errors import LynxError
    from lynx_dspy.tracking import Store, entry_of

    try:
        result = Store().track(entry_of(folder))
    except LynxError as error:
        click.echo(f"not tracked: {one_line(str(error))}", err=True)
        return
    click.echo(_line(result), err=True)


def traced(name: str, wanted: bool) -> AbstractContextManager[object]:
    """What `--trace-mlflow` of other commands does while the program runs, if it is `wanted`."""
    return _traced(name) if wanted else nullcontext()


@contextmanager
def _traced(name: str) -> Iterator[None]:
    from lynx_dspy.tracking import tracing

    with tracing(name) as problem:
        if problem:
            click.echo(one_line(problem), err=True)
        yield


def _told(result: Logged | Kept, quiet: bool) -> Logged | Kept:
    if not quiet:
        click.echo(_line(result))
    return result


def _line(result: Logged | Kept) -> str:
    from lynx_dspy.tracking import Kept

    if isinstance(result, Kept):
        return one_line(
            f"kept {result.name} in {result.folder}: {result.reason} Send it with lynx track sync."
        )
    return one_line(f"tracked {result.name}: run {result.run_id} in {result.url}")


def _record(result: Logged | Kept) -> dict[str, Any]:
    from lynx_dspy.tracking import Kept

    if isinstance(result, Kept):
        kept = {"kept": str(result.folder), "reason": result.reason}
        return {"name": result.name, "run_id": None, "url": None, **kept}
    logged = {"run_id": result.run_id, "url": result.url}
    return {"name": result.name, **logged, "kept": None, "reason": ""}

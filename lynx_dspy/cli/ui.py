"""`lynx ui`: MLflow's pages over what is tracked."""

from __future__ import annotations

import subprocess

import click


@click.command("ui")
@click.option(
    "--port", type=click.IntRange(1, 65_535), default=5_000, show_default=True, help="On loopback."
)
def command(port: int) -> int:
    """Open MLflow's pages over the tracked runs; Ctrl-C ends it.

    With a server in $MLFLOW_TRACKING_URI it names the server's address: that has the pages.
    """
    from lynx_dspy.tracking import Store

    store = Store()
    if store.is_server:
        click.echo(f"Open {store.shown}")
        return 0
    click.echo(f"Open http://127.0.0.1:{port} (store: {store.shown})")
    return subprocess.run(store.ui_command(port), check=False).returncode

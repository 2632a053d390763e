"""`lynx doctor`: what is installed, which models would run and why, and what is missing."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from importlib import metadata
from typing import Any

import click

from lynx_dspy.cli.plain import echo_json
from lynx_dspy.errors import LynxError

_PACKAGES = (
    "dspy",
    "sqlglot",
    "duckdb",
    "xllamacpp",
    "torch",
    "sentence-transformers",
    "faiss-cpu",
    "bm25s",
)


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(as_json: bool) -> int:
    """Say what is installed, which models would run and why, and what is missing."""
    record = examine()
    if as_json:
        echo_json(record)
    else:
        for name, value in record.items():
            if isinstance(value, dict):
                click.echo(f"{name}:")
                for key, text in value.items():
                    click.echo(f"  {key}: {text}")
            elif name != "missing":
                click.echo(f"{name}: {value}")
        for line in record["missing"]:
            click.echo(f"missing: {line}")
        click.echo("ready" if not record["missing"] else "not ready")
    return 1 if record["missing"] else 0


def examine() -> dict[str, Any]:
    """The state of this machine; `missing` holds one line a gap with the command that closes it."""
    from lynx_dspy.grounding.embedding import explain_embedder
    from lynx_dspy.lm import models

    versions = {name: _version(name) for name in _PACKAGES}
    missing = [f"package {n}: pip install {n}" for n, v in versions.items() if not v]
    lm_name, lm_state, lm_gap = _language_model()
    embedder, reason = explain_embedder()
    if embedder is None:
        missing.append(f"embedder ({reason}): lynx model pull minilm")
    return {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "packages": {n: v or "not installed" for n, v in versions.items()},
        "language model": {"name": lm_name, "state": lm_state},
        "embedder": {"name": embedder or "none: keywords only", "why": reason},
        "python sandbox": _sandbox(),
        "cache folder": str(models.home()),
        "missing": [*missing, *lm_gap],
    }


def _sandbox() -> dict[str, str]:
    """The layers that confine Python programs here; asked of a process that gives itself up."""
    if sys.platform == "win32":
        return {"state": "off: Python programs need Linux or macOS"}
    command = [sys.executable, "-P", "-m", "lynx_dspy.engines.python.confine"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=env, timeout=60)
    try:
        layers: dict[str, str] = json.loads(run.stdout)
    except ValueError:
        return {"state": f"cannot be probed: {run.stderr.strip().splitlines()[-1:]}"}
    return layers


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _language_model() -> tuple[str, str, list[str]]:
    """The model that would run, why or why not, and what to do if it cannot."""
    from lynx_dspy.lm import lm

    name = os.environ.get("LYNX_LM", "")
    origin = "from LYNX_LM" if name else "the default"
    try:
        model = lm(None)
    except LynxError as error:
        return name or "local", f"cannot run: {error}", [f"language model: {error}"]
    return str(model.model), f"ready, {origin}", []
